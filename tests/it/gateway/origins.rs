//! Origin checks: pages in browsers can use the API only where it is allowed, and by no name that only looks local.

use reqwest::Method;
use serde_json::{Value, json};
use toolgate::gateway::Origins;
use toolgate::service::Caller;

use super::served::{HttpAnswer, Served};
use crate::runner::world::{Kept, given_an_agent};

async fn fenced(hosts: Option<&[&str]>) -> Served {
    let world = given_an_agent().kept(Kept::InMemory).await;
    let hosts = hosts.map(|hosts| hosts.iter().map(|&host| host.to_owned()).collect());
    let origins = Origins { allowed: vec!["https://app.example.com".to_owned()], hosts };
    Served::with(world, |builder| builder.origins(origins).anonymous(Caller::local())).await
}

async fn asked(served: &Served, method: Method, headers: &[(&str, &str)]) -> HttpAnswer {
    let request = served.request(method, "/v1/runs");
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    HttpAnswer::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn an_anonymous_listener_refuses_foreign_host_names() {
    let served = fenced(Some(&["gate.internal"])).await;
    for own in ["localhost", "127.0.0.1:8484", "[::1]:8484", "gate.internal:80", "GATE.internal"] {
        let answer = asked(&served, Method::GET, &[("host", own)]).await;
        assert_eq!(answer.status, 200, "{own}: {answer:?}");
    }
    for foreign in ["evil.example", "localhost.evil.example:8484", "127.0.0.1.evil.example", "10.0.0.1", ""] {
        let answer = asked(&served, Method::GET, &[("host", foreign)]).await;
        assert_eq!((answer.status.as_u16(), answer.problem()), (403, "forbidden"), "{foreign}");
    }
    let with_credentials = fenced(None).await;
    assert_eq!(asked(&with_credentials, Method::GET, &[("host", "any.example")]).await.status, 200);
}

#[tokio::test]
async fn a_page_may_ask_if_its_origin_is_configured() {
    let served = fenced(None).await;

    let allowed = asked(&served, Method::GET, &[("origin", "https://app.example.com")]).await;

    assert_eq!(allowed.status, 200);
    assert_eq!(allowed.header("access-control-allow-origin"), "https://app.example.com");
    let exposed = allowed.header("access-control-expose-headers");
    for name in ["location", "etag", "x-request-id", "ratelimit", "retry-after", "idempotent-replayed"] {
        assert!(exposed.split(',').any(|exposed| exposed.trim() == name), "{name} in {exposed}");
    }
    assert!(!allowed.headers.contains_key("access-control-allow-credentials"));
    for foreign in ["https://evil.example", "null", "http://app.example.com", "https://app.example.com.evil.example"] {
        let refused = asked(&served, Method::GET, &[("origin", foreign)]).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (403, "forbidden"), "{foreign}");
        assert!(!refused.headers.contains_key("access-control-allow-origin"), "{refused:?}");
    }
    let posted = served.request(Method::POST, "/v1/runs").header("origin", "https://evil.example");
    let posted = HttpAnswer::of(posted.json(&json!({"input": "Hello"})).send().await.unwrap()).await;
    assert_eq!(posted.problem(), "forbidden");
    assert_eq!(served.get("/v1/runs").await.body["data"], json!([]), "nothing was started");
}

#[tokio::test]
async fn a_foreign_page_cannot_load_the_api_as_a_picture() {
    let served = fenced(Some(&[])).await;
    for foreign in ["cross-site", "same-site"] {
        let picture = asked(&served, Method::GET, &[("host", "localhost"), ("sec-fetch-site", foreign)]).await;
        assert_eq!((picture.status.as_u16(), picture.problem()), (403, "forbidden"), "{foreign}");
    }
    for own in ["same-origin", "none"] {
        let own = asked(&served, Method::GET, &[("host", "localhost"), ("sec-fetch-site", own)]).await;
        assert_eq!(own.status, 200, "{own:?}");
    }
    let allowed = [("origin", "https://app.example.com"), ("sec-fetch-site", "cross-site"), ("host", "localhost")];
    assert_eq!(asked(&served, Method::GET, &allowed).await.status, 200);
}

