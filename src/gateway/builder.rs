//! Putting a gateway together.

use std::sync::Arc;
use std::time::Duration;

use super::access::{Caller, Door, KeyDoor, Limits, Origins};
use super::runs::MediaHosts;
use super::serve::Accounts;
use super::state::Gateway;
use super::surroundings::{Alone, Surroundings};
use super::webhooks::Outbound;
use crate::ports::{AccessKeys, Replies};
use crate::runner::AgentRunner;
use crate::telemetry::metrics::HttpMeter;

/// What is the same for every request.
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// The address people know this gateway by, without a trailing slash: what `type` of problems and `Location` begin with.
    /// Default: nothing, so that they are paths.
    pub public_url: String,
    /// How large a body may be.
    pub body_bytes: usize,
    /// How long it may take to arrive.
    pub body_timeout: Duration,
    /// How much one caller may ask for. Default: as much as they like.
    pub limits: Limits,
    /// How long a request waits for a run to rest, unless it says.
    pub usual_wait: Duration,
    /// How long it waits at most.
    pub longest_wait: Duration,
    /// How often a stream without news says that it is there.
    pub heartbeat: Duration,
    /// How often the credentials of an open stream are looked at again.
    pub recheck: Duration,
    /// How often a stream looks at the journal of a run that this process does not drive.
    pub poll: Duration,
    /// Hosts of media URLs that are taken besides those of the public internet. Default: none.
    pub media_hosts: MediaHosts,
    /// Whether whoever started a run must not be the one who approves its calls.
    pub four_eyes: bool,
}

impl Default for GatewaySettings {
    fn default() -> Self {
        Self {
            public_url: String::new(),
            body_bytes: 4 * 1024 * 1024,
            body_timeout: Duration::from_secs(30),
            limits: Limits::default(),
            usual_wait: Duration::from_secs(300),
            longest_wait: Duration::from_secs(300),
            heartbeat: Duration::from_secs(15),
            recheck: Duration::from_secs(5),
            poll: Duration::from_secs(1),
            media_hosts: MediaHosts::default(),
            four_eyes: false,
        }
    }
}

/// Collects what a gateway needs besides its runner.
pub struct Builder {
    pub(super) runner: AgentRunner,
    pub(super) settings: GatewaySettings,
    pub(super) doors: Vec<Arc<dyn Door>>,
    pub(super) keys: Option<Arc<KeyDoor>>,
    pub(super) anonymous: Option<Caller>,
    pub(super) origins: Option<Origins>,
    pub(super) surroundings: Arc<dyn Surroundings>,
    pub(super) accounts: Accounts,
    pub(super) replies: Option<Arc<dyn Replies>>,
    pub(super) webhooks: Option<Outbound>,
}

impl Builder {
    pub(super) fn new(runner: AgentRunner) -> Self {
        Self {
            runner,
            settings: GatewaySettings::default(),
            doors: Vec::new(),
            keys: None,
            anonymous: None,
            origins: None,
            surroundings: Arc::new(Alone),
            accounts: Accounts::default(),
            replies: None,
            webhooks: None,
        }
    }

    /// What is the same for every request.
    #[must_use]
    pub fn settings(mut self, settings: GatewaySettings) -> Self {
        self.settings = settings;
        self
    }

    /// A way to be let in; they are tried in the order they were added.
    #[must_use]
    pub fn door(mut self, door: Arc<dyn Door>) -> Self {
        self.doors.push(door);
        self
    }

    /// Keys as a way to be let in, and `/v1/keys` to look after them.
    #[must_use]
    pub fn keys(mut self, store: Arc<dyn AccessKeys>) -> Self {
        let door = Arc::new(KeyDoor::new(store));
        self.keys = Some(door.clone());
        self.door(door)
    }

    /// What browsers may do. Without it, whoever nests the router looks after that.
    #[must_use]
    pub fn origins(mut self, origins: Origins) -> Self {
        self.origins = Some(origins);
        self
    }

    /// Where answers to requests with an idempotency key are kept; without it such requests are refused.
    #[must_use]
    pub fn replies(mut self, store: Arc<dyn Replies>) -> Self {
        self.replies = Some(store);
        self
    }

    /// Who somebody is that shows nothing; without it they are refused.
    #[must_use]
    pub fn anonymous(mut self, caller: Caller) -> Self {
        self.anonymous = Some(caller);
        self
    }

    /// What only adapters know.
    #[must_use]
    pub fn surroundings(mut self, surroundings: Arc<dyn Surroundings>) -> Self {
        self.surroundings = surroundings;
        self
    }

    /// Where requests are measured.
    #[must_use]
    pub fn measured(mut self, meter: HttpMeter) -> Self {
        self.accounts.meter = Some(meter);
        self
    }

    /// What webhooks are sent with; without it there are none.
    #[must_use]
    pub fn webhooks(mut self, webhooks: Outbound) -> Self {
        self.webhooks = Some(webhooks);
        self
    }

    /// The gateway.
    pub fn build(self) -> Gateway {
        Gateway::new(self)
    }
}
