//! Browser interface: shows an authorization page to a person or a substitute.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::LOCATION;
use reqwest::{Client, redirect};

/// Shows an authorization page and waits for its redirect.
#[async_trait]
pub trait Browser: Debug + Send + Sync {
    /// The redirect address for authorization servers.
    fn redirect_uri(&self) -> String;

    /// Shows the page. Returns the complete address of the redirect, or the reason for its absence.
    async fn visit(&self, page: &str) -> Result<String, String>;
}

const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Opens the page and returns its redirect; a page that requires a person is a failure.
#[derive(Clone, Copy, Debug, Default)]
pub struct Headless;

#[async_trait]
impl Browser for Headless {
    /// No process listens there: the redirect is read, not followed.
    fn redirect_uri(&self) -> String {
        "http://127.0.0.1:9/callback".into()
    }

    async fn visit(&self, page: &str) -> Result<String, String> {
        let client = Client::builder().redirect(redirect::Policy::none()).timeout(REQUEST_TIMEOUT).build();
        let answer = match client {
            Ok(client) => client.get(page).send().await,
            Err(error) => Err(error),
        };
        let answer =
            answer.map_err(|error| format!("the authorization page cannot be opened: {}", error.without_url()))?;
        let back = answer.headers().get(LOCATION).and_then(|back| back.to_str().ok());
        back.map(str::to_owned)
            .ok_or_else(|| format!("the authorization page answered HTTP {}", answer.status().as_u16()))
    }
}