#[tokio::test]
async fn a_preflight_needs_no_credentials() {
    let served = fenced(None).await;
    let preflight = |origin: &'static str| {
        [
            ("origin", origin),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "authorization,content-type,idempotency-key"),
        ]
    };

    let allowed = asked(&served, Method::OPTIONS, &preflight("https://app.example.com")).await;

    assert_eq!(allowed.status, 200, "{allowed:?}");
    assert_eq!(allowed.header("access-control-allow-origin"), "https://app.example.com");
    assert!(allowed.header("access-control-allow-methods").contains("POST"));
    assert!(allowed.header("access-control-allow-headers").contains("idempotency-key"));
    let refused = asked(&served, Method::OPTIONS, &preflight("https://evil.example")).await;
    assert_eq!(refused.status, 403, "{refused:?}");
}

#[tokio::test]
async fn a_problem_can_be_read_by_the_page_that_asked() {
    let served = fenced(None).await;
    let request = served.request(Method::GET, "/v1/runs/run_unknown").header("origin", "https://app.example.com");
    let problem = HttpAnswer::of(request.send().await.unwrap()).await;
    assert_eq!(problem.problem(), "not_found");
    assert_eq!(problem.header("access-control-allow-origin"), "https://app.example.com");
}

/// A request as Chromium sends it for a page, besides the body.
async fn from_a_page(
    served: &Served,
    method: Method,
    path: &str,
    headers: [(&str, &str); 4],
    body: &Value,
) -> HttpAnswer {
    let [host, origin, site, mode] = headers;
    let request = served.request(method.clone(), path);
    let request = [host, origin, site, mode, ("sec-fetch-dest", "empty")]
        .into_iter()
        .fold(request, |request, (name, value)| request.header(name, value));
    let request = if method == Method::POST { request.json(body) } else { request };
    HttpAnswer::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn a_page_of_this_server_may_ask_by_each_of_its_names() {
    for served in [fenced(Some(&["gate.internal"])).await, fenced(None).await] {
        for (host, origin) in [
            ("127.0.0.1:8484", "http://127.0.0.1:8484"),
            ("localhost:8484", "http://localhost:8484"),
            ("[::1]:8484", "http://[::1]:8484"),
            ("gate.internal", "https://gate.internal"),
            ("gate.internal:443", "https://gate.internal"),
            ("GATE.internal:80", "http://gate.internal"),
        ] {
            let own =
                [("host", host), ("origin", origin), ("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")];
            let script = from_a_page(&served, Method::GET, "/docs/reader.js", own, &Value::Null).await;
            assert_eq!(script.status, 200, "{origin}: {script:?}");
            let listed = from_a_page(&served, Method::GET, "/v1/runs", own, &Value::Null).await;
            assert_eq!(listed.status, 200, "{origin}: {listed:?}");
            // The response is about the body, so the request passed the checks.
            let tried = from_a_page(&served, Method::POST, "/v1/runs", own, &json!({"input": ""})).await;
            assert_eq!(tried.problem(), "validation", "{origin}");
        }
    }
}

#[tokio::test]
async fn a_page_whose_origin_is_almost_this_server_may_not_ask() {
    let served = fenced(Some(&["gate.internal"])).await;
    for (host, origin, site) in [
        ("127.0.0.1:8484", "http://127.0.0.1:8485", "same-site"),
        ("127.0.0.1:8484", "http://localhost:8484", "cross-site"),
        ("127.0.0.1:8484", "http://127.0.0.1", "same-site"),
        ("127.0.0.1:8484", "null", "cross-site"),
        ("127.0.0.1:8484", "file://127.0.0.1:8484", "cross-site"),
        ("gate.internal", "http://gate.internal", "cross-site"),
        ("gate.internal", "https://gate.internal.evil.example", "cross-site"),
        // A name that resolves to the loopback address later: the browser takes it for the page's own server.
        ("evil.example:8484", "http://evil.example:8484", "same-origin"),
    ] {
        let foreign = [("host", host), ("origin", origin), ("sec-fetch-site", site), ("sec-fetch-mode", "cors")];
        let refused = from_a_page(&served, Method::POST, "/v1/runs", foreign, &json!({"input": "Hello"})).await;
        assert_eq!((refused.status.as_u16(), refused.problem()), (403, "forbidden"), "{origin} at {host}");
    }
    assert_eq!(served.get("/v1/runs").await.body["data"], json!([]), "nothing was started");
}
