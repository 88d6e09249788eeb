#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};

#[path = "../checks/conditions.rs"]
mod conditions;

fuzz_target!(|data: &[u8]| -> Corpus { if conditions::check(data) { Corpus::Keep } else { Corpus::Reject } });
