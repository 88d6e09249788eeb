//! `POST /v1/keys`

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, LOCATION};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use toolgate_core::error::ErrorCode;
use toolgate_core::id::Principal;
use toolgate_service::{Caller, Scope};
use utoipa::ToSchema;

use super::view::{CreatedView, KeyView};
use crate::access::{Authenticated, NewKey, mint};
use crate::body::Body;
use crate::idempotency::Confidential;
use crate::name_rules;
use crate::problem::Problem;
use crate::state::Gateway;

/// A key to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewKey)]
pub(super) struct NewKeyBody {
    /// The key's name; journals record it as `key:NAME`.
    #[schema(example = "ci")]
    name: String,
    /// The principal on whose behalf all runs of the key act. Default: the principal of your key, if it has one.
    #[schema(value_type = Option<String>)]
    principal: Option<Principal>,
    /// What the key may do. You can give only scopes that you have.
    scopes: Vec<Scope>,
    /// When the key expires.
    expires_at: Option<Timestamp>,
}

/// Create an API key
///
/// Creates an API key for your tenant. The secret is returned only in this response. The key cannot have scopes that
/// you lack.
#[utoipa::path(
    post, path = "/v1/keys", tag = "keys", operation_id = "createKey", request_body = NewKeyBody,
    responses(
        (status = 201, description = "The key, with its secret", body = CreatedView),
    ),
)]
pub(super) async fn create(
    State(gateway): State<Gateway>,
    Authenticated(caller): Authenticated,
    Body(wanted): Body<NewKeyBody>,
) -> Result<Response, Problem> {
    caller.require(Scope::Admin)?;
    let authenticator = gateway.access().api_keys()?;
    let new = wanted.for_tenant_of(&caller)?;
    let no_randomness = |_| Problem::new(ErrorCode::Internal, "failed to read random bytes");
    let (secret, hash, key) = mint(new, Timestamp::now()).map_err(no_randomness)?;
    authenticator.put(&hash, &key).await?;
    let view = CreatedView { key: KeyView::of(key), secret: secret.expose_secret().to_owned() };
    let location = format!("{}/v1/keys/{}", gateway.settings().public_url, view.key.id());
    let headers = [(LOCATION, location), (CACHE_CONTROL, "no-store".to_owned())];
    Ok((StatusCode::CREATED, Confidential, headers, Json(view)).into_response())
}

impl NewKeyBody {
    fn for_tenant_of(self, caller: &Caller) -> Result<NewKey, Problem> {
        name_rules::fit("/principal", self.principal.as_ref().map(Principal::as_str))?;
        NewKey::check_name(&self.name).map_err(|wrong| Problem::invalid("/name", wrong))?;
        if self.scopes.is_empty() {
            return Err(Problem::invalid("/scopes", "a key without a scope can do nothing; name at least one"));
        }
        if let Some(lacking) = self.scopes.iter().find(|scope| !caller.scopes.contains(**scope)) {
            let detail = format!("these credentials lack the scope `{}`, and cannot give it", lacking.as_str());
            return Err(Problem::new(ErrorCode::Forbidden, detail));
        }
        if let (Some(own), Some(other)) = (&caller.principal, &self.principal)
            && own != other
        {
            let detail = format!("these credentials act for `{own}`, and cannot create a key that acts for others");
            return Err(Problem::new(ErrorCode::Forbidden, detail));
        }
        if self.expires_at.is_some_and(|until| until <= Timestamp::now()) {
            return Err(Problem::invalid("/expires_at", "this time has passed; give one in the future"));
        }
        Ok(NewKey {
            name: self.name,
            tenant: caller.tenant.clone(),
            principal: caller.principal.clone().or(self.principal),
            scopes: self.scopes.into_iter().collect(),
            expires_at: self.expires_at,
            by: caller.name.as_ref().to_owned(),
        })
    }
}
