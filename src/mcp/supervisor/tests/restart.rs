//! Restarts that a caller requests.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_restart_replaces_the_connection() {
    let (supervisor, world) = given([Takes(3), Takes(3)]);
    let first = link(&supervisor, 60).await.expect("a connection");
    world.lists(&["other"]);
    seconds(1).await;

    assert_eq!(supervisor.restart(Map::new()).await, Ok(()));

    assert!(first.closed.load(Ordering::Relaxed), "the old one is closed");
    assert_eq!((world.count("start"), world.count("close"), state(&supervisor)), (2, 1, "ready"));
    assert_eq!(names(&offer(&supervisor).await), ["other"]);
    seconds(100).await;
    assert_eq!(world.count("start"), 2, "once is enough");
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_ignores_the_backoff_and_joins_a_start_under_way() {
    let (supervisor, world) = given((0..1000).map(|_| Fails("ended before it was ready")));
    offer(&supervisor).await;
    seconds(60).await;
    *lock(&world.openings) = [Misconfigured].into();
    let (restarted, joined) = tokio::join!(supervisor.restart(Map::new()), supervisor.restart(Map::new()));
    let expected = Err("the MCP server `shop` could not be started: no such command".to_owned());
    assert_eq!((&restarted, state(&supervisor)), (&expected, "failed"), "{joined:?}");
    lock(&world.openings).push_back(Takes(20));
    let starts = world.count("start");
    let (one, other) = tokio::join!(supervisor.restart(Map::new()), async {
        seconds(5).await;
        supervisor.restart(Map::new()).await
    });
    assert_eq!((one, other, world.count("start")), (Ok(()), Ok(()), starts + 1));
    supervisor.close().await;
    assert!(supervisor.restart(Map::new()).await.is_err(), "it was shut down");
}
