//! Schema weight: an upper bound on the work of one check, computed before any check.
//!
//! References may multiply: thirty definitions that each refer twice to the next make a billion checks out of one
//! kilobyte. The weight of a schema is the number of its nodes with every reference expanded. If a reference could
//! resolve to several places (a schema may hold others with an `$id` of their own), the heaviest counts: the bound must
//! not depend on resolving it like the schema library.
//!
//! A schema that refers back to itself is checked as deeply as a value is nested. Where it applies twice to one member,
//! the work doubles with each level ([`Weight::on`]).

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use referencing::unescape_segment;
use serde_json::Value;

/// The limit on nesting and references together. Deeper schemas could also overflow the stack.
const MAX_DEPTH: usize = 256;
const MAX_STEPS: u32 = 1_000_000;
const TOO_HEAVY: u64 = u64::MAX;

/// The keywords whose schemas apply to members of a value, not to the value itself.
const DESCENDING: [&str; 10] = [
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
];

/// The weight of a schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight {
    /// The number of nodes with references expanded; saturates.
    pub(super) nodes: u64,
    /// How often the schema applies to one member of a value, at most, each time that it applies to the value. One
    /// without recursion.
    branches: u64,
}

impl Weight {
    /// An upper bound on the work for this value; saturates.
    pub(super) fn on(self, value: &Value) -> u64 {
        let (size, depth) = extent(value);
        self.nodes.saturating_mul(size).saturating_mul(self.branches.saturating_pow(depth))
    }
}

/// The number of a value's nodes, and its depth.
fn extent(value: &Value) -> (u64, u32) {
    let of_all = |members: &mut dyn Iterator<Item = &Value>| {
        members.map(extent).fold((1, 0), |(size, depth), (own, levels)| (size + own, depth.max(levels + 1)))
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => (1, 0),
        Value::Array(items) => of_all(&mut items.iter()),
        Value::Object(members) => of_all(&mut members.values()),
    }
}

/// The weight of a schema. In the count of all nodes, a reference back to a definition that is being counted weighs one:
/// its recursion ends with the depth of the value.
///
/// In a cycle the weight of a reference thus depends on where the count begins. So no reference weighs less than its
/// nodes that apply to one value: those are counted again, without the keywords that close such cycles.
pub(super) fn estimate(schema: &Value) -> Weight {
    let mut weigher = Weigher::new(schema);
    let whole = weigher.weigh(schema);
    let mut references: Vec<&str> = std::mem::take(&mut weigher.known).into_keys().collect();
    // The same order each time: a schema is either always accepted or never.
    references.sort_unstable();
    let mut recount = |count| {
        (weigher.steps, weigher.count) = (0, count);
        weigher.known.clear();
        let whole = weigher.weigh(schema);
        references.iter().map(|reference| weigher.follow(reference)).fold(whole, u64::max)
    };
    let nodes = whole.max(recount(Count::NodesInPlace));
    let branches = recount(Count::Descents).max(1);
    Weight { nodes, branches: if weigher.is_recursive { branches } else { 1 } }
}

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Count {
    Nodes,
    /// The nodes that apply to the value itself.
    NodesInPlace,
    /// The keywords that apply to members of the value.
    Descents,
}

/// The weight of a reference.
#[derive(Clone, Copy)]
enum Known {
    /// It is being counted, at this level of references.
    Open(usize),
    Done(u64),
}

struct Weigher<'a> {
    /// The possible bases of a pointer: the root, and every schema with an id.
    resources: Vec<&'a Value>,
    anchors: HashMap<&'a str, Vec<&'a Value>>,
    known: HashMap<&'a str, Known>,
    depth: usize,
    steps: u32,
    count: Count,
    /// How many references are being counted.
    open: usize,
    /// The outermost of them that the present weight depends on.
    lowest: usize,
    is_recursive: bool,
}

impl<'a> Weigher<'a> {
    fn new(schema: &'a Value) -> Self {
        let mut resources = vec![schema];
        let mut anchors = HashMap::new();
        collect(schema, &mut resources, &mut anchors);
        Self {
            resources,
            anchors,
            known: HashMap::new(),
            depth: 0,
            steps: 0,
            count: Count::Nodes,
            open: 0,
            lowest: usize::MAX,
            is_recursive: false,
        }
    }

    /// The weight of one node.
    fn one(&self) -> u64 {
        u64::from(self.count != Count::Descents)
    }

