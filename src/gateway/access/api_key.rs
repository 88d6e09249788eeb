//! API keys: `tg_` and 256 random bits, shown once and stored as a hash.
//!
//! A key belongs to one tenant and has the scopes it was given. `/v1/keys` manages the keys of the caller's tenant;
//! `toolgate keys create` creates keys of any tenant where the store is.

use aws_lc_rs::error::Unspecified;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use secrecy::SecretString;
use toolgate_core::id::{Principal, Tenant};
use toolgate_ports::{AccessKey, KeyHash};
use toolgate_service::Scopes;
use uuid::Uuid;

/// What all keys begin with, so that secret scanners recognise them.
pub(super) const PREFIX: &str = "tg_";

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
    /// When the key expires.
    pub expires_at: Option<Timestamp>,
    /// The caller who creates it.
    pub by: String,
}

/// Creates a key: its secret, the hash under which to store it, and its record. Nothing is stored.
///
/// # Errors
/// The operating system has no random bytes.
pub fn mint(new: NewKey, now: Timestamp) -> Result<(SecretString, KeyHash, AccessKey), Unspecified> {
    let mut random = [0; RANDOM_BYTES];
    aws_lc_rs::rand::fill(&mut random)?;
    let secret = format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(random));
    let hash = KeyHash::of(&secret);
    let key = AccessKey {
        id: format!("key_{}", Uuid::now_v7().simple()).into(),
        name: new.name,
        tenant: new.tenant,
        principal: new.principal,
        scopes: new.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
        created_at: now,
        created_by: new.by,
        expires_at: new.expires_at,
        used_at: None,
        revoked: None,
    };
    Ok((secret.into(), hash, key))
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
            assert_eq!(hash, KeyHash::of(shown));
            assert!(!format!("{key:?}{hash:?}{secret:?}").contains(&shown[3..]));
            assert!(seen.insert(shown.to_owned()));
        }
    }
}
