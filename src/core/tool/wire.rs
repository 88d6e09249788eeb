//! How a call travelled: what its server was spoken to over, and which request carried it. It is recorded with what came
//! back, so that spans and metrics can name it. Never what may be a secret: no credentials, no path or query of an
//! address, and no id of an MCP session, which is as good as a credential to servers that ask for no other.

use serde::{Deserialize, Serialize};

/// The way of one call to its server and back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wire {
    /// What carried it.
    #[serde(flatten)]
    pub transport: Transport,
    /// The revision of MCP that was spoken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The JSON-RPC id of the request, the last one where there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The JSON-RPC error that it was answered with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<i32>,
}

/// What carries messages to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "transport")]
pub enum Transport {
    /// A pair of pipes, to a child or within this process.
    #[serde(rename = "pipe")]
    Pipe,
    /// Streamable HTTP, which runs over TCP.
    #[serde(rename = "tcp")]
    Http {
        /// The host of the server's address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<String>,
        /// Its port.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        port: Option<u16>,
    },
}

impl Transport {
    /// The word of OpenTelemetry's `network.transport`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::Http { .. } => "tcp",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_journal_says_of_a_way_is_flat_and_read_back_as_it_was() {
        let http = Transport::Http { address: Some("mcp.example".into()), port: Some(443) };
        for (transport, written) in [
            (Transport::Pipe, json!({"transport": "pipe", "request_id": "3"})),
            (http, json!({"transport": "tcp", "address": "mcp.example", "port": 443, "request_id": "3"})),
        ] {
            let wire = Wire { transport, protocol_version: None, request_id: Some("3".into()), error_code: None };
            assert_eq!(serde_json::to_value(&wire).expect("written"), written);
            assert_eq!(serde_json::from_value::<Wire>(written).expect("read"), wire);
        }
    }
}
