//! HTTP model: a model behind a wire.

use std::fmt;
use std::sync::Arc;

use toolgate_core::run::ModelOptions;
use toolgate_core::tool::Tool;
use toolgate_ports::{Conversation, Model, ModelIdentity, ModelRequest, ToolFit};

use super::answer::{Answer, Head};
use super::author::Author;
use super::conversation::HttpConversation;
use super::declaration::Declared;
use super::endpoint::{Address, Endpoint};
use super::protocol::ProviderProtocol;
use super::settings::sampling_settings;
use super::tool_block::ToolBlocks;
use super::{Settings, SettingsError};

/// A constructor of wires, from settings and the name of the provider.
type Wires = Arc<dyn Fn(&Settings, &str) -> Result<Arc<dyn ProviderProtocol>, SettingsError> + Send + Sync>;

/// A model on a server that is reached over HTTP.
#[derive(Clone)]
pub struct HttpModel {
    identity: Arc<ModelIdentity>,
    settings: Arc<Settings>,
    endpoint: Arc<Endpoint>,
    wire: Arc<dyn ProviderProtocol>,
    /// Makes the wire for other settings.
    wires: Wires,
    author: Arc<Author>,
    blocks: Arc<ToolBlocks>,
}

impl HttpModel {
    /// A model that uses `wire` at `address`; sends no request. `wire` gets the settings and the provider's name, which
    /// follows from the address.
    pub(crate) fn new<W: ProviderProtocol + 'static>(
        settings: &Settings,
        system: &str,
        address: &Address<'_>,
        wire: fn(&Settings, &str) -> Result<W, SettingsError>,
    ) -> Result<Self, SettingsError> {
        let endpoint = Endpoint::new(settings, address)?;
        let wires: Wires = Arc::new(move |settings, provider| Ok(Arc::new(wire(settings, provider)?)));
        let wire = wires(settings, endpoint.provider())?;
        let identity = ModelIdentity {
            system: system.to_owned(),
            provider: endpoint.provider().to_owned(),
            model: settings.model.clone(),
            settings: sampling_settings(settings),
        };
        let author = Author { wire: wire.name(), model: settings.model.clone(), origin: endpoint.origin().to_owned() };
        Ok(Self {
            identity: Arc::new(identity),
            settings: Arc::new(settings.clone()),
            endpoint: Arc::new(endpoint),
            wire,
            wires,
            author: Arc::new(author),
            blocks: Arc::default(),
        })
    }

    /// The body that a new conversation would send for this request.
    pub fn body(&self, request: &ModelRequest<'_>) -> Result<Vec<u8>, serde_json::Error> {
        self.conversation().render(request)
    }

    /// An answer with this head, to parse without a network.
    pub fn answer(&self, head: Head) -> Answer {
        Answer::new(head, &self.wire)
    }

    fn conversation(&self) -> HttpConversation {
        let Self { endpoint, wire, author, blocks, .. } = self;
        HttpConversation::new(endpoint.clone(), wire.clone(), author.clone(), blocks.clone())
    }
}

impl Model for HttpModel {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn fit(&self, tool: &Tool) -> ToolFit {
        match self.wire.declare(tool) {
            Declared::As { lost, .. } if lost.is_empty() => ToolFit::Whole,
            Declared::As { lost, .. } => ToolFit::Lossy(lost),
            Declared::Refused(why) => ToolFit::Refused(why),
        }
    }

    fn most_tools(&self) -> Option<usize> {
        self.wire.most_tools()
    }

    fn with_options(&self, options: &ModelOptions) -> Result<Arc<dyn Model>, String> {
        let settings = self.settings.with(options)?;
        let wire = (self.wires)(&settings, self.endpoint.provider()).map_err(|error| error.to_string())?;
        let identity = ModelIdentity { settings: sampling_settings(&settings), ..ModelIdentity::clone(&self.identity) };
        Ok(Arc::new(Self { identity: Arc::new(identity), settings: Arc::new(settings), wire, ..self.clone() }))
    }

    fn converse(&self) -> Box<dyn Conversation> {
        Box::new(self.conversation())
    }
}

impl fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { identity, endpoint, wire, .. } = self;
        f.debug_struct("HttpModel")
            .field("model", &identity.model)
            .field("endpoint", endpoint)
            .field("wire", &wire.name())
            .finish()
    }
}
