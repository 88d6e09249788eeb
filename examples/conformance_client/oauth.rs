//! OAuth settings for the scenarios of the official conformance suite, by the name and the context of a scenario.

use std::sync::Arc;

use serde_json::Value;
use toolgate::core::id::ServerId;
use toolgate::mcp::auth::{
    ClientIdentity, ClientProof, CredentialFile, Grant, Headless, OAuthSettings, SigningAlgorithm,
};

/// The client that the suite knows by a metadata document.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

/// The settings for one scenario. `context` is the suite's `MCP_CONFORMANCE_CONTEXT`; the credentials are stored
/// in that file.
pub(super) fn oauth_settings(scenario: &str, context: &Value, credentials: CredentialFile) -> OAuthSettings {
    let text = |name: &str| context.get(name).and_then(Value::as_str).map(str::to_owned);
    let id = text("client_id");
    let grant = match (scenario.starts_with("auth/client-credentials"), id) {
        (true, Some(id)) => Grant::Client { id, proof: proof(text) },
        (_, id) => Grant::Person {
            client: match id {
                Some(id) => ClientIdentity::Registered { id, secret: text("client_secret").map(Into::into) },
                None => ClientIdentity::Document { url: DOCUMENT.into() },
            },
            redirect_port: None,
            credentials,
            browser: Some(Arc::new(Headless)),
        },
    };
    OAuthSettings { server: ServerId::from("suite"), grant, scopes: Vec::new(), allow_private: false }
}

fn proof(text: impl Fn(&str) -> Option<String>) -> ClientProof {
    match text("private_key_pem") {
        None => ClientProof::Secret(text("client_secret").unwrap_or_default().into()),
        Some(pem) => {
            let algorithm = match text("signing_algorithm").as_deref() {
                Some("RS384") => SigningAlgorithm::Rs384,
                Some("RS512") => SigningAlgorithm::Rs512,
                Some("ES256") => SigningAlgorithm::Es256,
                Some("ES384") => SigningAlgorithm::Es384,
                Some(_) | None => SigningAlgorithm::Rs256,
            };
            ClientProof::PrivateKey { pem: pem.into(), algorithm }
        }
    }
}
