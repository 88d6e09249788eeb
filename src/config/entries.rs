//! Reading of a file entry by entry, as a wrapper around serde's traits. The wrapper knows the path of each value, and
//! therefore
//!
//! - rejects `null` with the name of the key. YAML parses a value that was commented out as `null`, and serde treats
//!   `null` like a missing key: an empty `when:` would remove the condition from a rule.
//! - rejects a key that is written twice.
//! - names the entry with an error, and leaves out entries in which earlier passes found errors. So several passes find
//!   the errors of all entries, although serde stops at the first one.
//!
//! It applies to the keys of the configuration itself. Free JSON (arguments of examples, schemas) may contain `null`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::mem;

use serde::Deserialize as _;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, IntoDeserializer as _, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};

/// The end of the error message for a key without a value; the name of the key precedes it.
pub(super) const IS_EMPTY: &str = " is empty";
/// The end of the error message for a key that is written twice; the name of the key precedes it.
pub(super) const IS_WRITTEN_TWICE: &str = " is written twice";

/// The first key of a value with its location, as serde_saphyr presents it. The value follows under `value`.
const SPAN_MARKER: &str = "__serde_saphyr_private_spanned";

/// A step from a mapping or a list to one of its values.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Key(String),
    Item(usize),
    /// The second entry with the key before it.
    Again,
}

/// The steps from the whole file to a value.
pub(super) type EntryPath = Vec<Step>;

/// One pass over a file.
pub(super) struct Pass<'f> {
    /// The entries to leave out.
    faulty: &'f BTreeSet<EntryPath>,
    /// The innermost entry with the error of this pass.
    failed: RefCell<Option<EntryPath>>,
}

/// A deserializer, a visitor or an access type of serde, with the path of the value that it reads.
pub(super) struct EntryReader<'p, T> {
    inner: T,
    node: &'p Node<'p>,
    pass: &'p Pass<'p>,
    blank: NullPolicy,
}

/// A value in the tree of the file.
struct Node<'p> {
    /// `None` for the whole file.
    entry: Option<(&'p Node<'p>, Step)>,
}

/// Which keys may have no value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NullPolicy {
    /// The keys of this mapping: a user who comments out the last server leaves `servers:` and means no servers.
    Below,
    /// The key of this value.
    Here,
    /// No key.
    Nowhere,
}

/// The entries of a mapping.
struct Entries<'p, A> {
    inner: A,
    keys: Keys<'p>,
    blank: NullPolicy,
}

/// The keys of a mapping.
struct Keys<'p> {
    node: &'p Node<'p>,
    pass: &'p Pass<'p>,
    /// The key of the next value.
    next: String,
    seen: BTreeSet<String>,
    /// Whether it is no mapping of the file, but a value with its location.
    is_span: bool,
}

/// Reads a key; returns itself if its entry is left out.
struct KeyReader<'k, 'p, S> {
    inner: S,
    keys: &'k mut Keys<'p>,
}

/// The items of a list.
struct Items<'p, A> {
    inner: A,
    node: &'p Node<'p>,
    pass: &'p Pass<'p>,
    index: usize,
}

impl<'f> Pass<'f> {
    pub(super) fn new(faulty: &'f BTreeSet<EntryPath>) -> Self {
        Self { faulty, failed: RefCell::new(None) }
    }

    /// Reads a whole file.
    pub(super) fn read<'de, T: serde::Deserialize<'de>, D: Deserializer<'de>>(
        &self,
        inner: D,
        blank: NullPolicy,
    ) -> Result<T, D::Error> {
        T::deserialize(EntryReader { inner, node: &Node { entry: None }, pass: self, blank })
    }

    /// The path of the innermost entry with the error; empty for the whole file.
    pub(super) fn failed(self) -> EntryPath {
        self.failed.into_inner().unwrap_or_default()
    }

    /// Records the entry of an error, unless an inner one is recorded already.
    fn fail(&self, node: &Node<'_>) {
        self.failed.borrow_mut().get_or_insert_with(|| node.path());
    }

    fn leaves_out(&self, node: &Node<'_>) -> bool {
        !self.faulty.is_empty() && self.faulty.contains(&node.path())
    }
}

impl<'p> Node<'p> {
    fn child(&'p self, step: Step) -> Self {
        Self { entry: Some((self, step)) }
    }

    fn path(&self) -> EntryPath {
        match &self.entry {
            None => EntryPath::new(),
            Some((parent, step)) => parent.path().into_iter().chain([step.clone()]).collect(),
        }
    }
}

/// The innermost key of a path.
pub(super) fn last_key(path: &[Step]) -> Option<&str> {
    path.iter().rev().find_map(|step| match step {
        Step::Key(key) => Some(key.as_str()),
        Step::Item(_) | Step::Again => None,
    })
}

impl<'p, T> EntryReader<'p, T> {
    fn below<U>(&self, inner: U) -> EntryReader<'p, U> {
        EntryReader { inner, node: self.node, pass: self.pass, blank: self.blank }
    }
}

