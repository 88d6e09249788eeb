//! Waiting of the supervisor: how often and how long for tool lists, confirmations and start permits.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_server_that_never_lists_is_waited_for_once_and_asked_again_in_the_background() {
    let (supervisor, world) = given([]);
    lock(&world.tools).1 = Duration::from_secs(1000);
    let begun = Instant::now();
    let (one, other) = tokio::join!(offer(&supervisor), async {
        seconds(30).await;
        offer(&supervisor).await
    });
    assert_eq!(
        (missing(one), missing(other)),
        ("the MCP server `shop` was silent".into(), "the MCP server `shop` was silent".into())
    );
    assert_eq!(begun.elapsed(), BUDGET, "later callers waited for the same request");
    let generation = supervisor.generation();
    let begun = Instant::now();
    for _ in 0..10 {
        missing(offer(&supervisor).await);
    }
    assert_eq!((begun.elapsed(), supervisor.generation()), (Duration::ZERO, generation));
    seconds(300).await;
    assert!((3..=8).contains(&world.count("list")), "{:?}", world.seconds("list"));
    lock(&world.tools).1 = Duration::ZERO;
    seconds(100).await;
    assert!(supervisor.generation() > generation, "so that runs ask again");
    assert_eq!(names(&offer(&supervisor).await), ["tool"]);
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_the_user_does_not_wait_for_is_offered_when_it_is_ready() {
    let (supervisor, _) = given([Takes(50)]);
    let begun = Instant::now();
    let (first, ()) = tokio::join!(offer(&supervisor), async {
        seconds(5).await;
        supervisor.skip_wait();
    });
    let reason = "the MCP server `shop` is not ready yet, and was not waited for";
    assert_eq!((missing(first).as_str(), begun.elapsed().as_secs()), (reason, 5));
    assert_eq!(
        (missing(offer(&supervisor).await).as_str(), begun.elapsed().as_secs()),
        (reason, 5),
        "nor by a later turn"
    );
    let generation = supervisor.generation();
    seconds(50).await;
    assert!(supervisor.generation() > generation, "so that runs ask again");
    assert_eq!(names(&offer(&supervisor).await), ["tool"]);
    supervisor.skip_wait();
    assert_eq!(names(&offer(&supervisor).await), ["tool"], "a server with tools is not skipped");
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_overdue_list_delays_no_other_request() {
    let (supervisor, world) = given([]);
    world.announces.store(false, Ordering::Relaxed);
    offer(&supervisor).await;
    lock(&world.tools).1 = Duration::from_secs(1000);
    seconds(2).await;
    let begun = Instant::now();
    for _ in 0..5 {
        assert_eq!(names(&offer(&supervisor).await), ["tool"]);
    }
    assert_eq!(begun.elapsed(), READY_TIMEOUT);
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_older_than_an_approval_is_asked_for_and_a_newer_one_is_not() {
    let (supervisor, world) = given([]);
    offer(&supervisor).await;
    seconds(10).await;
    supervisor.confirm(Map::new(), Duration::from_secs(20)).await;
    assert_eq!(world.count("list"), 1, "another request listed it since");
    world.lists(&["other"]);
    let before = supervisor.generation();
    supervisor.confirm(Map::new(), Duration::from_secs(5)).await;
    assert_eq!(world.count("list"), 2);
    assert!(supervisor.generation() > before);

    lock(&world.tools).1 = Duration::from_secs(1000);
    seconds(10).await;
    let begun = Instant::now();
    supervisor.confirm(Map::new(), Duration::ZERO).await;
    assert_eq!(begun.elapsed(), READY_TIMEOUT, "and no longer");
    assert_eq!(names(&offer(&supervisor).await), ["other"]);
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_waits_for_others_to_start_is_not_late() {
    let starts = StartLimiter::with_permits(2);
    let servers: Vec<Fake> = (0..40)
        .map(|_| {
            let (_, world) = given([Takes(8)]);
            Supervisor::new("shop".into(), world, Duration::from_secs(10), TaskTracker::new(), starts.clone())
        })
        .collect();
    let begun = Instant::now();
    let offers = futures::future::join_all(servers.iter().map(offer)).await;
    assert!(offers.iter().all(|offer| names(offer) == ["tool"]), "{offers:?}");
    assert_eq!(begun.elapsed(), Duration::from_secs(160), "two at a time");
    for server in &servers {
        server.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_hanging_start_delays_other_starts_for_seconds_only() {
    let starts = StartLimiter::with_permits(1);
    let of = |opening| {
        let (_, world) = given([opening]);
        Supervisor::new("shop".into(), world, BUDGET, TaskTracker::new(), starts.clone())
    };
    let (hangs, other) = (of(Takes(1000)), of(Takes(0)));
    hangs.start();
    seconds(1).await;
    let begun = Instant::now();
    assert_eq!(names(&offer(&other).await), ["tool"]);
    assert_eq!(begun.elapsed(), Duration::from_secs(9));
    hangs.abandon();
    other.close().await;
    hangs.close().await;
}
