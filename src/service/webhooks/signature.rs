//! Secrets and signatures of Standard Webhooks: HMAC-SHA256 over `id.timestamp.body`.

use aws_lc_rs::{hmac, rand};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use toolgate_core::id::MessageId;
use toolgate_ports::{EndpointSecrets, WebhookSecret};

const PREFIX: &str = "whsec_";
/// How many bytes a new secret has.
const FRESH: usize = 32;

/// A new secret.
pub(super) fn fresh() -> Result<WebhookSecret, String> {
    let mut bytes = [0; FRESH];
    rand::fill(&mut bytes).map_err(|_| "failed to read random bytes".to_owned())?;
    Ok(WebhookSecret::new(format!("{PREFIX}{}", STANDARD.encode(bytes))))
}

/// Validates a secret that the client provides.
pub(super) fn brought(text: &str) -> Result<WebhookSecret, String> {
    match key(text) {
        Some(bytes) if (24..=64).contains(&bytes.len()) => Ok(WebhookSecret::new(text)),
        Some(_) | None => Err("a webhook secret is `whsec_` and the Base64 of 24 to 64 random bytes".to_owned()),
    }
}

/// The `webhook-signature` header: one signature for each valid secret, the current one first.
pub(super) fn header(secrets: &EndpointSecrets, id: &MessageId, now: Timestamp, body: &str) -> String {
    let signed = format!("{id}.{}.{body}", now.as_second());
    secrets.holding(now).filter_map(|secret| sign(secret, &signed)).collect::<Vec<_>>().join(" ")
}

fn sign(secret: &WebhookSecret, signed: &str) -> Option<String> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key(secret.expose())?);
    Some(format!("v1,{}", STANDARD.encode(hmac::sign(&key, signed.as_bytes()))))
}

fn key(secret: &str) -> Option<Vec<u8>> {
    STANDARD.decode(secret.strip_prefix(PREFIX)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn secrets(previous: Vec<(WebhookSecret, Timestamp)>) -> EndpointSecrets {
        EndpointSecrets { current: WebhookSecret::new(SECRET), previous }
    }

    #[test]
    fn the_example_of_the_specification_is_signed_as_it_says() {
        let now = Timestamp::from_second(1_614_265_330).expect("a time");
        let header =
            header(&secrets(Vec::new()), &"msg_p5jXN8AQM9LWM0D4loKWxJek".into(), now, r#"{"test": 2432232314}"#);
        assert_eq!(header, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_previous_secret_signs_until_it_expires() {
        let at = |second| Timestamp::from_second(second).expect("a time");
        let secrets = secrets(vec![(fresh().expect("random bytes"), at(100))]);
        let count = |now| header(&secrets, &"msg_1".into(), at(now), "{}").split(' ').count();
        assert_eq!((count(99), count(100)), (2, 1));
    }

    #[test]
    fn a_secret_has_the_specified_length_and_is_never_printed() {
        let of = |bytes: usize| brought(&format!("whsec_{}", STANDARD.encode(vec![7; bytes])));
        assert!(of(24).is_ok() && of(64).is_ok());
        assert!(of(23).is_err() && of(65).is_err());
        assert!(brought("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").is_err());
        let secret = fresh().expect("random bytes");
        assert!(brought(secret.expose()).is_ok());
        assert!(!format!("{secret:?}").contains(secret.expose()));
    }
}
