//! Server endpoints as they are stored with tools: enough to distinguish two endpoints, and to show one to a person.
//! They contain no potential secret: variables and headers are excluded, and arguments and the query of an address are
//! only in the hash.

use serde::{Deserialize, Serialize};

/// The endpoint of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Endpoint {
    /// Hash of the program with its arguments and directory, or of the address. Another hash is another server.
    pub fingerprint: String,
    /// A description in words, without potential secrets. Older journals have the hash alone.
    pub told: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Hash(String),
    Told { fingerprint: String, told: String },
}

impl Endpoint {
    /// The description for an approver: in words, as far as it is known, and the hash.
    pub fn in_words(&self) -> String {
        match &self.told {
            Some(told) => format!("{told}; in all {}", self.fingerprint),
            None => self.fingerprint.clone(),
        }
    }
}

impl From<&str> for Endpoint {
    fn from(fingerprint: &str) -> Self {
        Self { fingerprint: fingerprint.to_owned(), told: None }
    }
}

impl From<Written> for Endpoint {
    fn from(written: Written) -> Self {
        match written {
            Written::Hash(fingerprint) => Self { fingerprint, told: None },
            Written::Told { fingerprint, told } => Self { fingerprint, told: Some(told) },
        }
    }
}

impl From<Endpoint> for Written {
    fn from(Endpoint { fingerprint, told }: Endpoint) -> Self {
        match told {
            Some(told) => Self::Told { fingerprint, told },
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
        for written in [json!("sha256:a"), json!({"fingerprint": "sha256:a", "told": "program desk, 0 arguments"})] {
            let endpoint: Endpoint = serde_json::from_value(written.clone()).expect("an endpoint");
            assert_eq!(endpoint.fingerprint, "sha256:a");
            assert_eq!(serde_json::to_value(endpoint).expect("an endpoint"), written);
        }
    }
}
