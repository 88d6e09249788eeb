//! `/v1/keys`: the API keys of the caller's tenant.

mod view;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use toolgate_core::error::ErrorCode;
use toolgate_core::id::{KeyId, Principal};
use toolgate_service::{ROTATION_OVERLAP, RequestedKey, Scope, ServiceError, mint, successor_for};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::view::{CreatedView, KeyView};
use crate::access::{Admitted, TenantKeys};
use crate::body::{Body, Path, Query};
use crate::idempotency::Confidential;
use crate::pagination::{Page, PageResult, Paging, limit, unknown_cursor};
use crate::problem::Problem;
use crate::state::Gateway;

pub(super) fn routes() -> OpenApiRouter<Gateway> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(read))
        .routes(routes!(revoke))
        .routes(routes!(rotate))
}

/// A key to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewKey)]
struct NewKeyBody {
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

/// The longest overlap of a key with its successor.
const MAX_OVERLAP_S: u32 = 31_536_000;

/// The rotation of a key.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = KeyRotation)]
struct RotationBody {
    /// How long the old key stays valid, in seconds. Default: 86400, a day.
    #[schema(maximum = 31_536_000)] // MAX_OVERLAP_S
    overlap_s: Option<u32>,
    /// When the new key expires. Default: after the time for which the old one was valid.
    expires_at: Option<Timestamp>,
}

/// Create an API key
///
/// Creates an API key for your tenant. The secret is returned only in this response. The key cannot have scopes that
/// you lack.
#[utoipa::path(
    post, path = "/v1/keys", tag = "keys", operation_id = "createKey", request_body = NewKeyBody,
    responses((status = 201, description = "The key, with its secret", body = CreatedView)),
)]
async fn create(
    State(gateway): State<Gateway>,
    keys: TenantKeys,
    Body(NewKeyBody { name, principal, scopes, expires_at }): Body<NewKeyBody>,
) -> Result<Response, Problem> {
    created(&gateway, &keys, RequestedKey { name, principal, scopes, expires_at }, Timestamp::now()).await
}

/// Creates a key, and the response with its secret.
async fn created(
    gateway: &Gateway,
    keys: &TenantKeys,
    requested: RequestedKey,
    now: Timestamp,
) -> Result<Response, Problem> {
    let new = requested.for_tenant_of(keys.caller(), now)?;
    let no_randomness = |_| Problem::new(ErrorCode::Internal, "failed to read random bytes");
    let (secret, hash, key) = mint(new, now).map_err(no_randomness)?;
    keys.put(&hash, &key).await?;
    let view = CreatedView { key: KeyView::new(key), secret: secret.expose_secret().to_owned() };
    let location = format!("{}/v1/keys/{}", gateway.settings().public_url, view.key.id());
    let headers = [(LOCATION, location)];
    Ok((StatusCode::CREATED, Confidential, headers, Json(view)).into_response())
}

/// Rotate an API key
///
/// Creates a key with the name, the principal and the scopes of this one, and lets this one expire after the overlap. The
/// secret is returned only in this response. If the response is lost, both keys are valid; revoke the new one and rotate
/// again.
#[utoipa::path(
    post, path = "/v1/keys/{key}/rotate", tag = "keys", operation_id = "rotateKey", request_body = RotationBody,
    responses((status = 201, description = "The new key, with its secret", body = CreatedView)),
)]
async fn rotate(
    State(gateway): State<Gateway>,
    keys: TenantKeys,
    Path(key): Path<String>,
    Body(RotationBody { overlap_s, expires_at }): Body<RotationBody>,
) -> Result<Response, Problem> {
    let old = keys.find(&key).await?.ok_or_else(|| Problem::not_found("key", &key))?;
    if overlap_s.is_some_and(|seconds| seconds > MAX_OVERLAP_S) {
        let wrong = format!("an overlap is at most {MAX_OVERLAP_S} seconds, a year");
        return Err(ServiceError::invalid("/overlap_s", wrong).into());
    }
    let overlap = overlap_s.map_or(ROTATION_OVERLAP, |seconds| SignedDuration::from_secs(seconds.into()));
    let now = Timestamp::now();
    let successor = successor_for(keys.caller(), &old, expires_at, now)?;
    let response = created(&gateway, &keys, successor, now).await?;
    keys.overlap(&old.id, now.checked_add(overlap).unwrap_or(Timestamp::MAX)).await?;
    Ok(response)
}

/// List API keys
///
/// Returns the API keys of your tenant, newest first.
#[utoipa::path(
    get, path = "/v1/keys", tag = "keys", operation_id = "listKeys", params(Paging),
    responses((status = 200, description = "A page of keys", body = Page<KeyView>)),
)]
async fn list(Query(which): Query<Paging>, keys: Admitted<TenantKeys>) -> PageResult<KeyView> {
    let limit = limit(which.limit)?;
    if let Some(after) = &which.after
        && keys.find(after).await?.is_none()
    {
        return Err(unknown_cursor("key", after));
    }
    let found = keys.page(which.after.map(KeyId::from), limit + 1).await?;
    Ok(Json(Page::new(found, limit, |key| key.id.to_string(), KeyView::new)))
}

/// Retrieve an API key
///
/// Returns an API key of your tenant, without its secret.
#[utoipa::path(
    get, path = "/v1/keys/{key}", tag = "keys", operation_id = "readKey",
    responses((status = 200, description = "The key", body = KeyView)),
)]
async fn read(keys: TenantKeys, Path(key): Path<String>) -> Result<Json<KeyView>, Problem> {
    let found = keys.find(&key).await?.ok_or_else(|| Problem::not_found("key", &key))?;
    Ok(Json(KeyView::new(found)))
}

/// Revoke an API key
///
/// The key is invalid from now on. Other processes on the same store reject it within seconds. Revoking a key twice has
/// no further effect.
#[utoipa::path(
    post, path = "/v1/keys/{key}/revoke", tag = "keys", operation_id = "revokeKey",
    responses((status = 200, description = "The revoked key", body = KeyView)),
)]
async fn revoke(keys: TenantKeys, Path(key): Path<String>) -> Result<Json<KeyView>, Problem> {
    let revoked = keys.revoke(&key).await?.ok_or_else(|| Problem::not_found("key", &key))?;
    Ok(Json(KeyView::new(revoked)))
}
