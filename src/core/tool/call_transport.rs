//! Call transport: over which protocol a server was called, and which request carried the call. It is recorded with the
//! reply, so that spans and metrics can name it. It contains no potential secret: no credentials, no path or query of
//! an address, and no MCP session id, which serves as a credential for servers that require no other.

use serde::{Deserialize, Serialize};

/// The transport of one call to its server and back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallTransport {
    #[serde(flatten)]
    pub transport: Transport,
    /// The MCP protocol version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// The JSON-RPC id of the request, the last one if there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The code of a JSON-RPC error reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<i32>,
}

/// The transport of messages to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "transport")]
pub enum Transport {
    /// A pair of pipes, to a child process or within this process.
    #[serde(rename = "pipe")]
    Pipe,
    /// Streamable HTTP, which runs over TCP.
    #[serde(rename = "tcp")]
    Http {
        /// The host of the server's address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        address: Option<String>,
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
    fn the_transport_in_a_journal_is_flat_and_round_trips() {
        let http = Transport::Http { address: Some("mcp.example".into()), port: Some(443) };
        for (transport, written) in [
            (Transport::Pipe, json!({"transport": "pipe", "request_id": "3"})),
            (http, json!({"transport": "tcp", "address": "mcp.example", "port": 443, "request_id": "3"})),
        ] {
            let wire =
                CallTransport { transport, protocol_version: None, request_id: Some("3".into()), error_code: None };
            assert_eq!(serde_json::to_value(&wire).expect("written"), written);
            assert_eq!(serde_json::from_value::<CallTransport>(written).expect("read"), wire);
        }
    }
}
