//! The checks of the fuzz targets (fuzz/checks) on mutations of their seeds, without libFuzzer and its instrumented build:
//! some thousand inputs in seconds. `scripts/fuzz` searches for longer, guided by the code that an input reaches.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg(feature = "config")]

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use proptest::sample::{Index, select};

#[path = "../fuzz/checks/conditions.rs"]
mod conditions;
#[path = "../fuzz/checks/policies.rs"]
mod policies;

#[test]
fn conditions_hold_on_mutated_seeds() {
    smoke(20_000, seeds(&["fuzz/seeds/conditions"]), |input| {
        conditions::check(input);
    });
}

#[test]
fn policies_hold_on_mutated_seeds() {
    smoke(3_000, seeds(&["fuzz/seeds/policies", "approvals"]), |input| {
        policies::check(&String::from_utf8_lossy(input));
    });
}

/// Checks every seed as it is, then `cases` mutations.
fn smoke(cases: u32, seeds: Vec<Vec<u8>>, check: impl Fn(&[u8])) {
    seeds.iter().for_each(|seed| check(seed));
    let input = (select(seeds.clone()), prop::collection::vec(mutation(seeds), 1..4))
        .prop_map(|(seed, mutations)| mutations.iter().fold(seed, |input, mutation| mutation.apply(input)));
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) };
    proptest!(config, |(input in input)| check(&input));
}

/// One change of an input, as libFuzzer makes them.
#[derive(Clone, Debug)]
enum Mutation {
    Insert(Index, Vec<u8>),
    Replace(Index, u8),
    Delete(Index, usize),
    Repeat(Index, usize),
    /// The rest of the input becomes the rest of another seed.
    Splice(Index, Vec<u8>, Index),
}

fn mutation(seeds: Vec<Vec<u8>>) -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    prop_oneof![
        4 => (at(), select(dictionary())).prop_map(|(at, word)| Mutation::Insert(at, word)),
        2 => (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        2 => (at(), 1..32usize).prop_map(|(at, length)| Mutation::Delete(at, length)),
        2 => (at(), 1..64usize).prop_map(|(at, length)| Mutation::Repeat(at, length)),
        1 => (at(), select(seeds), at()).prop_map(|(at, seed, from)| Mutation::Splice(at, seed, from)),
    ]
}

impl Mutation {
    fn apply(&self, mut input: Vec<u8>) -> Vec<u8> {
        let place = |at: &Index, length: usize| at.index(length + 1);
        let until = |start: usize, length: usize, end: usize| (start + length).min(end);
        match self {
            Self::Insert(at, word) => {
                let at = place(at, input.len());
                input.splice(at..at, word.iter().copied());
            }
            Self::Replace(at, byte) => {
                let at = place(at, input.len());
                input.splice(at..until(at, 1, input.len()), [*byte]);
            }
            Self::Delete(at, length) => {
                let at = place(at, input.len());
                input.drain(at..until(at, *length, input.len()));
            }
            Self::Repeat(at, length) => {
                let at = place(at, input.len());
                let part = input[at..until(at, *length, input.len())].to_vec();
                input.splice(at..at, part);
            }
            Self::Splice(at, seed, from) => {
                input.truncate(place(at, input.len()));
                input.extend_from_slice(&seed[place(from, seed.len())..]);
            }
        }
        input
    }
}

fn seeds(folders: &[&str]) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = folders.iter().flat_map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let mut paths: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| fs::read(path).unwrap()).collect()
}

/// The words of libFuzzer's dictionary. Its escapes are `\x` with two hexadecimal digits.
fn dictionary() -> Vec<Vec<u8>> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/dictionary")).unwrap();
    let quoted = text.lines().filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'));
    quoted.map(unescaped).collect()
}

fn unescaped(word: &str) -> Vec<u8> {
    let mut parts = word.split("\\x");
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    bytes
}
