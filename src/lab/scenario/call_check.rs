//! Checks of the calls of a run: which tools, with which arguments and results, in which order.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::expect::{Expect, ExpectedCall, Order};
use super::finding::Finding;
use crate::recording::{Difference, Expected, JsonPath, Members, RecordedCall, Recording};

/// A maximum matching of expected calls and calls, by augmenting paths.
struct Matching {
    /// The calls that fit each expected call.
    fitting: Vec<Vec<usize>>,
    /// The expected call of each call that has one.
    owners: BTreeMap<usize, usize>,
}

impl Matching {
    /// Gives this expected call a call, and the owner of that call another one if needed.
    fn assign(&mut self, expected: usize, visited: &mut BTreeSet<usize>) -> bool {
        for call in self.fitting.get(expected).cloned().unwrap_or_default() {
            if visited.insert(call) && self.owners.get(&call).copied().is_none_or(|owner| self.assign(owner, visited)) {
                self.owners.insert(call, expected);
                return true;
            }
        }
        false
    }
}

/// The calls of a run beside the expected ones.
pub(super) struct CallCheck<'a> {
    expect: &'a Expect,
    run: &'a Recording,
    calls: Vec<&'a RecordedCall>,
}

impl<'a> CallCheck<'a> {
    pub(super) fn new(expect: &'a Expect, run: &'a Recording) -> Self {
        Self { expect, run, calls: run.calls().collect() }
    }

