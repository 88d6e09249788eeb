//! Floods: servers that send without limit. They cost a bounded amount of memory, slow no other server, and end with a
//! reason; an answer within a flood arrives, and closing does not wait for its end.

use toolgate::core::tool::FailureKind;

use super::*;

const FLOODS: [&str; 6] =
    ["ping-flood", "request-flood", "unknown-flood", "log-flood", "progress-flood", "change-flood"];
/// A number of messages that no test waits for.
const NEVER: &str = "flood-answers=1000000000";

/// The path of a flood.
#[derive(Clone, Copy, Debug)]
enum Way {
    Stdio,
    StreamOfCall,
    StreamOfSession,
}

const WAYS: [Way; 3] = [Way::Stdio, Way::StreamOfCall, Way::StreamOfSession];

/// A flooding server, with the handle that ends it.
struct Flooding {
    settings: ServerSettings,
    wire: Wire,
    _endpoint: Option<Endpoint>,
}

impl Flooding {
    async fn with(way: Way, faults: &[&str]) -> Self {
        let mut faults = faults.to_vec();
        if let Way::Stdio = way {
            let (settings, wire) = watched(&faults);
            return Self { settings, wire, _endpoint: None };
        }
        if let Way::StreamOfSession = way {
            faults.push("flood-unasked");
        }
        let mut endpoint = Endpoint::with(&faults).await;
        let wire = std::mem::replace(&mut endpoint.wire, Wire::new());
        Self { settings: endpoint.settings(), wire, _endpoint: Some(endpoint) }
    }

    /// Waits until a flood can arrive on that path.
    async fn listened_to(&self, way: Way) {
        if let Way::StreamOfSession = way {
            eventually("the session stream is open", async || !self.wire.noted("listening").is_empty()).await;
        }
    }

    async fn flooded(&self) {
        eventually("a flood arrives", async || !self.wire.noted("flooded").is_empty()).await;
    }
}

#[tokio::test]
async fn an_answer_that_comes_in_a_flood_arrives() {
    for (way, flood) in all() {
        let bad = Flooding::with(way, &[flood, "flood-answers=2000"]).await;
        // A loaded machine takes minutes for the flood; the limit of the call is not the subject here.
        let settings = ServerSettings { call_timeout: Duration::from_secs(600), ..bad.settings.clone() };
        let servers = servers([("bad", settings)]);
        list(&servers, &["bad"]).await;
        bad.listened_to(way).await;
        assert_eq!(echo(&servers, "bad", "hello").await, "hello", "{way:?} {flood}");
        soon("the servers are closed", servers.close()).await;
    }
}

#[tokio::test]
async fn a_call_without_an_answer_ends_at_its_limit_and_names_the_flood() {
    let methods = ["ping", "roots/list", "tea/brew", "message", "progress", "list_changed"];
    for (way, (flood, method)) in
        WAYS.iter().flat_map(|way| FLOODS.into_iter().zip(methods).map(move |row| (*way, row)))
    {
        let bad = Flooding::with(way, &[flood, NEVER]).await;
        let limits = (Duration::from_millis(700), Duration::from_millis(900));
        let settings = ServerSettings { call_timeout: limits.0, total_timeout: limits.1, ..bad.settings.clone() };
        let servers = servers([("bad", settings)]);
        list(&servers, &["bad"]).await;
        bad.listened_to(way).await;
        let (kind, message) = failed(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
        assert_eq!(kind, FailureKind::Timeout, "{way:?} {flood}: {message}");
        let named = message.contains("meanwhile it sent ") && message.contains(&format!("{method}`"));
        assert!(named, "{way:?} {flood}: {message}");
        soon("the servers are closed", servers.close()).await;
    }
}

#[tokio::test]
async fn closing_does_not_wait_for_the_end_of_a_flood() {
    for (way, flood) in all() {
        let bad = Flooding::with(way, &[flood, NEVER]).await;
        let servers = servers([("bad", bad.settings.clone())]);
        list(&servers, &["bad"]).await;
        bad.listened_to(way).await;
        let closing = async {
            bad.flooded().await;
            soon(&format!("a server is closed: {way:?} {flood}"), servers.close()).await;
        };
        let (outcome, ()) = tokio::join!(call(&servers, "bad", "echo", json!({"text": "hello"})), closing);
        let (kind, message) = failed(outcome);
        assert_eq!(kind, FailureKind::Disconnected, "{way:?} {flood}: {message}");
    }
}

#[tokio::test]
async fn a_flood_hinders_no_other_server() {
    for way in WAYS {
        let floods = futures::future::join_all(
            FLOODS.map(|flood| async move { (flood, Flooding::with(way, &[flood, NEVER]).await) }),
        );
        let floods = floods.await;
        // Six floods at full speed slow the calls beside them down; the limit of a flooded call is not the subject here.
        let unlimited =
            |bad: &Flooding| ServerSettings { call_timeout: Duration::from_secs(600), ..bad.settings.clone() };
        let settings = floods.iter().map(|(flood, bad)| (*flood, unlimited(bad)));
        let good = [("good", fault(&[]))].into_iter();
        let servers = Servers::new(settings.chain(good).map(|(id, settings)| (id.into(), settings)));
        list(&servers, &[FLOODS.as_slice(), &["good"]].concat()).await;
        for (_, bad) in &floods {
            bad.listened_to(way).await;
        }
        let flooded = FLOODS.map(|flood| Box::pin(call(&servers, flood, "echo", json!({"text": "hello"}))));
        let beside = async {
            for (_, bad) in &floods {
                bad.flooded().await;
            }
            for number in 0..5 {
                assert_eq!(echo(&servers, "good", &number.to_string()).await, number.to_string());
            }
        };
        tokio::select! {
            () = beside => {}
            (outcome, ..) = futures::future::select_all(flooded) => panic!("{way:?}: a call in a flood ended: {outcome:?}"),
        }
        soon("the servers are closed", servers.close()).await;
    }
}

#[tokio::test]
async fn a_server_that_asks_without_end_and_reads_nothing_is_cut_with_a_reason() {
    for flood in ["ping-flood", "request-flood"] {
        let servers = servers([("bad", fault(&[flood]))]);
        list(&servers, &["bad"]).await;
        let first = status(&servers, "bad").pid.expect("a process");
        let (kind, message) = failed(call(&servers, "bad", "echo", json!({"text": "hello"})).await);
        assert_eq!(kind, FailureKind::Disconnected, "{flood}: {message}");
        assert!(message.contains("it does not read what it is sent"), "{flood}: {message}");
        eventually("the process is gone", async || !is_running(first)).await;
        servers.close().await;
    }
}

/// Every flood on every path.
fn all() -> impl Iterator<Item = (Way, &'static str)> {
    WAYS.into_iter().flat_map(|way| FLOODS.map(|flood| (way, flood)))
}