macro_rules! read_on {
    ($($method:ident($($argument:ident: $kind:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $kind,)* visitor: V) -> Result<V::Value, Self::Error> {
            let visitor = self.below(visitor);
            self.inner.$method($($argument,)* visitor)
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for EntryReader<'_, D> {
    type Error = D::Error;

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }

    read_on! {
        deserialize_any(); deserialize_bool(); deserialize_i8(); deserialize_i16(); deserialize_i32(); deserialize_i64();
        deserialize_i128(); deserialize_u8(); deserialize_u16(); deserialize_u32(); deserialize_u64(); deserialize_u128();
        deserialize_f32(); deserialize_f64(); deserialize_char(); deserialize_str(); deserialize_string();
        deserialize_bytes(); deserialize_byte_buf(); deserialize_option(); deserialize_unit();
        deserialize_unit_struct(name: &'static str); deserialize_newtype_struct(name: &'static str); deserialize_seq();
        deserialize_tuple(len: usize); deserialize_tuple_struct(name: &'static str, len: usize); deserialize_map();
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier(); deserialize_ignored_any();
    }
}

macro_rules! hand_on {
    ($($method:ident: $kind:ty;)*) => {$(
        fn $method<E: Error>(self, value: $kind) -> Result<Self::Value, E> {
            self.inner.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for EntryReader<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    /// The case to reject: an optional key that is present without a value.
    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        match self.blank {
            NullPolicy::Here => self.inner.visit_none(),
            NullPolicy::Below | NullPolicy::Nowhere => {
                Err(E::custom(format!("`{}`{IS_EMPTY}", last_key(&self.node.path()).unwrap_or_default())))
            }
        }
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
        let inner = self.below(inner);
        self.inner.visit_some(inner)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
        let inner = self.below(inner);
        self.inner.visit_newtype_struct(inner)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<Self::Value, A::Error> {
        self.inner.visit_seq(Items { inner, node: self.node, pass: self.pass, index: 0 })
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<Self::Value, A::Error> {
        let (node, pass, blank) = (self.node, self.pass, self.blank);
        let keys = Keys { node, pass, next: String::new(), seen: BTreeSet::new(), is_span: false };
        self.inner.visit_map(Entries { inner, keys, blank })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, inner: A) -> Result<Self::Value, A::Error> {
        let inner = self.below(inner);
        self.inner.visit_enum(inner)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        self.inner.visit_unit()
    }

    hand_on! {
        visit_bool: bool; visit_i8: i8; visit_i16: i16; visit_i32: i32; visit_i64: i64; visit_i128: i128; visit_u8: u8;
        visit_u16: u16; visit_u32: u32; visit_u64: u64; visit_u128: u128; visit_f32: f32; visit_f64: f64;
        visit_char: char; visit_str: &str; visit_borrowed_str: &'de str; visit_string: String; visit_bytes: &[u8];
        visit_borrowed_bytes: &'de [u8]; visit_byte_buf: Vec<u8>;
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for EntryReader<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
        let inner = self.below(inner);
        self.inner.deserialize(inner)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Items<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        loop {
            let node = self.node.child(Step::Item(self.index));
            self.index += 1;
            if self.pass.leaves_out(&node) {
                self.inner.next_element::<IgnoredAny>()?;
                continue;
            }
            let reader = EntryReader { inner: seed, node: &node, pass: self.pass, blank: NullPolicy::Nowhere };
            return self.inner.next_element_seed(reader).inspect_err(|_| self.pass.fail(&node));
        }
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, mut seed: S) -> Result<Option<S::Value>, A::Error> {
        loop {
            match self.inner.next_key_seed(KeyReader { inner: seed, keys: &mut self.keys })? {
                None => return Ok(None),
                Some(Ok(key)) => return Ok(Some(key)),
                Some(Err(unused)) => {
                    self.inner.next_value::<IgnoredAny>()?;
                    seed = unused;
                }
            }
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let Keys { node, pass, ref mut next, is_span, .. } = self.keys;
        if is_span {
            // The value is that of the key above; the other members are its location.
            return self.inner.next_value_seed(EntryReader { inner: seed, node, pass, blank: self.blank });
        }
        let blank = if self.blank == NullPolicy::Below { NullPolicy::Here } else { NullPolicy::Nowhere };
        let node = node.child(Step::Key(mem::take(next)));
        let reader = EntryReader { inner: seed, node: &node, pass, blank };
        self.inner.next_value_seed(reader).inspect_err(|_| pass.fail(&node))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, 'k, A: EnumAccess<'de>> EnumAccess<'de> for EntryReader<'k, A> {
    type Error = A::Error;
    type Variant = EntryReader<'k, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let (node, pass, blank) = (self.node, self.pass, self.blank);
        self.inner.variant_seed(seed).map(|(value, inner)| (value, EntryReader { inner, node, pass, blank }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for EntryReader<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        let seed = self.below(seed);
        self.inner.newtype_variant_seed(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        let visitor = self.below(visitor);
        self.inner.tuple_variant(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, names: &'static [&'static str], visitor: V) -> Result<V::Value, A::Error> {
        let visitor = self.below(visitor);
        self.inner.struct_variant(names, visitor)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for KeyReader<'_, '_, S> {
    type Value = Result<S::Value, S>;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
        let keys = self.keys;
        keys.next = String::deserialize(inner)?;
        keys.is_span |= keys.next == SPAN_MARKER;
        let key = || keys.next.as_str().into_deserializer();
        if keys.is_span {
            return self.inner.deserialize(key()).map(Ok);
        }
        let is_new = keys.seen.insert(keys.next.clone());
        let node = keys.node.child(Step::Key(keys.next.clone()));
        let again = node.child(Step::Again);
        if keys.pass.leaves_out(&node) || !is_new && keys.pass.leaves_out(&again) {
            return Ok(Err(self.inner));
        }
        if !is_new {
            keys.pass.fail(&again);
            return Err(D::Error::custom(format!("`{}`{IS_WRITTEN_TWICE}", keys.next)));
        }
        self.inner.deserialize(key()).map(Ok).inspect_err(|_| keys.pass.fail(&node))
    }
}
