//! Tenant isolation: runs of tenants are kept apart, and no caller acts beyond its scopes.

use std::sync::Arc;

use async_trait::async_trait;
use axum::http::request::Parts;
use reqwest::Method;
use serde_json::{Value, json};
use toolgate::gateway::{Authenticator, Problem};
use toolgate::service::{Caller, Scope, Scopes};

use super::served::{HttpAnswer, Served};
use crate::runner::world::{Kept, given_an_agent, say};

/// Authenticates every request by its own claim: `Authorization: TENANT SCOPE,SCOPE`.
struct Trusting;

#[async_trait]
impl Authenticator for Trusting {
    async fn authenticate(&self, request: &Parts) -> Result<Option<Caller>, Problem> {
        let Some(said) = request.headers.get("authorization") else { return Ok(None) };
        let (tenant, scopes) = said.to_str().unwrap().split_once(' ').unwrap();
        let scopes: Scopes = scopes.split(',').filter_map(Scope::parse).collect();
        Ok(Some(Caller { tenant: tenant.into(), name: tenant.into(), principal: None, scopes }))
    }
}

/// Every endpoint of one run, with the scope it requires.
fn everything() -> Vec<(Method, &'static str, Value, &'static str)> {
    vec![
        (Method::GET, "", Value::Null, "runs:read"),
        (Method::GET, "/events", Value::Null, "runs:read"),
        (Method::GET, "/messages", Value::Null, "runs:read"),
        (Method::GET, "/export", Value::Null, "runs:read"),
        (Method::GET, "/blobs/x", Value::Null, "runs:read"),
        (Method::POST, "/messages", json!({"text": "Hello"}), "runs:write"),
        (Method::POST, "/resume", json!({}), "runs:write"),
        (Method::POST, "/pause", json!({}), "runs:write"),
        (Method::POST, "/cancel", json!({}), "runs:write"),
        (Method::POST, "/fork", json!({}), "runs:write"),
        (Method::POST, "/retry", json!({}), "runs:write"),
        (Method::DELETE, "", Value::Null, "runs:write"),
    ]
}

#[tokio::test]
async fn foreign_runs_are_not_found_and_missing_scopes_are_named() {
    let world = given_an_agent().whose_model_says(json!([say("Hi.")])).kept(Kept::InAFile).await;
    let served = Served::with(world, |builder| builder.authenticator(Arc::new(Trusting))).await;
    let ask = async |method: Method, path: &str, who: &str, body: &Value| {
        let request = served.request(method, path).header("authorization", who);
        let request = if body.is_null() { request } else { request.json(body) };
        HttpAnswer::of(request.send().await.unwrap()).await
    };
    let all = "runs:read,runs:write";
    let created = ask(Method::POST, "/v1/runs", &format!("acme {all}"), &json!({"input": "A secret"})).await;
    let run = created.text("id").to_owned();

    for (method, child, body, scope) in everything() {
        let path = format!("/v1/runs/{run}{child}");
        let name = format!("{method} {child}");
        let stranger = ask(method.clone(), &path, &format!("brim {all}"), &body).await;
        assert_eq!((stranger.status.as_u16(), stranger.problem()), (404, "not_found"), "{name}");
        assert!(!stranger.body.to_string().contains("secret"), "{name}");
        let other = if scope == "runs:read" { "runs:write" } else { "runs:read" };
        let weak = ask(method, &path, &format!("acme {other}"), &body).await;
        assert_eq!((weak.status.as_u16(), weak.problem()), (403, "forbidden"), "{name}");
        assert!(weak.text("detail").contains(scope), "{name}: {weak:?}");
    }
    let still = ask(Method::GET, &format!("/v1/runs/{run}"), &format!("acme {all}"), &Value::Null).await;
    assert_eq!(still.body, created.body, "the run has not changed");
}
