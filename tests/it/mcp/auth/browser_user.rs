//! The user at the browser: opens the page, agrees, and follows the redirect.

use toolgate::mcp::auth::{ClientIdentity, CredentialFile, Grant, OAuthSettings};
use toolgate::mcp::{HttpSettings, ServerSettings, Transport};

/// The redirect of the page.
pub(super) async fn led_back(page: &str) -> Result<String, String> {
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
    let answer = client.get(page).send().await.expect("the page is there");
    let location = answer.headers().get("location").map(|location| location.to_str().expect("text").to_owned());
    match location {
        Some(location) => Ok(location),
        None => Err(answer.text().await.expect("text")),
    }
}

/// OAuth settings with a user and a client that registers itself.
pub(super) fn access(credentials: &CredentialFile) -> OAuthSettings {
    OAuthSettings::person("crm".into(), credentials.clone())
}

/// The same for a registered client.
pub(super) fn access_of(client: ClientIdentity, credentials: &CredentialFile) -> OAuthSettings {
    let grant = Grant::Person { client, redirect_port: None, credentials: credentials.clone(), browser: None };
    OAuthSettings { grant, ..access(credentials) }
}

/// The part of the settings that a login needs.
pub(super) fn http(settings: &ServerSettings) -> HttpSettings {
    match &settings.transport {
        Transport::Http(http) => http.clone(),
        Transport::Stdio(_) | Transport::InProcess(_) | Transport::Unavailable(_) => panic!("an HTTP server"),
    }
}
