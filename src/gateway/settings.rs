//! Gateway settings: limits, timeouts and rules that apply to every request.

use std::time::Duration;

use toolgate_core::trace::Propagation;

use super::access::Limits;

/// Settings that apply to every request.
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// The gateway's public address, without a trailing slash: the prefix of `Location` and of the `type` of problems.
    /// Default: empty, so that they are paths.
    pub public_url: String,
    /// The parts of a client's trace context that are read.
    pub propagation: Propagation,
    /// The largest body, in bytes.
    pub body_bytes: usize,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// How long the body of an upload of a file may take to arrive. The limits of files are those of the service.
    pub upload_timeout: Duration,
    /// The limits of one caller. Default: no limits.
    pub limits: Limits,
    /// How long a request waits for a run by default, until it is pending or has ended.
    pub default_wait: Duration,
    /// The longest wait that a request can ask for.
    pub longest_wait: Duration,
    /// How often an idle stream sends a heartbeat.
    pub heartbeat: Duration,
    /// How often the credentials of an open stream are checked again.
    pub recheck: Duration,
    /// How often a stream polls the journal of a run that another process drives.
    pub poll: Duration,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            public_url: String::new(),
            propagation: Propagation::ALL,
            body_bytes: 4 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            upload_timeout: Duration::from_secs(300),
            limits: Limits::default(),
            default_wait: Duration::from_secs(300),
            longest_wait: Duration::from_secs(300),
            heartbeat: Duration::from_secs(15),
            recheck: Duration::from_secs(5),
            poll: Duration::from_secs(1),
        }
    }
}
