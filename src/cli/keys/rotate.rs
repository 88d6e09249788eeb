//! `toolgate keys rotate`: replaces an API key by another one, while both are valid for a time.

use clap::Args;
use jiff::Timestamp;
use secrecy::ExposeSecret as _;

use super::revoke::choose;
use crate::app::{App, ROTATION_OVERLAP};
use crate::cli::answers::who;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::time_arg::Moment;
use crate::cli::view::clock;

/// Create a key like this one and print it; this one expires after an overlap
#[derive(Args, Debug)]
pub(super) struct Rotate {
    /// The key, by its id, a unique beginning of it, or its name
    #[arg(value_name = "KEY")]
    key: String,

    /// How long this key stays valid: a duration or a time (8h, 2d, 2027-01-01T09:00:00Z) [default: 24h]
    #[arg(long, value_name = "MOMENT")]
    overlap: Option<Moment>,

    /// Who rotates it [default: the user of this terminal]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    #[command(flatten)]
    config: ConfigFlag,
}

impl Rotate {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let rotated = self.rotate(&app, out).await;
        setup::close(app, out).await;
        rotated
    }

    async fn rotate(&self, app: &App, out: &mut Output) -> Result<Exit, CliError> {
        let known = app.keys().await?;
        let key = choose(&self.key, &known)?;
        let overlap = self.overlap.unwrap_or(Moment::Away(ROTATION_OVERLAP)).after(Timestamp::now());
        let until = overlap.map_err(|error| CliError::usage(format!("--overlap: {error}")))?;
        let rotated = app.rotate_key(key, until, self.by.clone().unwrap_or_else(who)).await?;
        let (secret, new) = rotated.ok_or_else(|| {
            let error = CliError::usage(format!("the key `{}` is revoked or has expired", key.id));
            error.with_remedy("create another one with `toolgate keys create`")
        })?;
        let until = key.valid_until().map_or(until, |own| own.min(until));
        out.note(format!("{} `{}` replaces {}, which is valid until {}", new.id, new.name, key.id, clock(until)));
        out.line(secret.expose_secret());
        Ok(Exit::Done)
    }
}
