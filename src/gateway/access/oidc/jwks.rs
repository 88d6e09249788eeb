//! JSON Web Key (JWK) that verifies tokens: a key of the issuer's JWKS document.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};

/// A verification key.
pub(super) struct Key {
    /// The key's id in tokens.
    pub(super) id: Option<String>,
    /// The signature algorithm. The key determines it; a token only has to agree.
    pub(super) algorithm: Algorithm,
    pub(super) decoding: DecodingKey,
}

impl Key {
    /// `None` if the key is not for signatures, or its kind is not supported.
    pub(super) fn from_jwk(published: Jwk) -> Option<Self> {
        let algorithm = algorithm_of(&published)?;
        let decoding = DecodingKey::from_jwk(&published).ok()?;
        Some(Self { id: published.common.key_id, algorithm, decoding })
    }
}

/// The signature algorithm of a published key. A public key must never work as a shared secret, so keys of symmetric
/// algorithms are rejected, whatever they claim.
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
        // A foreign enum: later versions may have more variants.
        AlgorithmParameters::EllipticCurve(_)
        | AlgorithmParameters::OctetKeyPair(_)
        | AlgorithmParameters::OctetKey(_)
        | AlgorithmParameters::Other(_)
        | _ => return None,
    };
    key.common.key_algorithm.is_none_or(|algorithm_of_key| algorithm_of_key == named).then_some(algorithm)
}
