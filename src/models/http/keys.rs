//! Keys that do not stay the same: short-lived tokens that somebody else hands out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::{ExposeSecret, SecretString};
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::settings::Key;
use crate::core::error::{ErrorCode, Failure};

/// A program that hands out keys may take this long.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_KEY_BYTES: usize = 64 << 10;

/// Hands out keys. The host application's own way to its credentials (FEATURES 3.09).
#[async_trait]
pub trait KeySource: fmt::Debug + Send + Sync {
    /// The key to send. Asked before the first request, and once more when the provider refuses the key it gave. The
    /// error is shown to people and holds no secret.
    async fn key(&self) -> Result<SecretString, String>;
}

/// A program whose output is the key.
#[derive(Clone, Debug)]
pub struct KeyCommand {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
}

#[async_trait]
impl KeySource for KeyCommand {
    async fn key(&self) -> Result<SecretString, String> {
        let program = &self.command;
        let mut command = Command::new(program);
        command.args(&self.args).stdin(std::process::Stdio::null()).kill_on_drop(true);
        let output = timeout(COMMAND_TIMEOUT, command.output())
            .await
            .map_err(|_| format!("`{program}` gave no key within {COMMAND_TIMEOUT:?}"))?
            .map_err(|error| format!("`{program}` cannot be run: {error}"))?;
        if !output.status.success() {
            // What it printed may be half a secret.
            return Err(format!("`{program}` failed: {}", output.status));
        }
        let key = String::from_utf8(output.stdout).map_err(|_| format!("`{program}` printed no text"))?;
        match key.trim() {
            "" => Err(format!("`{program}` printed nothing")),
            key if key.len() > MAX_KEY_BYTES => Err(format!("`{program}` printed more than a key")),
            key => Ok(key.into()),
        }
    }
}

/// The key of one model, and where a fresh one comes from.
pub(super) struct Keys {
    source: Source,
}

enum Source {
    None,
    Fixed(SecretString),
    Changing { source: Arc<dyn KeySource>, current: Mutex<Option<SecretString>> },
}

impl Keys {
    pub(super) fn new(key: Option<&Key>) -> Self {
        let source = match key {
            None => Source::None,
            Some(Key::Fixed(key)) => Source::Fixed(key.clone()),
            Some(Key::From(source)) => Source::Changing { source: Arc::clone(source), current: Mutex::default() },
        };
        Self { source }
    }

    /// Whether a refused key may be followed by another.
    pub(super) fn may_change(&self) -> bool {
        matches!(self.source, Source::Changing { .. })
    }

    /// The key to send now.
    pub(super) async fn current(&self) -> Result<Option<SecretString>, Failure> {
        match &self.source {
            Source::None => Ok(None),
            Source::Fixed(key) => Ok(Some(key.clone())),
            Source::Changing { source, current } => {
                let mut current = current.lock().await;
                if current.is_none() {
                    *current = Some(fetch(source.as_ref()).await?);
                }
                Ok(current.clone())
            }
        }
    }

    /// A key other than the refused one, if there is such a thing. Of several requests that were refused with one key
    /// only the first asks for another.
    pub(super) async fn instead_of(&self, refused: Option<&SecretString>) -> Result<Option<SecretString>, Failure> {
        let Source::Changing { source, current } = &self.source else { return Ok(None) };
        let text = |key: Option<&SecretString>| key.map(|key| key.expose_secret().to_owned());
        let refused = text(refused);
        let mut current = current.lock().await;
        if text(current.as_ref()) == refused {
            *current = None;
            *current = Some(fetch(source.as_ref()).await?);
        }
        Ok(current.clone().filter(|key| Some(key.expose_secret()) != refused.as_deref()))
    }
}

async fn fetch(source: &dyn KeySource) -> Result<SecretString, Failure> {
    source.key().await.map_err(|why| Failure::new(ErrorCode::ProviderAuth, format!("there is no key to send: {why}")))
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.source {
            Source::None => "no key",
            Source::Fixed(_) => "a key",
            Source::Changing { .. } => "a source of keys",
        })
    }
}
