//! Rejection of `null` for optional keys. YAML parses a value that was commented out as `null`, and serde treats `null`
//! like a missing key: an empty `when:` would remove the condition from a rule. Optional keys are therefore read
//! through this wrapper, which rejects `null` with the name of the key.
//!
//! It applies to the keys of the configuration itself. Free JSON (arguments of examples, schemas) may contain `null`.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor};

/// The end of the error message for a key without a value; the name of the key precedes it.
pub(super) const IS_EMPTY: &str = " is empty";

/// A wrapper that knows the current key, around a deserializer, a visitor or an access type of serde.
pub(super) struct RejectNull<'k, T> {
    inner: T,
    /// The current key; empty for the whole file.
    key: &'k str,
    blank: NullPolicy,
}

/// Which keys may have no value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NullPolicy {
    /// The keys of this mapping.
    Below,
    /// The key of this value.
    Here,
    /// No key.
    Nowhere,
}

/// The entries of a mapping.
struct Entries<A> {
    inner: A,
    /// The key of the next value.
    key: String,
    blank: NullPolicy,
}

/// Reads a key and stores it.
struct KeyRecorder<'n, T> {
    inner: T,
    name: &'n mut String,
}

impl<T> RejectNull<'static, T> {
    /// A whole file.
    pub(super) fn new(inner: T) -> Self {
        Self { inner, key: "", blank: NullPolicy::Nowhere }
    }

    /// A whole file whose sections may be empty: a user who comments out the last server leaves `servers:` and means no
    /// servers.
    pub(super) fn sections(inner: T) -> Self {
        Self { inner, key: "", blank: NullPolicy::Below }
    }
}

impl<'k, T> RejectNull<'k, T> {
    fn below<U>(&self, inner: U) -> RejectNull<'k, U> {
        RejectNull { inner, key: self.key, blank: self.blank }
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

impl<'de, D: Deserializer<'de>> Deserializer<'de> for RejectNull<'_, D> {
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

impl<'de, V: Visitor<'de>> Visitor<'de> for RejectNull<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    /// The case to reject: an optional key that is present without a value.
    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        match self.blank {
            NullPolicy::Here => self.inner.visit_none(),
            NullPolicy::Below | NullPolicy::Nowhere => Err(E::custom(format!("`{}`{IS_EMPTY}", self.key))),
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
        let inner = self.below(inner);
        self.inner.visit_seq(inner)
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<Self::Value, A::Error> {
        let blank = if self.blank == NullPolicy::Below { NullPolicy::Here } else { NullPolicy::Nowhere };
        self.inner.visit_map(Entries { inner, key: String::new(), blank })
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

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for RejectNull<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
        let inner = self.below(inner);
        self.inner.deserialize(inner)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for RejectNull<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let seed = self.below(seed);
        self.inner.next_element_seed(seed)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.key.clear();
        self.inner.next_key_seed(KeyRecorder { inner: seed, name: &mut self.key })
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.next_value_seed(RejectNull { inner: seed, key: &self.key, blank: self.blank })
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

impl<'de, 'k, A: EnumAccess<'de>> EnumAccess<'de> for RejectNull<'k, A> {
    type Error = A::Error;
    type Variant = RejectNull<'k, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let (key, blank) = (self.key, self.blank);
        self.inner.variant_seed(seed).map(|(value, inner)| (value, RejectNull { inner, key, blank }))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for RejectNull<'_, A> {
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

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for KeyRecorder<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
        self.inner.deserialize(KeyRecorder { inner, name: self.name })
    }
}

macro_rules! read_key {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            self.inner.$method(KeyRecorder { inner: visitor, name: self.name })
        }
    )*};
}

/// Keys are text. Requests for other types are passed on.
impl<'de, D: Deserializer<'de>> Deserializer<'de> for KeyRecorder<'_, D> {
    type Error = D::Error;

    read_key! { deserialize_any deserialize_str deserialize_string deserialize_identifier deserialize_ignored_any }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.inner.deserialize_newtype_struct(name, visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf option unit unit_struct seq tuple
        tuple_struct map struct enum
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for KeyRecorder<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        name.clone_into(self.name);
        self.inner.visit_str(name)
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
        name.clone_into(self.name);
        self.inner.visit_borrowed_str(name)
    }

    fn visit_string<E: Error>(self, name: String) -> Result<Self::Value, E> {
        name.clone_into(self.name);
        self.inner.visit_string(name)
    }
}
