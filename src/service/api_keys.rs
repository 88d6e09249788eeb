//! Creation of API keys: `tg_` and 256 random bits, shown once and stored as a hash.
//!
//! A key belongs to one tenant and has the scopes it was given. A caller creates keys of its own tenant, which can do no
//! more than the caller ([`RequestedKey`]); an operator creates keys of any tenant where the store is ([`NewKey`]).

use aws_lc_rs::error::Unspecified;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use toolgate_core::error::ErrorCode;
use toolgate_core::id::{Principal, Tenant};
use toolgate_ports::{AccessKey, KeyHash};
use uuid::Uuid;

use super::authorize::{Caller, Scope, Scopes};
use super::error::ServiceError;
use super::error_reason::ErrorReason;
use super::name_rules::require_name;

/// The prefix of all keys, so that secret scanners recognise them.
pub const KEY_PREFIX: &str = "tg_";

const RANDOM_BYTES: usize = 32;

/// A key to create.
#[derive(Clone, Debug)]
pub struct NewKey {
    /// The key's name.
    pub name: String,
    /// The tenant whose resources it gives access to.
    pub tenant: Tenant,
    /// The principal on whose behalf all its runs act.
    pub principal: Option<Principal>,
    /// What the key may do.
    pub scopes: Scopes,
    pub expires_at: Option<Timestamp>,
    /// The caller who creates it.
    pub by: String,
}

/// A key that a caller requests for its tenant.
#[derive(Clone, Debug)]
pub struct RequestedKey {
    /// The key's name.
    pub name: String,
    /// The principal on whose behalf all its runs act. `None`: the principal of the caller, if it has one.
    pub principal: Option<Principal>,
    /// What the key may do.
    pub scopes: Vec<Scope>,
    pub expires_at: Option<Timestamp>,
}

/// Creates a key: its secret, the hash under which to store it, and its record. Nothing is stored.
///
/// # Errors
/// The operating system has no random bytes.
pub fn mint(new: NewKey, now: Timestamp) -> Result<(SecretString, KeyHash, AccessKey), Unspecified> {
    let mut random = [0; RANDOM_BYTES];
    aws_lc_rs::rand::fill(&mut random)?;
    let secret = format!("{KEY_PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(random));
    let hash = KeyHash::for_secret(&secret);
    let key = AccessKey {
        id: format!("key_{}", Uuid::now_v7().simple()).into(),
        name: new.name,
        tenant: new.tenant,
        principal: new.principal,
        scopes: new.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
        created_at: now,
        created_by: new.by,
        expires_at: new.expires_at,
        overlaps_until: None,
        used_at: None,
        revoked: None,
    };
    Ok((secret.into(), hash, key))
}

/// The time for which a rotated key stays valid besides its successor, if none is given.
pub const ROTATION_OVERLAP: SignedDuration = SignedDuration::from_hours(24);

/// The successor of a key: with its name, principal and scopes. Without a time, it is valid for as long as the key was to be.
/// `None` if the key is not valid any more.
pub fn successor(key: &AccessKey, expires_at: Option<Timestamp>, now: Timestamp) -> Option<RequestedKey> {
    let lifetime = key.expires_at.map(|until| until.duration_since(key.created_at));
    key.holds(now).then(|| RequestedKey {
        name: key.name.clone(),
        principal: key.principal.clone(),
        scopes: key.scopes.iter().filter_map(|scope| Scope::parse(scope)).collect(),
        expires_at: expires_at.or_else(|| now.checked_add(lifetime?).ok()),
    })
}

/// The successor of a key of a caller's tenant.
///
/// # Errors
/// The key is not valid any more, or acts for another principal than the caller.
pub fn successor_for(
    caller: &Caller,
    key: &AccessKey,
    expires_at: Option<Timestamp>,
    now: Timestamp,
) -> Result<RequestedKey, ServiceError> {
    if caller.principal.is_some() && caller.principal != key.principal {
        let detail = "these credentials act for one principal, and cannot rotate a key that acts for others";
        return Err(ServiceError::new(ErrorCode::Forbidden, detail).with(ErrorReason::OtherPrincipal));
    }
    successor(key, expires_at, now).ok_or_else(|| {
        let detail = format!("the key `{}` is revoked or has expired; create another one", key.id);
        ServiceError::new(ErrorCode::Conflict, detail)
    })
}

impl NewKey {
    /// Validates a name, which appears in journals, logs and lists.
    pub fn check_name(name: &str) -> Result<(), &'static str> {
        let is_fit = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
        match !name.is_empty() && name.len() <= 64 && name.chars().all(is_fit) {
            true => Ok(()),
            false => Err("a key's name has 1 to 64 letters, digits, `-`, `_`, `.` and `@`"),
        }
    }
}

