//! Stream tickets: `tg_st_` and 256 random bits, stored as a hash like an API key. A ticket carries the credentials of its
//! creator, so that a stream that it opens ends with them. They are encrypted with a key that is derived from the secret:
//! neither the store nor the ticket alone yields them.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::error::Unspecified;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use secrecy::SecretString;
use toolgate_ports::{KeyHash, StreamTicket, TicketedStream};

/// The prefix of all tickets. It begins like that of API keys, so that whatever masks keys masks tickets.
const TICKET_PREFIX: &str = "tg_st_";

const RANDOM_BYTES: usize = 32;

/// Creates a ticket: its secret, the hash under which to store it, and its record. Nothing is stored.
///
/// # Errors
/// The operating system has no random bytes.
pub fn mint_ticket(
    stream: TicketedStream,
    credentials: Option<&[u8]>,
    expires_at: Timestamp,
) -> Result<(SecretString, KeyHash, StreamTicket), Unspecified> {
    let mut random = [0; RANDOM_BYTES];
    aws_lc_rs::rand::fill(&mut random)?;
    let secret = format!("{TICKET_PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(random));
    let mut sealed_credentials = credentials.unwrap_or_default().to_vec();
    if !sealed_credentials.is_empty() {
        sealing_key(&secret)?.seal_in_place_append_tag(nonce(), Aad::empty(), &mut sealed_credentials)?;
    }
    let hash = KeyHash::for_secret(&secret);
    Ok((secret.into(), hash, StreamTicket { stream, sealed_credentials, expires_at }))
}

/// The credentials that a ticket carries; `None` if it has none.
///
/// # Errors
/// The secret is not that of the ticket.
pub fn unseal_ticket(secret: &str, ticket: &StreamTicket) -> Result<Option<Vec<u8>>, Unspecified> {
    if ticket.sealed_credentials.is_empty() {
        return Ok(None);
    }
    let mut sealed = ticket.sealed_credentials.clone();
    let credentials = sealing_key(secret)?.open_in_place(nonce(), Aad::empty(), &mut sealed)?;
    Ok(Some(credentials.to_vec()))
}

/// The key for one ticket. The hash that the store has does not yield it.
fn sealing_key(secret: &str) -> Result<LessSafeKey, Unspecified> {
    let key = KeyHash::for_secret(&format!("sealing key of {secret}"));
    UnboundKey::new(&AES_256_GCM, key.as_bytes()).map(LessSafeKey::new)
}

/// Each key encrypts once, so the nonce can be constant.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn minted(credentials: Option<&[u8]>) -> (String, StreamTicket) {
        let (secret, hash, ticket) = mint_ticket(TicketedStream::Events, credentials, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(hash, KeyHash::for_secret(secret.expose_secret()));
        (secret.expose_secret().to_owned(), ticket)
    }

    #[test]
    fn only_the_secret_of_a_ticket_yields_its_credentials() {
        let (secret, ticket) = minted(Some(b"Bearer tg_key"));
        let (other, without) = minted(None);
        assert_eq!(unseal_ticket(&secret, &ticket).unwrap().as_deref(), Some(&b"Bearer tg_key"[..]));
        assert!(unseal_ticket(&other, &ticket).is_err());
        assert_eq!(unseal_ticket(&other, &without).unwrap(), None);
        assert!(!ticket.sealed_credentials.windows(6).any(|bytes| bytes == b"tg_key"));
        assert!(secret.starts_with("tg_st_") && secret.len() == 49, "{secret}");
    }
}
