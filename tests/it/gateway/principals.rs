//! Several people at one gateway: each request has a badge header, and the authenticator trusts it.

use async_trait::async_trait;
use axum::http::request::Parts;
use reqwest::Method;
use serde_json::Value;
use std::sync::Arc;
use toolgate::core::id::Tenant;
use toolgate::gateway::{Authenticator, Problem};
use toolgate::service::{Caller, Scope, Scopes, Service};

use super::served::{HttpAnswer, Served};
use crate::runner::world::World;

/// `name tenant scope,scope` or `name tenant all`, optionally followed by a principal.
pub(super) struct Badges;

#[async_trait]
impl Authenticator for Badges {
    async fn authenticate(&self, request: &Parts) -> Result<Option<Caller>, Problem> {
        let Some(badge) = request.headers.get("x-badge") else { return Ok(None) };
        let mut words = badge.to_str().unwrap().split(' ');
        let mut word = || words.next().filter(|word| !word.is_empty());
        let (name, tenant, scopes) = (word().unwrap(), word().unwrap(), word().unwrap());
        let scopes = match scopes {
            "all" => Scopes::all(),
            several => several.split(',').map(|scope| Scope::parse(scope).unwrap()).collect(),
        };
        let principal = word().map(Into::into);
        Ok(Some(Caller { tenant: Tenant::from(tenant), name: name.into(), principal, scopes }))
    }
}

/// A gateway that authenticates by badge.
pub(super) async fn served(world: World) -> Served {
    Served::with(world, |builder| builder.authenticator(Arc::new(Badges))).await
}

/// The same with four eyes: the creator of a run may not approve its calls.
pub(super) async fn served_with_four_eyes(world: World) -> Served {
    let service = Service::new(world.runner.clone()).four_eyes(true);
    Served::over(service, world, |builder| builder.authenticator(Arc::new(Badges))).await
}

/// A person at a gateway.
pub(super) struct Person<'a> {
    pub(super) served: &'a Served,
    pub(super) badge: &'static str,
}

impl Person<'_> {
    pub(super) async fn get(&self, path: &str) -> HttpAnswer {
        let request = self.served.request(Method::GET, path).header("x-badge", self.badge);
        HttpAnswer::of(request.send().await.unwrap()).await
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> HttpAnswer {
        let request = self.served.request(Method::POST, path).header("x-badge", self.badge);
        HttpAnswer::of(request.json(&body).send().await.unwrap()).await
    }

    pub(super) async fn delete(&self, path: &str) -> HttpAnswer {
        let request = self.served.request(Method::DELETE, path).header("x-badge", self.badge);
        HttpAnswer::of(request.send().await.unwrap()).await
    }
}
