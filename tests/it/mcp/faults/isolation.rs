//! Isolation: a bad server affects no other server.

use std::time::{Duration, Instant};

use super::*;

#[tokio::test]
async fn bad_servers_cost_a_list_no_more_than_their_own_budgets_side_by_side_and_good_ones_nothing() {
    let budget = Duration::from_secs(4);
    let bad = |faults: &[&str]| within(budget, fault(faults));
    let servers = servers([
        ("good", fault(&[])),
        ("hangs", bad(&["hang-at-start"])),
        ("late", bad(&["slow-start=60"])),
        ("listless", bad(&["hang-at-list"])),
        ("dead", bad(&["die-at-start"])),
        ("noisy", bad(&["stdout-garbage", "stderr-flood=1"])),
    ]);
    assert_lists_its_tools(&servers, "good").await;

    let started = Instant::now();
    let all = async {
        let listed = list(&servers, &["hangs", "good", "late", "listless", "dead", "noisy"]).await;
        (listed, started.elapsed())
    };
    let calls = async {
        for number in 0..20 {
            assert_eq!(echo(&servers, "good", &number.to_string()).await, number.to_string());
        }
        started.elapsed()
    };
    let ((listed, list_took), calls_took) = tokio::join!(all, calls);

    assert!(calls_took < list_took, "twenty calls of the good one took {calls_took:?}");
    assert!((budget..2 * budget).contains(&list_took), "the list took {list_took:?}");
    let counts: Vec<(&str, usize, usize)> =
        listed.iter().map(|tools| (tools.server.as_str(), tools.tools.len(), tools.left_out.len())).collect();
    let expected =
        [("hangs", 0, 1), ("good", 6, 0), ("late", 0, 1), ("listless", 0, 1), ("dead", 0, 1), ("noisy", 6, 0)];
    assert_eq!(counts, expected);
    servers.close().await;
}

#[tokio::test]
async fn a_call_that_hangs_delays_no_other_call_of_the_same_server() {
    let servers = servers([("bad", fault(&["slow-call=4"]))]);
    list(&servers, &["bad"]).await;
    let started = Instant::now();
    let slow = async { (text(call(&servers, "bad", "echo", json!({"text": "hello"})).await), started.elapsed()) };
    let other = async {
        eventually("the slow call runs", async || executed(&servers, "bad").await == 1).await;
        started.elapsed()
    };
    let ((answer, slow_took), other_took) = tokio::join!(slow, other);
    assert_eq!(answer, "hello");
    assert!(other_took < slow_took, "{other_took:?}, {slow_took:?}");
    servers.close().await;
}
