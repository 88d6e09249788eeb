//! Stream tickets: a page opens an event stream without a key, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::Method;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use toolgate::gateway::{Builder, GatewaySettings, Origins};
use toolgate::ports::{AccessKey, AccessKeys as _, KeyHash, Revoked, StreamTickets as _, TicketedStream};
use toolgate::service::{NewKey, Scope, Service, mint, mint_ticket};
use toolgate::stores::MemoryStore;

use super::access_log::Log;
use super::served::{HttpAnswer, Served};
use super::streamed::{Stream, events};
use crate::runner::world::{Kept, given_an_agent, say};

const PAGE: &str = "https://app.example.com";

/// A gateway with API keys, tickets and a page, and the store of keys and tickets.
struct Ticketed {
    served: Served,
    store: Arc<MemoryStore>,
}

fn with_store(builder: Builder, store: &Arc<MemoryStore>) -> Builder {
    let settings = GatewaySettings { recheck: Duration::from_millis(20), ..GatewaySettings::default() };
    let origins = Origins { allowed: vec![PAGE.to_owned()], hosts: None };
    builder
        .keys(store.clone())
        .stream_tickets(store.clone())
        .idempotency(store.clone())
        .origins(origins)
        .settings(settings)
}

async fn ticketed() -> Ticketed {
    let turns = json!([{"calls": [{"name": "ext_lookup"}]}, say("Done.")]);
    let world = given_an_agent().with_an_external_tool("lookup").whose_model_says(turns).kept(Kept::InAFile).await;
    let store = Arc::new(MemoryStore::new());
    let served = Served::with(world, |builder| with_store(builder, &store)).await;
    Ticketed { served, store }
}

impl Ticketed {
    async fn key(&self, tenant: &str, scopes: &[Scope]) -> (String, AccessKey) {
        let new = NewKey {
            name: "ci".to_owned(),
            tenant: tenant.into(),
            principal: None,
            scopes: scopes.iter().copied().collect(),
            expires_at: None,
            by: "ann".to_owned(),
        };
        let (secret, hash, key) = mint(new, Timestamp::now()).unwrap();
        self.store.put_key(&hash, &key).await.unwrap();
        (secret.expose_secret().to_owned(), key)
    }

    async fn post(&self, path: &str, key: &str, body: Value) -> HttpAnswer {
        let request = self.served.request(Method::POST, path).bearer_auth(key).json(&body);
        HttpAnswer::of(request.send().await.unwrap()).await
    }

    /// Starts a run, which is pending, and returns its id.
    async fn run(&self, key: &str, session: &str) -> String {
        let body = json!({"input": "Hello", "external_tools": [{"name": "lookup"}], "session_id": session});
        self.post("/v1/runs", key, body).await.text("id").to_owned()
    }

    /// The address of a stream, with a new ticket.
    async fn address(&self, key: &str, ticket: Value) -> String {
        let created = self.post("/v1/stream-tickets", key, ticket).await;
        assert_eq!(created.status, 201, "{created:?}");
        assert_eq!(created.header("cache-control"), "no-store");
        assert!(created.text("url").ends_with(&format!("ticket={}", created.text("ticket"))), "{created:?}");
        created.text("url").to_owned()
    }

    /// The refusal of a request without a key.
    async fn refusal(&self, method: Method, address: &str) -> HttpAnswer {
        HttpAnswer::of(self.served.request(method, address).json(&json!({})).send().await.unwrap()).await
    }
}

const READER: [Scope; 2] = [Scope::RunsRead, Scope::RunsWrite];

#[tokio::test]
async fn a_ticket_opens_its_stream_again_and_again() {
    let ticketed = ticketed().await;
    let (key, _) = ticketed.key("acme", &READER).await;
    let run = ticketed.run(&key, "s1").await;
    let of_run = ticketed.address(&key, json!({"stream": "run", "run_id": run})).await;
    let of_session = ticketed.address(&key, json!({"stream": "session", "session_id": "s1"})).await;
    let of_all = ticketed.address(&key, json!({"stream": "events"})).await;
    assert!(of_session.starts_with("/v1/events?session_id=s1&"), "{of_session}");

    let first = ticketed.served.watch(&format!("{of_run}&until=idle&include=content")).await.rest().await;
    let again = ticketed.served.watch_after(&format!("{of_run}&until=idle"), "0").await.rest().await;

    assert_eq!((events(&first)[0], first[0].data["input"].as_str()), ("execution.started", Some("Hello")));
    assert_eq!(events(&again), events(&first)[1..]);
    for address in [of_session, format!("{of_all}&type=execution.started,execution.pending")] {
        let mut stream = ticketed.served.watch_after(&address, "0").await;
        assert_eq!(stream.up_to("execution.pending").await[0].data["run_id"], run.as_str());
    }
}