impl RequestedKey {
    /// The key to create for the caller's tenant. It can have only scopes that the caller has, and the caller's principal.
    pub fn for_tenant_of(self, caller: &Caller, now: Timestamp) -> Result<NewKey, ServiceError> {
        require_name("/principal", self.principal.as_ref().map(Principal::as_str))?;
        NewKey::check_name(&self.name).map_err(|wrong| ServiceError::invalid("/name", wrong))?;
        if self.scopes.is_empty() {
            return Err(ServiceError::invalid("/scopes", "a key without a scope can do nothing; name at least one"));
        }
        if let Some(lacking) = self.scopes.iter().find(|scope| !caller.scopes.contains(**scope)) {
            let detail = format!("these credentials lack the scope `{}`, and cannot give it", lacking.as_str());
            return Err(ServiceError::new(ErrorCode::Forbidden, detail).with(ErrorReason::ScopeMissing));
        }
        if let (Some(own), Some(other)) = (&caller.principal, &self.principal)
            && own != other
        {
            let detail = format!("these credentials act for `{own}`, and cannot create a key that acts for others");
            return Err(ServiceError::new(ErrorCode::Forbidden, detail).with(ErrorReason::OtherPrincipal));
        }
        if self.expires_at.is_some_and(|until| until <= now) {
            return Err(ServiceError::invalid("/expires_at", "this time has passed; give one in the future"));
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_secret_is_long_enough_never_the_same_and_kept_nowhere() {
        let new = || NewKey {
            name: "ci".to_owned(),
            tenant: Tenant::default(),
            principal: None,
            scopes: Scopes::all(),
            expires_at: None,
            by: "ann".to_owned(),
        };
        let mut seen = BTreeSet::new();
        for _ in 0..100 {
            let (secret, hash, key) = mint(new(), Timestamp::now()).unwrap();
            let shown = secret.expose_secret();
            assert_eq!((shown.len(), &shown[..3]), (3 + 43, "tg_"));
            assert_eq!(hash, KeyHash::for_secret(shown));
            assert!(!format!("{key:?}{hash:?}{secret:?}").contains(&shown[3..]));
            assert!(seen.insert(shown.to_owned()));
        }
    }

    #[test]
    fn a_requested_key_can_do_no_more_than_its_creator() {
        let scopes = [Scope::Admin, Scope::RunsRead].into_iter().collect();
        let ann = Caller { principal: Some("ann".into()), scopes, ..Caller::local() };
        let key = |scope, principal: Option<&str>| {
            let principal = principal.map(Principal::from);
            let wanted = RequestedKey { name: "ci".to_owned(), principal, scopes: vec![scope], expires_at: None };
            wanted.for_tenant_of(&ann, Timestamp::now()).map(|key| key.principal).map_err(|error| error.code)
        };
        assert_eq!(key(Scope::RunsRead, None), Ok(Some("ann".into())));
        assert_eq!(key(Scope::RunsWrite, None), Err(ErrorCode::Forbidden));
        assert_eq!(key(Scope::RunsRead, Some("bob")), Err(ErrorCode::Forbidden));
        assert_eq!(key(Scope::RunsRead, Some("")), Err(ErrorCode::Validation));
    }
}
