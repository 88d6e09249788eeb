//! Helpers of these scenarios: a world is served, and a client sends requests.

use std::net::SocketAddr;

use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use toolgate::gateway::{Builder, Gateway};
use toolgate::service::{Caller, Service};

use super::described;
use crate::runner::world::World;

/// A gateway over the runner of a world.
pub(super) struct Served {
    pub(super) world: World,
    pub(super) address: SocketAddr,
    pub(super) gateway: Gateway,
    client: reqwest::Client,
    _serving: JoinSet<()>,
}

/// A response that was read.
#[derive(Debug)]
pub(super) struct HttpAnswer {
    pub(super) status: StatusCode,
    pub(super) headers: reqwest::header::HeaderMap,
    pub(super) body: Value,
}

impl Served {
    /// A gateway that allows every client everything.
    pub(super) async fn to_all(world: World) -> Self {
        Self::with(world, |builder| builder.anonymous(Caller::local())).await
    }

    /// A gateway with further settings.
    pub(super) async fn with(world: World, set: impl FnOnce(Builder) -> Builder) -> Self {
        Self::over(Service::new(world.runner.clone()), world, set).await
    }

    /// A gateway over a service of the world's runner, with further settings.
    pub(super) async fn over(service: Service, world: World, set: impl FnOnce(Builder) -> Builder) -> Self {
        let gateway = set(Gateway::builder(service)).build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = gateway.router().into_make_service_with_connect_info::<SocketAddr>();
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { world, address, gateway, client: reqwest::Client::new(), _serving: serving }
    }

    /// A request that can be changed before it is sent.
    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.address))
    }

    pub(super) async fn get(&self, path: &str) -> HttpAnswer {
        HttpAnswer::of(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> HttpAnswer {
        HttpAnswer::of(self.request(Method::POST, path).json(&body).send().await.unwrap()).await
    }

    /// Starts a run, waits until it is pending or has ended, and returns its id.
    pub(super) async fn run(&self, body: Value) -> String {
        let created = self.post("/v1/runs", body).await;
        assert_eq!(created.status, 201, "{created:?}");
        created.text("id").to_owned()
    }
}

impl HttpAnswer {
    pub(super) async fn of(response: Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        described::check_headers(response.url().path(), status.as_u16(), &headers);
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        described::check(&body);
        Self { status, headers, body }
    }

    pub(super) fn text(&self, field: &str) -> &str {
        self.body[field].as_str().unwrap_or_else(|| panic!("{field} in {:#}", self.body))
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("{name} in {:?}", self.headers)).to_str().unwrap()
    }

    /// The code of a problem, whose form is checked.
    pub(super) fn problem(&self) -> &str {
        assert_eq!(self.header("cache-control"), "no-store", "a browser would keep some of them");
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        assert_eq!(self.body["status"], self.status.as_u16(), "{self:?}");
        assert_eq!(self.body["request_id"], self.header("x-request-id"), "{self:?}");
        let page = format!("/docs/errors/{}.md", self.text("code"));
        assert!(self.text("type").starts_with("https://") && self.text("type").ends_with(&page), "{self:?}");
        assert!(!self.text("detail").is_empty(), "{self:?}");
        self.text("code")
    }
}
