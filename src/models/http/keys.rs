//! Changing API keys: short-lived tokens from an external source.

use std::fmt;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use secrecy::{ExposeSecret, SecretString};
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStdout, Command};
use tokio::sync::Mutex;
use tokio::time::timeout;
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_settings::model::{Key, KeyCommand, KeySource};

/// The time limit of a key source.
const KEY_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_KEY_BYTES: usize = 64 << 10;

/// The program of a [`KeyCommand`] as a source.
#[derive(Debug)]
struct KeyProgram(KeyCommand);

#[async_trait]
impl KeySource for KeyProgram {
    async fn key(&self) -> Result<SecretString, String> {
        let KeyCommand { command: program, args } = &self.0;
        let mut command = Command::new(program);
        // Its error output may contain part of a secret.
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let not_run = |error: io::Error| format!("`{program}` cannot be run: {error}");
        let mut child = command.spawn().map_err(not_run)?;
        let printed = read_bounded(child.stdout.take()).await.map_err(not_run)?;
        if printed.len() > MAX_KEY_BYTES {
            return Err(format!("`{program}` printed more than a key"));
        }
        let status = child.wait().await.map_err(not_run)?;
        if !status.success() {
            return Err(format!("`{program}` failed: {status}"));
        }
        let key = String::from_utf8(printed).map_err(|_| format!("`{program}` printed invalid UTF-8"))?;
        match key.trim() {
            "" => Err(format!("`{program}` printed nothing")),
            key => Ok(key.into()),
        }
    }
}

/// The output of a program, up to one byte more than a key may have.
async fn read_bounded(stdout: Option<ChildStdout>) -> io::Result<Vec<u8>> {
    let mut printed = Vec::new();
    if let Some(stdout) = stdout {
        stdout.take(MAX_KEY_BYTES as u64 + 1).read_to_end(&mut printed).await?;
    }
    Ok(printed)
}

/// The key of one model, and the source of a new one.
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
        let changing = |source| Source::Changing { source, current: Mutex::default() };
        let source = match key {
            None => Source::None,
            Some(Key::Fixed(key)) => Source::Fixed(key.clone()),
            Some(Key::Command(command)) => changing(Arc::new(KeyProgram(command.clone()))),
            Some(Key::From(source)) => changing(Arc::clone(source)),
        };
        Self { source }
    }

    /// Whether another key may follow a rejected one.
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

    /// A key other than the rejected one, if the source can provide it. Of several requests with the same rejected key,
    /// only the first asks the source.
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
    let fetched = timeout(KEY_TIMEOUT, source.key()).await;
    let key = fetched.unwrap_or_else(|_| Err(format!("no key came within {KEY_TIMEOUT:?}")));
    key.map_err(|why| Failure::new(ErrorCode::ProviderAuth, format!("there is no key to send: {why}")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Hanging;

    #[async_trait]
    impl KeySource for Hanging {
        async fn key(&self) -> Result<SecretString, String> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_source_has_a_time_limit() {
        let keys = Keys::new(Some(&Key::From(Arc::new(Hanging))));
        let fetched = timeout(KEY_TIMEOUT * 2, keys.current()).await;
        let failure = fetched.expect("the key is waited for").unwrap_err();
        assert_eq!(failure.code, ErrorCode::ProviderAuth);
        assert_eq!(failure.message, "there is no key to send: no key came within 30s");
        assert_eq!(keys.instead_of(None).await.unwrap_err(), failure);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn an_endless_key_program_is_read_in_part_and_stopped() {
        let endless = KeyProgram(KeyCommand { command: "yes".into(), args: vec!["key-canary".into()] });
        assert_eq!(endless.key().await.unwrap_err(), "`yes` printed more than a key");
    }
}
