//! What the SDK's exporters send with. It learns from every attempt whether anybody is there, which the SDK's repetitions
//! hide, and sends the headers of the configuration, over which the SDK would put those of the environment.

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::header::HeaderMap;
use serde_json::Value;
use tonic::Status;
use tonic::metadata::MetadataMap;
use tonic::service::Interceptor;

use super::super::reach::Reach;

/// For HTTP.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) http: reqwest::Client,
    pub(super) headers: HeaderMap,
    pub(super) reach: Reach,
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, mut request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        configure(request.headers_mut(), &self.headers);
        let sent = self.http.send_bytes(request).await;
        self.reach.note(sent.as_ref().err().map(|error| &**error as &(dyn std::error::Error + 'static)));
        let mut response = sent?;
        if let Some(legible) = with_plain_numbers(response.body()) {
            *response.body_mut() = legible;
        }
        Ok(response)
    }
}

/// For gRPC, where attempts are not seen.
#[derive(Clone, Debug)]
pub(super) struct Configured(pub(super) HeaderMap);

impl Interceptor for Configured {
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

/// What a receiver answers in JSON, as the SDK can read it: OTLP writes numbers of 64 bits as strings, and the SDK
/// passes over an answer with such a one. `None` if nothing is to be changed.
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
