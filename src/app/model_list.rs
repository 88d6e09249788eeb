//! Model lists of servers: of a configured model, and of the model servers on this machine.

use std::time::Duration;

use futures::future::join_all;

use crate::config::{Api, HttpModelSettings};
use crate::core::error::Failure;
pub use crate::models::ModelList;
use crate::models::{self, ListApi, Proxy};

/// How long a configured server may take.
const CONFIGURED: Duration = Duration::from_secs(5);

/// How long a server on this machine may take: it usually does not exist.
const LOCAL: Duration = Duration::from_secs(1);

/// The model servers that people run on their machines, with their default ports.
const LOCAL_SERVERS: [(&str, u16); 4] =
    [("Ollama", models::OLLAMA_PORT), ("LM Studio", 1234), ("vLLM", 8000), ("llama.cpp", 8080)];

/// A model server on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalModelServer {
    /// The program that has this default port; another one may use it.
    pub program: &'static str,
    /// The base address of its API.
    pub base_url: String,
    /// Its models; at least one.
    pub models: Vec<String>,
}

/// Requests the models of the server of a configured model. The request costs nothing.
///
/// # Errors
/// The server cannot be reached, fails, or rejects the key.
pub async fn list_models(model: &HttpModelSettings) -> Result<ModelList, Failure> {
    let api = match model.api {
        Api::OpenAiChat | Api::OpenAiResponses | Api::OpenAiImages => ListApi::OpenAi,
        Api::Anthropic => ListApi::Anthropic,
        Api::Gemini => ListApi::Gemini,
    };
    models::list_models(&model.settings, api, CONFIGURED).await
}

/// The servers with models at the default ports of this machine.
pub async fn local_model_servers() -> Vec<LocalModelServer> {
    let asked = LOCAL_SERVERS.map(|(program, port)| async move {
        let base_url = format!("http://localhost:{port}/v1");
        let settings = models::Settings { proxy: Proxy::Direct, ..models::Settings::new(&base_url, "any") };
        let listed = models::list_models(&settings, ListApi::OpenAi, LOCAL).await;
        match listed {
            Ok(ModelList::Models(models)) if !models.is_empty() => Some(LocalModelServer { program, base_url, models }),
            Ok(ModelList::Models(_) | ModelList::NoList { .. }) | Err(_) => None,
        }
    });
    join_all(asked).await.into_iter().flatten().collect()
}
