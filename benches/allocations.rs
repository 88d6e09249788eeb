//! Allocations of a steady turn: with the memory store, beside those of a hand-written loop around the same model and
//! tools. A copy of the conversation or of the toolset in each turn shows here first, on any machine.
//!
//! `cargo bench --bench allocations` prints both numbers and one line of JSON, and fails above [`MOST`].
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::print_stdout)]
#![allow(unreachable_pub, dead_code)]

#[path = "overhead/floor.rs"]
mod floor;
#[path = "overhead/scenario.rs"]
mod scenario;
#[path = "overhead/subject.rs"]
mod subject;
#[path = "overhead/world.rs"]
mod world;

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use scenario::{PLAIN, Scenario};
use subject::{Ready, Subject};
use world::Turns;

/// The most allocations of a turn with one call and 8 tools.
const MOST: f64 = 260.0;
/// The turns of the two runs whose difference is steady turns only.
const TURNS: [usize; 2] = [100, 200];

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

#[expect(unsafe_code, reason = "an allocator has no safe interface; this one only counts")]
// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer comes from the same allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the pointer comes from the same allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    let [floor, memory] = [Subject::Floor, Subject::Memory].map(|subject| {
        let [short, long] = TURNS.map(|turns| of_run(subject, &Scenario { turns, ..PLAIN }));
        let per_turn = (long - short) as f64 / (TURNS[1] - TURNS[0]) as f64;
        println!("{:<8} {per_turn:>8.1} allocations a turn", subject.name());
        per_turn
    });
    println!(
        "{}",
        serde_json::json!({ "bench": "allocations", "unit": "allocations a turn", "floor": floor, "memory": memory })
    );
    // Without cargo's `--bench` this is `cargo test --benches`, whose build is not optimized.
    if memory > MOST && std::env::args().any(|argument| argument == "--bench") {
        println!("a turn allocates {memory:.1} times, more than {MOST}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// The allocations of one run. A run before it assembles the toolset.
fn of_run(subject: Subject, scenario: &Scenario) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ready = runtime.block_on(Ready::set_up(subject, scenario, Turns::default()));
    runtime.block_on(ready.run());
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    runtime.block_on(ready.run());
    let counted = ALLOCATIONS.load(Ordering::Relaxed) - before;
    runtime.block_on(ready.tear_down());
    counted
}
