#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../checks/policies.rs"]
mod policies;

fuzz_target!(|text: &str| policies::check(text));
