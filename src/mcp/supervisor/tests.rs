//! Supervisor tests: a scripted server in a paused clock.

use std::collections::VecDeque;

use serde_json::json;
use toolgate_core::tool::{Annotations, McpTool};

use super::*;
use crate::listing::Listing;
use crate::signals::Signals;

mod restart;
mod waiting;

const BUDGET: Duration = Duration::from_secs(60);

/// The outcome of a scripted start.
enum ScriptedStart {
    /// Succeeds after that many seconds.
    Takes(u64),
    Fails(&'static str),
    /// Fails permanently.
    Misconfigured,
}
use ScriptedStart::{Fails, Misconfigured, Takes};

/// The scripted server and the log of the supervisor's actions. A start without a script succeeds at once.
struct TestServer {
    begun: Instant,
    openings: Mutex<VecDeque<ScriptedStart>>,
    /// The tools from now on, or why the list fails; and how long a list takes.
    tools: Mutex<(Result<Vec<&'static str>, &'static str>, Duration)>,
    announces: AtomicBool,
    /// Whether the next list finds the connection lost.
    loses_at_list: AtomicBool,
    links: Mutex<Vec<Signals>>,
    /// The actions, each with its second.
    log: Mutex<Vec<(u64, &'static str)>>,
}

struct FakeLink {
    world: Arc<TestServer>,
    signals: Signals,
    closed: AtomicBool,
}

impl TestServer {
    fn log(&self, what: &'static str) {
        lock(&self.log).push((self.begun.elapsed().as_secs(), what));
    }

    /// The seconds at which this action happened.
    fn seconds(&self, what: &str) -> Vec<u64> {
        lock(&self.log).iter().filter(|(_, did)| *did == what).map(|(second, _)| *second).collect()
    }

    fn count(&self, what: &str) -> usize {
        self.seconds(what).len()
    }

    fn newest(&self) -> Signals {
        lock(&self.links).last().expect("a connection").clone()
    }

    fn lists(&self, tools: &[&'static str]) {
        lock(&self.tools).0 = Ok(tools.to_vec());
    }
}

impl Dial for Arc<TestServer> {
    type Link = FakeLink;

    async fn open(&self, _meta: Map<String, Value>) -> Result<FakeLink, NotOpened> {
        self.log("start");
        let opening = lock(&self.openings).pop_front().unwrap_or(Takes(0));
        let failed = |reason: &str, may_pass| Err(NotOpened { reason: reason.into(), may_pass });
        match opening {
            Takes(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
            Fails(reason) => return failed(reason, true),
            Misconfigured => return failed("could not be started: no such command", false),
        }
        let signals = Signals::default();
        lock(&self.links).push(signals.clone());
        Ok(FakeLink { world: self.clone(), signals, closed: AtomicBool::new(false) })
    }
}

impl Link for FakeLink {
    fn signals(&self) -> &Signals {
        &self.signals
    }

    async fn lost(&self) {
        self.signals.lost.cancelled().await;
    }

    fn announces_changes(&self) -> bool {
        self.world.announces.load(Ordering::Relaxed)
    }

    async fn list(&self, _meta: &Map<String, Value>, budget: Duration) -> Result<Listing, String> {
        assert!(!self.closed.load(Ordering::Relaxed), "a closed connection was asked");
        self.world.log("list");
        if self.world.loses_at_list.swap(false, Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.signals.lost.cancel();
            return Err("ended the session".into());
        }
        let (tools, takes) = lock(&self.world.tools).clone();
        tokio::time::sleep(takes.min(budget)).await;
        let tool = |name: &str| McpTool {
            name: name.into(),
            description: String::new(),
            input_schema: json!({}),
            output_schema: None,
            annotations: Annotations::default(),
            pinned: None,
        };
        let tools = if takes > budget { Err("was silent") } else { tools };
        let tools = tools.map_err(str::to_owned)?;
        Ok(Listing { tools: Arc::new(tools.into_iter().map(tool).collect()), ..Listing::default() })
    }

    async fn exit_report(&self) -> String {
        "its process ended".into()
    }

    async fn close(&self) {
        assert!(!self.closed.swap(true, Ordering::Relaxed), "it is closed once");
        self.world.log("close");
    }

