//! Remedies for a model server that cannot be reached, or does not have the address.

use std::error::Error;
use std::io;

use reqwest::Url;

use super::endpoint::OLLAMA_PORT;

/// The remedy for a request that was not sent. `None` if the cause says enough.
pub(super) fn for_connection(url: &Url, error: &(dyn Error + 'static)) -> Option<String> {
    let (mut refused, mut plain, mut next) = (false, false, Some(error));
    while let Some(cause) = next {
        let io = cause.downcast_ref::<io::Error>();
        refused |= io.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        // The only trace that rustls leaves of it: the first bytes of a plain answer are no TLS record.
        plain |= cause.to_string().contains("InvalidContentType");
        next = cause.source();
    }
    match (refused, plain) {
        (true, _) if url.port() == Some(OLLAMA_PORT) => {
            Some("Is Ollama running? Start it with `ollama serve`".to_owned())
        }
        (true, _) => Some("Start the server, or check the port in `base_url`".to_owned()),
        (_, true) => Some("The server does not use TLS: write `http://` in `base_url`".to_owned()),
        _ => None,
    }
}

/// The remedy for HTTP 404 at an address without a version, where most servers of these APIs have one.
pub(super) fn for_missing_path(url: &Url) -> Option<String> {
    let is_version = |segment: &str| {
        let digits = segment.strip_prefix('v').unwrap_or_default();
        digits.starts_with(|first: char| first.is_ascii_digit())
    };
    let has_version = url.path_segments().is_some_and(|mut segments| segments.any(is_version));
    (!has_version).then(|| format!("Most servers have the API at `/v1`, and `base_url` has no version: {}", url.path()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect(text)
    }

    #[test]
    fn a_refused_connection_names_the_server_to_start() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let remedy = |address: &str| for_connection(&url(address), &refused).unwrap_or_default();
        assert!(remedy("http://localhost:11434/v1/chat/completions").contains("ollama serve"));
        assert!(remedy("http://localhost:8000/v1/chat/completions").contains("Start the server"));
        assert_eq!(for_connection(&url("http://h/v1"), &io::Error::other("no route")), None);
        let plain = io::Error::other("received corrupt message of type InvalidContentType");
        assert!(for_connection(&url("https://h/v1"), &plain).unwrap_or_default().contains("http://"));
    }

    #[test]
    fn a_missing_address_without_a_version_names_the_usual_one() {
        for (address, expected) in [
            ("http://localhost:11434/chat/completions", true),
            ("http://localhost:11434/v1/chat/completions", false),
            ("https://generativelanguage.googleapis.com/v1beta/models/m:generateContent", false),
            ("https://h/video/chat/completions", true),
        ] {
            assert_eq!(for_missing_path(&url(address)).is_some(), expected, "{address}");
        }
    }
}