    fn weigh(&mut self, node: &'a Value) -> u64 {
        self.steps += 1;
        if self.depth >= MAX_DEPTH || self.steps > MAX_STEPS {
            return TOO_HEAVY;
        }
        self.depth += 1;
        let weight = match node {
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
            Value::Array(items) => items.iter().fold(0, |sum: u64, item| sum.saturating_add(self.weigh(item))),
            Value::Object(members) => members
                .iter()
                .fold(self.one(), |sum: u64, (key, member)| sum.saturating_add(self.weigh_member(key, member))),
        };
        self.depth -= 1;
        weight
    }

    fn weigh_member(&mut self, key: &str, member: &'a Value) -> u64 {
        match (key, member) {
            (key, _) if self.count == Count::NodesInPlace && DESCENDING.contains(&key) => 0,
            (key, member) if self.count == Count::Descents && DESCENDING.contains(&key) => descents(key, member),
            // Definitions count where they are referenced.
            ("$defs" | "definitions", Value::Object(_)) => 0,
            // The keys of these are names, even those that are spelled like keywords.
            ("properties" | "patternProperties" | "dependentSchemas" | "dependencies", Value::Object(schemas)) => {
                schemas.values().fold(self.one(), |sum: u64, schema| sum.saturating_add(self.weigh(schema)))
            }
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => self.follow(reference),
            (_, member) => self.weigh(member),
        }
    }

    fn follow(&mut self, reference: &'a str) -> u64 {
        match self.known.get(reference) {
            Some(Known::Done(weight)) => return *weight,
            Some(Known::Open(level)) => {
                self.lowest = self.lowest.min(*level);
                self.is_recursive = true;
                return self.one();
            }
            None => {}
        }
        // The lookup in every resource counts as work, too.
        let lookup = self.resources.len().saturating_mul(1 + reference.matches('/').count());
        self.steps = self.steps.saturating_add(u32::try_from(lookup).unwrap_or(MAX_STEPS));
        if self.steps > MAX_STEPS {
            return TOO_HEAVY;
        }
        let level = self.open;
        self.known.insert(reference, Known::Open(level));
        self.open += 1;
        let outer = std::mem::replace(&mut self.lowest, usize::MAX);
        let targets = self.targets(reference);
        let weight = targets.into_iter().map(|target| self.weigh(target)).max().unwrap_or(self.one());
        self.open -= 1;
        // A weight that depends on a reference further out is another one elsewhere.
        if self.count == Count::Nodes || self.lowest >= level {
            self.known.insert(reference, Known::Done(weight));
        } else {
            self.known.remove(reference);
        }
        self.lowest = if self.lowest >= level { outer } else { self.lowest.min(outer) };
        weight
    }

    /// The possible targets of a reference. Only a fragment that begins with `/` as written is a pointer; the schema
    /// library decodes pointers, but not the names of anchors.
    fn targets(&self, reference: &str) -> Vec<&'a Value> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        match (base, fragment) {
            ("", "") => self.resources.first().copied().into_iter().collect(),
            (_, "") => self.resources.clone(),
            (_, pointer) if pointer.starts_with('/') => {
                let pointer = percent_decode_str(pointer).decode_utf8_lossy();
                self.resources.iter().filter_map(|resource| locate(resource, &pointer)).collect()
            }
            (_, anchor) => self.anchors.get(anchor).cloned().unwrap_or_default(),
        }
    }
}

/// How often this keyword may apply to one member of a value.
fn descents(key: &str, member: &Value) -> u64 {
    match (key, member) {
        ("propertyNames", _) | (_, Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => 0,
        ("patternProperties", Value::Object(patterns)) => patterns.len() as u64,
        (_, Value::Array(_) | Value::Object(_)) => 1,
    }
}

/// The target of a pointer, found as the schema library finds it. Unlike `Value::pointer`, it accepts list indexes with a
/// sign or leading zeros, and reads escapes from left to right.
fn locate<'a>(resource: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(resource, |node, segment| match node {
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        Value::Object(members) => members.get(&*unescape_segment(segment)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

fn collect<'a>(node: &'a Value, resources: &mut Vec<&'a Value>, anchors: &mut HashMap<&'a str, Vec<&'a Value>>) {
    let children: Vec<&Value> = match node {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => {
            if ["$id", "id"].iter().any(|key| members.get(*key).is_some_and(Value::is_string)) {
                resources.push(node);
            }
            // In draft-07 an id that is a fragment is an anchor.
            for key in ["$anchor", "$dynamicAnchor", "$id", "id"] {
                if let Some(name) = members.get(key).and_then(Value::as_str) {
                    anchors.entry(name.trim_start_matches('#')).or_default().push(node);
                }
            }
            members.values().collect()
        }
    };
    for child in children {
        collect(child, resources, anchors);
    }
}