#[tokio::test]
async fn a_ticket_opens_its_stream_on_every_node_of_the_store() {
    let ticketed = ticketed().await;
    let (key, _) = ticketed.key("acme", &READER).await;
    let run = ticketed.run(&key, "s1").await;
    let service = Service::new(ticketed.served.world.another_process().await);
    let world = given_an_agent().kept(Kept::InMemory).await;
    let other = Served::over(service, world, |builder| with_store(builder, &ticketed.store)).await;

    let address = ticketed.address(&key, json!({"stream": "run", "run_id": run})).await;

    let told = other.watch(&format!("{address}&until=idle")).await.rest().await;
    assert_eq!((events(&told)[0], *events(&told).last().unwrap()), ("execution.started", "execution.pending"));
}

#[tokio::test]
async fn a_ticket_opens_nothing_else() {
    let ticketed = ticketed().await;
    let (key, _) = ticketed.key("acme", &READER).await;
    let run = ticketed.run(&key, "s1").await;
    let other = ticketed.run(&key, "s2").await;
    let of_run = ticketed.address(&key, json!({"stream": "run", "run_id": run})).await;
    let (_, of_run) = of_run.split_once('?').unwrap();
    let of_session = ticketed.address(&key, json!({"stream": "session", "session_id": "s1"})).await;
    let (_, of_session) = of_session.rsplit_once('&').unwrap();

    for (method, address) in [
        (Method::GET, format!("/v1/runs/{other}/events?{of_run}")),
        (Method::GET, format!("/v1/runs/{run}?{of_run}")),
        (Method::GET, format!("/v1/runs/{run}/messages?{of_run}")),
        (Method::POST, format!("/v1/runs/{run}/cancel?{of_run}")),
        (Method::POST, format!("/v1/stream-tickets?{of_run}")),
        (Method::GET, format!("/v1/events?{of_run}")),
        (Method::GET, format!("/v1/events?{of_session}")),
        (Method::GET, format!("/v1/events?session_id=s2&{of_session}")),
        (Method::GET, format!("/v1/events?session_id=s1&session_id=s2&{of_session}")),
        (Method::GET, format!("/v1/approvals/events?{of_session}")),
        (Method::GET, format!("/v1/runs/{run}/events?{of_run}&{of_run}")),
        (Method::GET, format!("/v1/runs/{run}/events?ticket=")),
        (Method::GET, format!("/v1/runs/{run}/events?ticket={key}")),
    ] {
        let refused = ticketed.refusal(method, &address).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (401, "unauthorized"), "{address}");
        assert!(!refused.body.to_string().contains("tg_st_"), "{refused:?}");
    }
    let both = ticketed.served.request(Method::GET, &format!("/v1/runs/{run}/events?{of_run}")).bearer_auth(&key);
    assert_eq!(HttpAnswer::of(both.send().await.unwrap()).await.problem(), "invalid_request");
    let secret = of_run.strip_prefix("ticket=").unwrap();
    let as_key = ticketed.served.request(Method::GET, "/v1/runs").bearer_auth(secret).send().await.unwrap();
    assert_eq!(HttpAnswer::of(as_key).await.problem(), "unauthorized");
}

#[tokio::test]
async fn a_ticket_needs_what_its_stream_needs() {
    let ticketed = ticketed().await;
    let (reader, _) = ticketed.key("acme", &READER).await;
    let (stranger, _) = ticketed.key("brim", &READER).await;
    let (approver, _) = ticketed.key("acme", &[Scope::ApprovalsRead]).await;
    let run = ticketed.run(&reader, "s1").await;
    let of_run = json!({"stream": "run", "run_id": run});

    ticketed.address(&approver, json!({"stream": "approvals"})).await;

    for (key, ticket, problem) in [
        (&approver, of_run.clone(), "forbidden"),
        (&approver, json!({"stream": "events"}), "forbidden"),
        (&reader, json!({"stream": "approvals"}), "forbidden"),
        (&stranger, of_run, "validation"),
        (&reader, json!({"stream": "run"}), "validation"),
        (&reader, json!({"stream": "events", "run_id": run}), "validation"),
        (&reader, json!({"stream": "session", "session_id": "s1", "run_id": run}), "validation"),
        (&reader, json!({"stream": "events", "expires_in_s": 0}), "validation"),
        (&reader, json!({"stream": "events", "expires_in_s": 3601}), "validation"),
    ] {
        let refused = ticketed.post("/v1/stream-tickets", key, ticket.clone()).await;
        assert_eq!(refused.problem(), problem, "{ticket}");
    }
    let without = ticketed.refusal(Method::POST, "/v1/stream-tickets").await;
    assert_eq!(without.problem(), "unauthorized");
}