    async fn retire(self: Arc<Self>, _closing: CancellationToken) {
        assert!(self.signals.lost.is_cancelled(), "it is still usable");
        self.close().await;
    }
}

type Fake = Arc<Supervisor<Arc<TestServer>>>;

fn given(openings: impl IntoIterator<Item = ScriptedStart>) -> (Fake, Arc<TestServer>) {
    let world = Arc::new(TestServer {
        begun: Instant::now(),
        openings: Mutex::new(openings.into_iter().collect()),
        tools: Mutex::new((Ok(vec!["tool"]), Duration::ZERO)),
        announces: AtomicBool::new(true),
        loses_at_list: AtomicBool::new(false),
        links: Mutex::default(),
        log: Mutex::default(),
    });
    (Supervisor::new("shop".into(), world.clone(), BUDGET, TaskTracker::new(), StartLimiter::with_permits(8)), world)
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

async fn offer(supervisor: &Fake) -> ServerTools {
    supervisor.offer(Map::new(), false).await
}

async fn link(supervisor: &Fake, deadline: u64) -> Result<Arc<FakeLink>, String> {
    supervisor.link(Instant::now() + Duration::from_secs(deadline)).await
}

fn names(offer: &ServerTools) -> Vec<&str> {
    offer.tools.iter().map(|tool| tool.name.as_str()).collect()
}

/// The only reason why no tools are available.
fn missing(offer: ServerTools) -> String {
    assert_eq!((offer.tools.len(), offer.left_out.len(), &offer.stale), (0, 1, &None), "{offer:?}");
    offer.left_out[0].reason.clone()
}

fn state(supervisor: &Fake) -> &'static str {
    match supervisor.connection_state().state {
        State::Idle => "idle",
        State::Starting => "starting",
        State::Ready(_) => "ready",
        State::BackingOff { .. } => "backing off",
        State::Failed { .. } => "failed",
        State::Closed => "closed",
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_starts_once_and_not_before_it_is_needed() {
    let (supervisor, world) = given([Takes(3)]);
    seconds(100).await;
    assert_eq!((state(&supervisor), world.count("start")), ("idle", 0));
    let (one, two, three) = tokio::join!(offer(&supervisor), offer(&supervisor), link(&supervisor, 60));
    assert_eq!((names(&one), names(&two), three.is_ok()), (vec!["tool"], vec!["tool"], true));
    assert_eq!((world.count("start"), world.count("list")), (1, 1));
    assert_eq!(state(&supervisor), "ready");
    supervisor.close().await;
    assert_eq!((state(&supervisor), world.count("close")), ("closed", 1));
}

#[tokio::test(start_paused = true)]
async fn a_list_on_a_lost_connection_is_repeated_on_the_next_one() {
    let (supervisor, world) = given([]);
    world.loses_at_list.store(true, Ordering::Relaxed);
    assert_eq!(names(&offer(&supervisor).await), ["tool"], "the first start");
    assert_eq!((world.count("start"), world.count("list")), (2, 2));
    seconds(60).await;
    world.loses_at_list.store(true, Ordering::Relaxed);
    assert_eq!(supervisor.refresh(Map::new()).await, Ok(()), "an explicit refresh");
    assert_eq!(world.count("start"), 3);
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_could_not_use_a_short_connection_waits_for_one_more_start() {
    let (supervisor, world) = given([Takes(1), Takes(1), Fails("ended before it was ready")]);
    let mut request = std::pin::pin!(link(&supervisor, 60));
    assert!(futures::poll!(&mut request).is_pending());
    tokio::time::sleep(Duration::from_millis(1001)).await;
    world.newest().lost.cancel();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!((state(&supervisor), world.count("start")), ("backing off", 1));
    assert!(request.await.is_ok(), "the second connection");

    world.newest().lost.cancel();
    let reason = link(&supervisor, 60).await.err().expect("the third start failed");
    assert_eq!((reason.as_str(), world.count("start")), ("the MCP server `shop` ended before it was ready", 3));
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn retries_of_a_failing_start_slow_down_and_stop() {
    let (supervisor, world) = given((0..1000).map(|_| Fails("ended before it was ready")));
    assert_eq!(missing(offer(&supervisor).await), "the MCP server `shop` ended before it was ready");
    seconds(3600).await;
    let starts = world.seconds("start");
    let gaps: Vec<u64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().take(6).zip([1, 1, 2, 4, 8, 16]).all(|(gap, most)| *gap <= most), "{gaps:?}");
    assert!(gaps.iter().skip(6).all(|gap| (14..=30).contains(gap)), "{gaps:?}");
    assert!((600..=630).contains(starts.last().expect("some")), "no request needed it for ten minutes: {starts:?}");
    assert_eq!(state(&supervisor), "failed");

    let before = starts.len();
    assert_eq!(missing(offer(&supervisor).await), "the MCP server `shop` ended before it was ready");
    assert_eq!(world.count("start"), before + 1, "it is needed again");
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn during_backoff_a_request_waits_only_for_a_retry_that_is_near() {
    let (supervisor, world) = given((0..20).map(|_| Fails("ended before it was ready")));
    link(&supervisor, 60).await.err().expect("the first start failed");
    let begun = Instant::now();
    let second = link(&supervisor, 60).await.err().expect("the second as well");
    assert_eq!(second, "the MCP server `shop` ended before it was ready");
    assert!(begun.elapsed() >= Duration::from_millis(250), "it waited for the second");
    assert_eq!(world.count("start"), 2);

    while supervisor.connection_state().failures < 6 {
        seconds(1).await;
    }
    let begun = Instant::now();
    let reason = link(&supervisor, 60).await.err().expect("not there");
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert!(reason.starts_with("the MCP server `shop` failed 6 times in a row and is tried again in "), "{reason}");
    assert!(reason.ends_with(" s; the last time it ended before it was ready"), "{reason}");
    assert_eq!(missing(offer(&supervisor).await), reason);

    seconds(600).await;
    while !matches!(supervisor.connection_state().state, State::Ready(_)) {
        lock(&world.openings).clear();
        supervisor.start();
        seconds(1).await;
    }
    assert_eq!(names(&offer(&supervisor).await), ["tool"]);
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_fails_at_once_if_the_retry_comes_after_its_deadline() {
    let (supervisor, _) = given([Fails("x"), Fails("x"), Fails("x"), Fails("died")]);
    for _ in 0..4 {
        link(&supervisor, 60).await.err().expect("not there");
    }
    let begun = Instant::now();
    let reason = link(&supervisor, 1).await.err().expect("the next try is at least two seconds away");
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert!(reason.ends_with("the last time it died"), "{reason}");
    assert!(link(&supervisor, 60).await.is_ok());
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_is_retried_only_when_a_request_needs_the_server() {
    let (supervisor, world) = given([Misconfigured]);
    let reason = "the MCP server `shop` could not be started: no such command";
    assert_eq!(missing(offer(&supervisor).await), reason);
    seconds(300).await;
    assert_eq!((state(&supervisor), world.count("start")), ("failed", 1));
    assert_eq!(names(&offer(&supervisor).await), ["tool"], "it was installed meanwhile");
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_server_is_restarted_and_its_tools_are_kept_meanwhile() {
    let (supervisor, world) = given([Takes(0), Takes(20)]);
    offer(&supervisor).await;
    let fresh = supervisor.generation();
    seconds(120).await;
    world.newest().lost.cancel();
    seconds(1).await;
    assert_eq!(state(&supervisor), "starting");
    let away = supervisor.generation();
    assert!(away > fresh);
    let begun = Instant::now();
    let stale = offer(&supervisor).await;
    assert_eq!(begun.elapsed(), READY_TIMEOUT, "it might have come back");
    assert_eq!(names(&stale), ["tool"]);
    let reason =
        "the MCP server `shop` did not become ready within 5 s; before that it lost its connection: its process ended";
    assert_eq!((stale.stale.as_deref(), stale.left_out), (Some(reason), vec![]));
    world.lists(&["other", "tool"]);
    seconds(20).await;
    assert_eq!((state(&supervisor), world.count("start"), world.count("close")), ("ready", 2, 1));
    assert!(supervisor.generation() > away, "so that runs ask again");
    let back = offer(&supervisor).await;
    assert_eq!((names(&back), &back.stale), (vec!["other", "tool"], &None));
    assert_eq!(world.count("list"), 2, "once after each start");
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_crashes_after_every_start_is_not_started_in_a_hot_loop() {
    let (supervisor, world) = given([]);
    offer(&supervisor).await;
    for _ in 0..600 {
        let newest = world.newest();
        newest.lost.cancel();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(world.count("start") <= 10, "{:?}", world.seconds("start"));
    assert_eq!(world.count("close"), world.count("start") - usize::from(state(&supervisor) == "ready"));
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_minute_without_a_failure_resets_the_failure_count() {
    let (supervisor, world) = given([Fails("x"), Fails("x"), Fails("x"), Fails("x"), Takes(0)]);
    supervisor.start();
    seconds(20).await;
    assert_eq!((state(&supervisor), supervisor.connection_state().failures), ("ready", 4));
    seconds(60).await;
    world.newest().lost.cancel();
    seconds(1).await;
    assert_eq!((state(&supervisor), supervisor.connection_state().failures), ("ready", 1));
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_unused_server_is_not_restarted_before_it_is_needed() {
    let (supervisor, world) = given([]);
    offer(&supervisor).await;
    seconds(700).await;
    world.newest().lost.cancel();
    seconds(700).await;
    assert_eq!((state(&supervisor), world.count("start")), ("idle", 1));
    assert_eq!(supervisor.tools().1.as_deref(), Some("the MCP server `shop` lost its connection: its process ended"));
    let back = offer(&supervisor).await;
    assert_eq!((names(&back), &back.stale, world.count("start")), (vec!["tool"], &None, 2));
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_announcements_is_one_new_list_in_the_background() {
    let (supervisor, world) = given([]);
    offer(&supervisor).await;
    let before = supervisor.generation();
    world.lists(&["new"]);
    for _ in 0..5 {
        world.newest().tools_changed.notify_one();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(world.count("list"), 1, "announcements still arrive");
    seconds(2).await;
    assert_eq!(world.count("list"), 2);
    assert!(supervisor.generation() > before);
    assert_eq!(names(&offer(&supervisor).await), ["new"]);
    assert_eq!(world.count("list"), 2, "the announced change is listed");
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn without_announcements_runs_that_begin_together_share_one_list() {
    let (supervisor, world) = given([]);
    world.announces.store(false, Ordering::Relaxed);
    offer(&supervisor).await;
    tokio::join!(offer(&supervisor), offer(&supervisor));
    assert_eq!(world.count("list"), 1);
    world.lists(&["new"]);
    seconds(2).await;
    let (one, two) = tokio::join!(offer(&supervisor), offer(&supervisor));
    assert_eq!((names(&one), names(&two), world.count("list")), (vec!["new"], vec!["new"], 2));
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_list_costs_its_whole_budget_only_once() {
    let (supervisor, world) = given([]);
    world.announces.store(false, Ordering::Relaxed);
    lock(&world.tools).1 = Duration::from_secs(1000);
    let begun = Instant::now();
    assert_eq!(missing(offer(&supervisor).await), "the MCP server `shop` was silent");
    assert_eq!(begun.elapsed(), BUDGET);
    lock(&world.tools).1 = Duration::ZERO;
    seconds(2).await;
    assert_eq!(names(&offer(&supervisor).await), ["tool"]);

    lock(&world.tools).1 = Duration::from_secs(1000);
    seconds(2).await;
    let begun = Instant::now();
    let stale = offer(&supervisor).await;
    assert_eq!((names(&stale), begun.elapsed()), (vec!["tool"], READY_TIMEOUT));
    assert_eq!(stale.stale.as_deref(), Some("the MCP server `shop` did not list its tools within 5 s"));
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_list_keeps_the_tools_of_before() {
    let (supervisor, world) = given([]);
    offer(&supervisor).await;
    lock(&world.tools).0 = Err("refused the request");
    world.newest().tools_changed.notify_one();
    seconds(3).await;
    let stale = offer(&supervisor).await;
    assert_eq!(
        (names(&stale), stale.stale.as_deref()),
        (vec!["tool"], Some("the MCP server `shop` refused the request"))
    );
    assert_eq!(state(&supervisor), "ready");
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn closing_ends_waits_and_rejects_later_requests() {
    let (supervisor, world) = given([Takes(50)]);
    let closing = async {
        seconds(5).await;
        supervisor.close().await;
    };
    let (waiting, ()) = tokio::join!(link(&supervisor, 60), closing);
    assert_eq!(waiting.err().as_deref(), Some("the MCP server `shop` was shut down while it was starting"));
    let later = "the MCP server `shop` was shut down, because toolgate is ending";
    assert_eq!(link(&supervisor, 60).await.err().as_deref(), Some(later));
    assert_eq!(missing(offer(&supervisor).await), later);
    assert_eq!((world.count("start"), world.begun.elapsed()), (1, Duration::from_secs(5)));

    let (unneeded, world) = given([]);
    unneeded.close().await;
    assert_eq!(link(&unneeded, 60).await.err().as_deref(), Some(later));
    assert_eq!((state(&unneeded), world.count("start")), ("closed", 0));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_failed_twice_in_a_row_delays_no_turn() {
    let (supervisor, world) = given([Fails("ended"), Fails("ended"), Takes(30)]);
    missing(offer(&supervisor).await);
    seconds(3).await;
    assert_eq!((state(&supervisor), world.count("start"), supervisor.connection_state().failures), ("starting", 3, 2));
    let begun = Instant::now();
    let reason = missing(offer(&supervisor).await);
    assert_eq!(begun.elapsed(), IMREADY_TIMEOUT, "{reason}");
    assert!(reason.contains("did not become ready within 0.2 s") && reason.contains("ended"), "{reason}");
    seconds(30).await;
    assert_eq!(names(&offer(&supervisor).await), ["tool"]);
    supervisor.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_refresh_lists_a_current_list_again_and_reports_errors() {
    let (supervisor, world) = given([Takes(3)]);
    assert_eq!(supervisor.refresh(Map::new()).await, Ok(()));
    seconds(1).await;
    let before = world.count("list");
    world.lists(&["tool", "other"]);
    assert_eq!(supervisor.refresh(Map::new()).await, Ok(()));
    assert_eq!((world.count("list"), supervisor.tools()), (before + 1, (Some(2), None)));
    lock(&world.tools).0 = Err("lost its list");
    seconds(1).await;
    let refused = supervisor.refresh(Map::new()).await;
    assert_eq!(refused, Err("the MCP server `shop` lost its list".to_owned()));
    assert_eq!(supervisor.tools().0, Some(2), "the previous tools are kept");
    supervisor.close().await;
}
