//! Server endpoints as they are stored with tools: enough to distinguish two endpoints, and to show one to a person.
//! They contain no potential secret: variables and headers are excluded, and arguments and the query of an address are
//! only in the hash.

use serde::{Deserialize, Serialize};

/// The endpoint of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "EndpointForm", into = "EndpointForm")]
pub struct Endpoint {
    /// Hash of the program with its arguments and directory, or of the address. Another hash is another server.
    pub fingerprint: String,
    /// A description in words, without potential secrets. Older journals have the hash alone.
    pub description: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum EndpointForm {
    Hash(String),
    Described { fingerprint: String, description: String },
}

impl Endpoint {
    /// The description for an approver: in words, as far as it is known, and the hash.
    pub fn in_words(&self) -> String {
        match &self.description {
            Some(description) => format!("{description}; in all {}", self.fingerprint),
            None => self.fingerprint.clone(),
        }
    }
}

impl From<&str> for Endpoint {
    fn from(fingerprint: &str) -> Self {
        Self { fingerprint: fingerprint.to_owned(), description: None }
    }
}

impl From<EndpointForm> for Endpoint {
    fn from(written: EndpointForm) -> Self {
        match written {
            EndpointForm::Hash(fingerprint) => Self { fingerprint, description: None },
            EndpointForm::Described { fingerprint, description } => {
                Self { fingerprint, description: Some(description) }
            }
        }
    }
}

impl From<Endpoint> for EndpointForm {
    fn from(Endpoint { fingerprint, description }: Endpoint) -> Self {
        match description {
            Some(description) => Self::Described { fingerprint, description },
            None => Self::Hash(fingerprint),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_journal_with_the_hash_alone_round_trips() {
        for written in
            [json!("sha256:a"), json!({"fingerprint": "sha256:a", "description": "program desk, 0 arguments"})]
        {
            let endpoint: Endpoint = serde_json::from_value(written.clone()).expect("an endpoint");
            assert_eq!(endpoint.fingerprint, "sha256:a");
            assert_eq!(serde_json::to_value(endpoint).expect("an endpoint"), written);
        }
    }
}
