//! `toolgate keys revoke`: revokes an API key.

use clap::Args;
use jiff::Timestamp;

use crate::app::App;
use crate::cli::answers::who;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::text::list;
use crate::cli::view::clock;
use crate::core::tool::escape_untrusted;
use crate::ports::AccessKey;

/// Revoke a key: running servers reject it within seconds
#[derive(Args, Debug)]
pub(super) struct Revoke {
    /// The key, by its id, a unique beginning of it, or its name
    #[arg(value_name = "KEY")]
    key: String,

    /// Who revokes it [default: the user of this terminal]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    #[command(flatten)]
    config: ConfigFlag,
}

impl Revoke {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let revoked = self.revoke(&app).await;
        setup::close(app, out).await;
        let key = revoked?;
        if let Some(revoked) = &key.revoked {
            let (name, by, at) = (escape_untrusted(&key.name), escape_untrusted(&revoked.by), clock(revoked.at));
            out.line(format!("{} {name} revoked by {by} {at}", key.id));
        }
        Ok(Exit::Done)
    }

    async fn revoke(&self, app: &App) -> Result<AccessKey, CliError> {
        let known = app.keys().await?;
        let id = &choose(&self.key, &known)?.id;
        let revoked = app.revoke_key(id, self.by.clone().unwrap_or_else(who)).await?;
        revoked.ok_or_else(|| missing(&self.key))
    }
}

/// The key with this id, the only one whose id begins with it, or the only one with this name.
pub(super) fn choose<'k>(named: &str, known: &'k [AccessKey]) -> Result<&'k AccessKey, CliError> {
    let fits: Vec<&AccessKey> = known.iter().filter(|key| key.id.as_str().starts_with(named)).collect();
    if let Some(exact) = fits.iter().find(|key| key.id.as_str() == named) {
        return Ok(exact);
    }
    // A rotated key leaves its name to its successor, and ended ones are never deleted.
    let now = Timestamp::now();
    let named_so: Vec<&AccessKey> = known.iter().filter(|key| key.name == named && key.holds(now)).collect();
    match fits.as_slice() {
        [] if let [only] = named_so[..] => Ok(only),
        [] if !named_so.is_empty() => {
            let ids = list(named_so.iter().map(|key| &key.id));
            Err(CliError::not_found(format!("several keys have the name `{}`: {ids}", escape_untrusted(named))))
        }
        [only] if !named.is_empty() => Ok(only),
        [] => Err(missing(named)),
        several => {
            let ids = list(several.iter().map(|key| &key.id));
            Err(CliError::not_found(format!("`{named}` is the beginning of several keys: {ids}")))
        }
    }
}

fn missing(named: &str) -> CliError {
    CliError::not_found(format!("there is no key `{}`", escape_untrusted(named)))
        .with_remedy("`toolgate keys list` lists all of them")
}
