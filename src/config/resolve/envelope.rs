//! Resolves the keys of signed envelopes. Their cryptographic validity is checked on use, not here.

use std::collections::BTreeSet;

use secrecy::SecretString;

use crate::error::Fault;
use crate::resolver::Resolver;
use crate::settings::{EnvelopeKeySettings, EnvelopeSettings, KeyMaterial};
use crate::spanned::{Located, Text};
use crate::written::{Envelope, EnvelopeKey};

const TTL_SECONDS: u64 = 24 * 60 * 60;

pub(super) fn resolve(written: Option<&Located<Envelope>>, scope: &mut Resolver<'_>) -> Option<EnvelopeSettings> {
    let placed = written?;
    let envelope = placed.value();
    let mut ids = BTreeSet::new();
    let mut keys = Vec::new();
    for written in &envelope.keys {
        let id = scope.text(&written.value().id);
        scope.name("a key", &id, written.value().id.place());
        if !ids.insert(id.clone()) {
            let fault = Fault::new(format!("two keys have the id `{id}`"));
            scope.fault(fault.with_remedy("give each key its own"), written.value().id.place());
        }
        keys.extend(material(written, scope).map(|material| EnvelopeKeySettings { id, material }));
    }
    let sign_with = match (&envelope.sign_with, envelope.keys.as_slice()) {
        (Some(name), _) => {
            let id = scope.text(name);
            if !ids.contains(&id) {
                let fault = Fault::new(format!("there is no key `{id}` to sign with"));
                scope.fault(fault.with_remedy("name the `id` of one of the `keys`"), name.place());
            }
            id
        }
        (None, [only]) => scope.text(&only.value().id),
        (None, []) => {
            let fault = Fault::new("envelopes need a key");
            scope.fault(fault.with_remedy("add one to `keys`, or remove the section"), placed.place());
            String::new()
        }
        (None, _) => {
            let fault = Fault::new("there are several keys, and `sign_with` is missing");
            scope.fault(fault.with_remedy("add `sign_with`, the `id` of one of them"), placed.place());
            String::new()
        }
    };
    Some(EnvelopeSettings { sign_with, keys, ttl: scope.seconds(envelope.ttl_s.as_ref(), TTL_SECONDS) })
}

fn material(placed: &Located<EnvelopeKey>, scope: &mut Resolver<'_>) -> Option<KeyMaterial> {
    let key = placed.value();
    let (message, remedy) = match (&key.hmac, &key.ed25519, &key.ed25519_file, &key.seal) {
        (Some(secret), None, None, None) => return Some(KeyMaterial::Hmac(scope.secret(secret))),
        (None, Some(key), None, Some(seal)) => {
            return Some(KeyMaterial::Ed25519 { key: scope.secret(key), seal: scope.secret(seal) });
        }
        (None, None, Some(path), Some(seal)) => {
            return Some(KeyMaterial::Ed25519 { key: file(path, scope), seal: scope.secret(seal) });
        }
        (Some(_), None, None, Some(_)) => ("an `hmac` key encrypts without `seal`", "remove `seal`"),
        (None, Some(_), None, None) | (None, None, Some(_), None) => {
            ("an Ed25519 key signs and cannot encrypt", "add `seal`, a secret of at least 32 bytes")
        }
        _ => ("a key is one of `hmac`, `ed25519` and `ed25519_file`", "give one of the three"),
    };
    scope.fault(Fault::new(message).with_remedy(remedy), placed.place());
    None
}

fn file(path: &Text, scope: &mut Resolver<'_>) -> SecretString {
    let place = path.place();
    let path = scope.path(path);
    let read = std::fs::read_to_string(&path).unwrap_or_else(|error| {
        let fault = Fault::new(format!("the key `{}` cannot be read: {error}", path.display()));
        scope.fault(fault.with_remedy("name a file with an Ed25519 key in PEM"), place);
        String::new()
    });
    read.into()
}