#[tokio::test]
async fn an_expired_ticket_opens_nothing_and_an_open_stream_stays() {
    let ticketed = ticketed().await;
    let (key, _) = ticketed.key("acme", &READER).await;
    let now = ticketed.served.world.runner.now();
    let credentials = format!("Bearer {key}");
    let expired = mint_ticket(TicketedStream::Events, Some(credentials.as_bytes()), now).unwrap();
    let (secret, hash, ticket) = expired;
    ticketed.store.put_ticket(&hash, &ticket, now - Duration::from_secs(1)).await.unwrap();

    let refused = ticketed.refusal(Method::GET, &format!("/v1/events?ticket={}", secret.expose_secret())).await;

    assert_eq!((refused.status.as_u16(), refused.problem()), (401, "unauthorized"));
    let address = ticketed.address(&key, json!({"stream": "events"})).await;
    let mut stream = ticketed.served.watch(&address).await;
    let (_, secret) = address.rsplit_once('=').unwrap();
    let expired = mint_ticket(TicketedStream::Events, None, now).unwrap().2;
    ticketed.store.put_ticket(&KeyHash::for_secret(secret), &expired, now).await.unwrap();
    ticketed.run(&key, "s1").await;
    stream.up_to("execution.pending").await;
}

#[tokio::test]
async fn a_stream_ends_with_the_credentials_behind_its_ticket() {
    let ticketed = ticketed().await;
    let (key, record) = ticketed.key("acme", &READER).await;
    let address = ticketed.address(&key, json!({"stream": "events"})).await;
    let mut stream = ticketed.served.watch(&address).await;

    let revoked = Revoked { at: Timestamp::now(), by: "ann".to_owned() };
    ticketed.store.revoke_key(&record.id, &revoked).await.unwrap();

    assert_eq!(events(&stream.rest().await), Vec::<&str>::new());
    assert_eq!(ticketed.refusal(Method::GET, &address).await.problem(), "unauthorized");
}

#[tokio::test]
async fn a_page_opens_a_stream_with_a_ticket() {
    let ticketed = ticketed().await;
    let (key, _) = ticketed.key("acme", &READER).await;
    let preflight = ticketed.served.request(Method::OPTIONS, "/v1/stream-tickets").header("origin", PAGE);
    let preflight = preflight.header("access-control-request-method", "POST");
    let preflight = preflight.header("access-control-request-headers", "authorization,content-type");
    let allowed = preflight.send().await.unwrap();
    assert_eq!(allowed.headers()["access-control-allow-origin"], PAGE);
    let address = ticketed.address(&key, json!({"stream": "events"})).await;

    // An EventSource adds these headers, and no others.
    let open = |origin: &str| {
        let request = ticketed.served.request(Method::GET, &address).header("origin", origin);
        request.header("sec-fetch-site", "cross-site").header("cache-control", "no-cache")
    };
    let mut stream = Stream::of(open(PAGE)).await;

    assert_eq!(stream.response.headers()["access-control-allow-origin"], PAGE);
    ticketed.run(&key, "s1").await;
    assert_eq!(stream.up_to("execution.pending").await[0].event, "execution.started");
    let foreign = HttpAnswer::of(open("https://evil.example").send().await.unwrap()).await;
    assert_eq!(foreign.problem(), "forbidden");
}

#[tokio::test]
async fn a_repeated_request_returns_another_ticket_and_neither_is_stored_or_logged() {
    let (log, _logging) = Log::begun();
    let ticketed = ticketed().await;
    let (key, _) = ticketed.key("acme", &READER).await;
    let body = json!({"stream": "events"});
    let request = || ticketed.served.request(Method::POST, "/v1/stream-tickets").header("idempotency-key", "once");
    let created = HttpAnswer::of(request().bearer_auth(&key).json(&body).send().await.unwrap()).await;
    let secret = created.text("ticket").to_owned();
    let again = HttpAnswer::of(request().bearer_auth(&key).json(&body).send().await.unwrap()).await;
    assert!(again.status == 201 && !again.body.to_string().contains(&secret), "{again:?}");
    for ticket in [&secret, again.text("ticket")] {
        ticketed.served.watch(&format!("/v1/events?ticket={ticket}")).await;
    }

    let stream = ticketed.served.watch(&format!("/v1/events?ticket={secret}")).await;
    drop(stream);
    ticketed.refusal(Method::GET, &format!("/v1/runs/run_1/events?ticket={secret}")).await;
    ticketed.refusal(Method::GET, &format!("/v1/nowhere?ticket={secret}")).await;

    let logged = log.text();
    assert!(logged.contains("/v1/events") && logged.contains("toolgate::http"), "{logged}");
    assert!(!logged.contains(&secret), "{logged}");
    let stored = format!("{:?}", ticketed.store);
    assert!(!stored.contains(&secret) && !stored.contains(&key), "{stored}");
}
