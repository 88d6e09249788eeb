//! HTTP client and gRPC interceptor of the SDK's exporters. The client reports from every attempt whether the receiver
//! is reachable, which the SDK's retries hide. Both set the headers of the configuration, which the SDK would replace
//! with those of the environment.

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::header::HeaderMap;
use serde_json::Value;
use tonic::Status;
use tonic::metadata::MetadataMap;
use tonic::service::Interceptor;

use super::super::reachability::Reachability;

/// The HTTP client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) http: reqwest::Client,
    pub(super) headers: HeaderMap,
    pub(super) reachability: Reachability,
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        configure(request.headers_mut(), &self.headers);
        let sent = self.http.send_bytes(request).await;
        self.reachability.note(sent.as_ref().err().map(|error| &**error as &(dyn std::error::Error + 'static)));
        let mut response = sent?;
        if let Some(legible) = with_plain_numbers(response.body()) {
            *response.body_mut() = legible;
        }
        Ok(response)
    }
}

/// The gRPC interceptor, which does not see attempts.
#[derive(Clone, Debug)]
pub(super) struct HeaderInterceptor(pub(super) HeaderMap);

impl Interceptor for HeaderInterceptor {
    fn call(&mut self, mut request: tonic::Request<()>) -> Result<tonic::Request<()>, Status> {
        let mut headers = std::mem::take(request.metadata_mut()).into_headers();
        configure(&mut headers, &self.0);
        *request.metadata_mut() = MetadataMap::from_headers(headers);
        Ok(request)
    }
}

fn configure(headers: &mut HeaderMap, configured: &HeaderMap) {
    for (name, value) in configured {
        headers.insert(name.clone(), value.clone());
    }
}

/// A receiver's JSON response in a form that the SDK can read: OTLP encodes 64-bit numbers as strings, and the SDK
/// ignores such a response. `None` if there is nothing to change.
fn with_plain_numbers(body: &Bytes) -> Option<Bytes> {
    let mut answer: Value = serde_json::from_slice(body).ok()?;
    let partial = answer.get_mut("partialSuccess")?.as_object_mut()?;
    for rejected in partial.iter_mut().filter(|(name, _)| name.starts_with("rejected")).map(|(_, value)| value) {
        if let Some(number) = rejected.as_str().and_then(|text| text.parse::<i64>().ok()) {
            *rejected = number.into();
        }
    }
    serde_json::to_vec(&answer).ok().map(Bytes::from)
}
