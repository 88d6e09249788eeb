//! A published key that tokens can be checked with.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};

/// The key.
pub(super) struct Key {
    /// What tokens call it.
    pub(super) id: Option<String>,
    /// What it signs with. The key says so; a token only has to agree.
    pub(super) algorithm: Algorithm,
    pub(super) decoding: DecodingKey,
}

impl Key {
    /// `None` if it is no key for signatures, or of a kind that is not taken.
    pub(super) fn of(published: Jwk) -> Option<Self> {
        let algorithm = algorithm_of(&published)?;
        let decoding = DecodingKey::from_jwk(&published).ok()?;
        Some(Self { id: published.common.key_id, algorithm, decoding })
    }
}

/// What a published key signs with. Whoever holds a public key must not be able to use it as a secret, so keys of symmetric
/// algorithms are none here, whatever they call themselves.
fn algorithm_of(key: &Jwk) -> Option<Algorithm> {
    if key.common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
        return None;
    }
    let (algorithm, named) = match &key.algorithm {
        AlgorithmParameters::RSA(_) => (Algorithm::RS256, KeyAlgorithm::RS256),
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            (Algorithm::ES256, KeyAlgorithm::ES256)
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            (Algorithm::EdDSA, KeyAlgorithm::EdDSA)
        }
        // Not our enum: there may be more of them tomorrow.
        AlgorithmParameters::EllipticCurve(_)
        | AlgorithmParameters::OctetKeyPair(_)
        | AlgorithmParameters::OctetKey(_)
        | AlgorithmParameters::Other(_)
        | _ => return None,
    };
    key.common.key_algorithm.is_none_or(|said| said == named).then_some(algorithm)
}
