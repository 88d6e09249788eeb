//! Tape: the source of all choices of the simulated world, made of bytes that proptest generates and shrinks. After its
//! end a tape returns 0 forever, and 0 is always the calm choice: the world then lets the run end.

use proptest::prelude::*;

/// Cases of each law, unless `PROPTEST_CASES` says how many.
const CASES: u32 = 64;

#[derive(Clone, Debug, Default)]
pub(crate) struct Tape {
    bytes: Vec<u8>,
    at: usize,
}

impl Tape {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, at: 0 }
    }

    pub(crate) fn blank() -> Self {
        Self::default()
    }

    /// A number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(byte) % n
    }

    /// True once in `n` times; never after the end of the tape.
    pub(crate) fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    pub(crate) fn shuffled<T>(&mut self, mut items: Vec<T>) -> Vec<T> {
        let mut shuffled = Vec::with_capacity(items.len());
        while !items.is_empty() {
            let index = self.below(items.len());
            shuffled.push(items.remove(index));
        }
        shuffled
    }
}

pub(crate) fn tapes() -> impl Strategy<Value = Tape> {
    proptest::collection::vec(any::<u8>(), 0..500).prop_map(Tape::new)
}

/// The configuration without files: a failure prints its tape.
pub(crate) fn strictly() -> ProptestConfig {
    let usual = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { usual.cases } else { CASES };
    ProptestConfig { cases, failure_persistence: None, ..usual }
}
