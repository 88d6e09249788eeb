//! The API view of a key: everything but its secret.

use jiff::Timestamp;
use serde::Serialize;
use toolgate_core::timestamp::{millis, optional_millis};
use toolgate_ports::AccessKey;
use toolgate_service::Scope;
use utoipa::ToSchema;

use crate::revoked::RevokedView;

/// A key.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Key)]
pub(super) struct KeyView {
    /// The key's id.
    #[schema(example = "key_0199f3a07c1e7d0a8f3c9b1d2e4f5a6b")]
    id: String,
    /// Always `key`.
    object: &'static str,
    /// The key's name.
    #[schema(example = "ci")]
    name: String,
    /// The principal on whose behalf all its runs act.
    principal: Option<String>,
    /// What the key may do.
    scopes: Vec<Scope>,
    /// When the key was created.
    #[serde(serialize_with = "millis")]
    created_at: Timestamp,
    /// The caller who created it.
    created_by: String,
    /// When the key expires, by itself or after its rotation.
    #[serde(serialize_with = "optional_millis")]
    expires_at: Option<Timestamp>,
    /// When the key was last used, to within a minute.
    #[serde(serialize_with = "optional_millis")]
    used_at: Option<Timestamp>,
    /// The key's revocation; only for a revoked key.
    revoked: Option<RevokedView>,
    /// Whether the key is valid now.
    active: bool,
}

/// A key that was just created.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CreatedKey)]
pub(super) struct CreatedView {
    #[serde(flatten)]
    pub(super) key: KeyView,
    /// The secret, sent as `Authorization: Bearer tg_…`. It is not shown again.
    #[schema(example = "tg_…")]
    pub(super) secret: String,
}

impl KeyView {
    pub(super) fn new(key: AccessKey) -> Self {
        let (active, expires_at) = (key.holds(Timestamp::now()), key.valid_until());
        Self {
            id: key.id.to_string(),
            object: "key",
            name: key.name,
            principal: key.principal.map(|principal| principal.to_string()),
            scopes: key.scopes.iter().filter_map(|scope| Scope::parse(scope)).collect(),
            created_at: key.created_at,
            created_by: key.created_by,
            expires_at,
            used_at: key.used_at,
            revoked: key.revoked.map(RevokedView::from),
            active,
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }
}