    /// The unmet expectations about calls.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut findings = match self.expect.order {
            Order::Exact => self.exact(),
            Order::InOrder => self.in_order(),
            Order::Any => self.any_order(),
        };
        findings.extend(self.times());
        findings.extend(self.not_called());
        findings
    }

    /// The expected calls that have no number of their own.
    fn expected(&self) -> impl Iterator<Item = (usize, &'a ExpectedCall)> {
        self.expect.calls.iter().enumerate().filter(|(_, call)| call.times.is_none())
    }

    fn exact(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut position = 0;
        for (index, expected) in self.expected() {
            let Some(call) = self.calls.get(position) else {
                findings.push(self.missing(index, expected));
                continue;
            };
            if self.is_of(expected, call) {
                findings.extend(self.differences(index, expected, position));
            } else {
                let finding = Finding::new(key(index, "tool"), "another tool was called");
                findings.push(finding.at(place(position, call)).values(expected.tool.as_str(), call.tool.as_str()));
            }
            position += 1;
        }
        for (index, call) in self.calls.iter().enumerate().skip(position) {
            let finding = Finding::new("expect.calls", "the call is not expected, and `order: exact` allows no others");
            let finding = Finding { actual: Some(call.arguments.written().clone()), ..finding };
            findings.push(finding.at(place(index, call)));
        }
        findings
    }

    fn in_order(&self) -> Vec<Finding> {
        let (mut findings, mut from) = (Vec::new(), 0);
        for (index, expected) in self.expected() {
            let later = self.positions(expected).filter(|position| *position >= from);
            match self.best(index, expected, later) {
                Some((position, differences)) => {
                    findings.extend(differences);
                    from = position + 1;
                }
                None => findings.push(self.out_of_order(index, expected, from)),
            }
        }
        findings
    }

    /// Gives as many expected calls as possible a call of their own that fits. The others get the best of the rest.
    fn any_order(&self) -> Vec<Finding> {
        let expected: Vec<(usize, &ExpectedCall)> = self.expected().collect();
        let fits = |(index, call): &(usize, &'a ExpectedCall)| -> Vec<usize> {
            let same_tool = self.positions(call);
            same_tool.filter(|position| self.differences(*index, call, *position).is_empty()).collect()
        };
        let mut matching = Matching { fitting: expected.iter().map(fits).collect(), owners: BTreeMap::new() };
        for one in 0..expected.len() {
            matching.assign(one, &mut BTreeSet::new());
        }
        let matched: BTreeSet<usize> = matching.owners.values().copied().collect();
        let mut used: BTreeSet<usize> = matching.owners.keys().copied().collect();
        let mut findings = Vec::new();
        for (_, (index, call)) in expected.into_iter().enumerate().filter(|(one, _)| !matched.contains(one)) {
            let unused = self.positions(call).filter(|position| !used.contains(position));
            match self.best(index, call, unused.collect::<Vec<_>>().into_iter()) {
                Some((position, differences)) => {
                    findings.extend(differences);
                    used.insert(position);
                }
                None => findings.push(self.missing(index, call)),
            }
        }
        findings
    }

    /// The first of these calls that fits, or else the one with the fewest differences.
    fn best(
        &self,
        index: usize,
        expected: &ExpectedCall,
        positions: impl Iterator<Item = usize>,
    ) -> Option<(usize, Vec<Finding>)> {
        let compared = positions.map(|position| (position, self.differences(index, expected, position)));
        compared.min_by_key(|(_, differences)| differences.len())
    }

    /// The calls of an expected tool, by their positions.
    fn positions(&self, expected: &'a ExpectedCall) -> impl Iterator<Item = usize> {
        let calls = self.calls.iter().enumerate();
        calls.filter(|(_, call)| self.is_of(expected, call)).map(|(position, _)| position)
    }

    fn is_of(&self, expected: &ExpectedCall, call: &RecordedCall) -> bool {
        expected.tool.fits(&call.tool, self.run.own_name(&call.tool))
    }

    fn missing(&self, index: usize, expected: &ExpectedCall) -> Finding {
        let called: Vec<&str> = self.calls.iter().map(|call| call.tool.as_str()).collect();
        let finding = Finding::new(key(index, "tool"), "the tool was not called");
        finding.values(expected.tool.as_str(), called)
    }

    fn out_of_order(&self, index: usize, expected: &ExpectedCall, from: usize) -> Finding {
        let before = self.positions(expected).filter(|position| *position < from).last();
        let Some((position, call)) = before.and_then(|position| Some((position, self.calls.get(position)?))) else {
            return self.missing(index, expected);
        };
        let finding =
            Finding::new(key(index, "tool"), "the tool was called too early, before the expected calls above");
        finding.at(place(position, call))
    }

    /// The differences between an expected call and the call at a position.
    fn differences(&self, index: usize, expected: &ExpectedCall, position: usize) -> Vec<Finding> {
        let Some(call) = self.calls.get(position) else { return Vec::new() };
        let arguments = call.arguments.example().unwrap_or_default();
        let result = call.result.expected().and_then(|result| result.example().ok()).unwrap_or_default();
        let found = |part: &str, expected: &Option<Expected>, actual: &Value| -> Vec<Finding> {
            let differences = expected.as_ref().map(|expected| open_differences(expected, actual)).unwrap_or_default();
            let finding = |Difference { path, expected, actual }: Difference| {
                let words = if part == "arguments" { "the arguments differ" } else { "the result differs" };
                let finding = Finding::new(key(index, part), words).at(format!("{}, {path}", place(position, call)));
                Finding { expected, actual, ..finding }
            };
            differences.into_iter().map(finding).collect()
        };
        let mut findings = found("arguments", &expected.arguments, &arguments);
        findings.extend(found("result", &expected.result, &result));
        findings
    }

    fn times(&self) -> Vec<Finding> {
        let counted = self.expect.calls.iter().enumerate().filter_map(|(index, call)| Some((index, call, call.times?)));
        let finding = |(index, expected, times): (usize, &'a ExpectedCall, super::expect::Bounds)| {
            let fitting =
                self.positions(expected).filter(|position| self.differences(index, expected, *position).is_empty());
            let number = u64::try_from(fitting.count()).unwrap_or(u64::MAX);
            let message = format!("there were {number} such calls of `{}`, expected {times}", expected.tool.as_str());
            (!times.admits(number)).then(|| Finding::new(key(index, "times"), message))
        };
        counted.filter_map(finding).collect()
    }

    fn not_called(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for pattern in &self.expect.not_called {
            for (position, call) in self.calls.iter().enumerate() {
                if pattern.fits(&call.tool, self.run.own_name(&call.tool)) {
                    let finding = Finding::new("expect.not_called", format!("`{}` was called", pattern.as_str()));
                    let finding = Finding { actual: Some(call.arguments.written().clone()), ..finding };
                    findings.push(finding.at(place(position, call)));
                }
            }
        }
        findings
    }
}

fn open_differences(expected: &Expected, actual: &Value) -> Vec<Difference> {
    expected.differences(actual, Members::Open, &|_: &JsonPath| false)
}

fn key(index: usize, part: &str) -> String {
    format!("expect.calls[{index}].{part}")
}

fn place(position: usize, call: &RecordedCall) -> String {
    format!("call {} ({})", position + 1, call.tool)
}
