//! Guarded HTTP client for the OAuth code of the SDK. The SDK follows addresses from metadata by itself: this client
//! checks each address right before it connects. The client's resolver checks host names.

use futures::StreamExt as _;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response};
use reqwest::Client;
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest};

use super::token_answer;
use crate::http::egress::AllowedAddresses;

/// The longest metadata or token response, in bytes.
const LONGEST: usize = 1024 * 1024;

/// A client that connects only to allowed addresses.
pub(super) struct GuardedClient {
    client: Client,
    reach: AllowedAddresses,
}

impl GuardedClient {
    /// Wraps a client that resolves names within that reach and follows no redirects.
    pub(super) fn over(client: Client, reach: AllowedAddresses) -> Self {
        Self { client, reach }
    }

    /// Sends a request. The answer to a token request is converted to the form that the SDK reads, and a refresh that
    /// may have been refused because of its resource is sent once more without it.
    async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        let Some(grant) = token_answer::grant_type(request.body()).filter(|_| request.method() == Method::POST) else {
            return self.exchange(request).await;
        };
        let may_omit_resource = matches!(grant.as_str(), "refresh_token" | "client_credentials");
        let again = token_answer::without_resource(request.body()).filter(|_| may_omit_resource).map(|body| {
            let mut again = Request::new(body);
            *again.method_mut() = request.method().clone();
            *again.uri_mut() = request.uri().clone();
            *again.headers_mut() = request.headers().clone();
            again.headers_mut().remove(CONTENT_LENGTH);
            again
        });
        let mut answer = self.exchange(request).await?;
        if !answer.status().is_success()
            && token_answer::refuses_resource(answer.status(), answer.body())
            && let Some(again) = again
        {
            answer = self.exchange(again).await?;
        }
        let (status, conforming) = token_answer::conforming(answer.status(), answer.body());
        *answer.status_mut() = status;
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *answer.body_mut() = serde_json::to_vec(&conforming)?;
        Ok(answer)
    }

    async fn exchange(&self, request: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, OAuthHttpClientError> {
        let request = reqwest::Request::try_from(request)?;
        self.reach.check(request.url())?;
        let answer = self.client.execute(request).await?;
        let mut copy = Response::builder().status(answer.status()).version(answer.version());
        for (name, value) in answer.headers() {
            copy = copy.header(name, value);
        }
        let (mut body, mut chunks) = (Vec::new(), answer.bytes_stream());
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk?);
            if body.len() > LONGEST {
                return Err(format!("the answer is longer than {} KiB", LONGEST / 1024).into());
            }
        }
        Ok(copy.body(body)?)
    }
}

impl OAuthHttpClient for GuardedClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.send(request.request))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::Url;

    use super::*;
    use crate::http::egress::Egress;

    #[tokio::test]
    async fn cloud_metadata_addresses_are_never_dialled() {
        for (server, allow_private) in [("https://mcp.test/mcp", false), ("https://10.0.0.4/mcp", true)] {
            let server = Url::parse(server).expect("a URL");
            let reach = AllowedAddresses::from_server(&Egress::Operator, &server, allow_private);
            let guarded = GuardedClient::over(Client::new(), reach);
            for address in ["http://168.63.129.16/metadata", "http://100.100.100.200/", "http://169.254.169.254/"] {
                let request = Request::get(address).body(Vec::new()).expect("a request");
                let refused = tokio::time::timeout(Duration::from_secs(1), guarded.send(request)).await;
                let why = refused.expect("at once").expect_err(address).to_string();
                assert!(why.contains("which is not on the public internet"), "{why}");
            }
        }
    }
}
