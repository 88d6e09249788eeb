//! `toolgate keys create`: creates an API key and shows it once.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use jiff::Timestamp;
use secrecy::ExposeSecret as _;

use crate::app::{KeyScope, NewKey, check_name};
use crate::cli::answers::who;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::time_arg::Moment;
use crate::cli::view::clock;
use crate::config::StoreSettings;
use crate::core::error::ErrorCode;
use crate::core::id::Tenant;

/// Create a key and print it; nothing else is printed on standard output
#[derive(Args, Debug)]
pub(super) struct Create {
    /// Name of the key; journals record its actions as `key:NAME`
    #[arg(value_name = "NAME")]
    name: String,

    /// Tenant of the key [default: the one tenant of a gateway without others]
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,

    /// Principal of all its runs [default: each run names its own]
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,

    /// Scope of the key (repeatable)
    #[arg(long = "scope", value_name = "SCOPE", required_unless_present = "all", value_parser = scope())]
    scopes: Vec<KeyScope>,

    /// Gives the key all scopes
    #[arg(long, conflicts_with = "scopes")]
    all: bool,

    /// When it expires: a duration or a time (90d, 8h, 2027-01-01T09:00:00Z) [default: never]
    #[arg(long, value_name = "MOMENT")]
    expires: Option<Moment>,

    /// Who creates it [default: the user of this terminal]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    #[command(flatten)]
    config: ConfigFlag,
}

fn scope() -> impl clap::builder::TypedValueParser<Value = KeyScope> {
    let known = PossibleValuesParser::new(KeyScope::ALL.map(KeyScope::as_str));
    known.try_map(|name| KeyScope::parse(&name).ok_or("unknown scope"))
}

impl Create {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        NewKey::check_name(&self.name).map_err(CliError::usage)?;
        for (flag, name) in [("--tenant", &self.tenant), ("--principal", &self.principal)] {
            let checked = name.as_deref().map_or(Ok(()), check_name);
            checked.map_err(|wrong| CliError::usage(format!("{flag}: {wrong}")))?;
        }
        let expires = self.expires.map(|moment| moment.after(Timestamp::now())).transpose();
        let expires_at = expires.map_err(|error| CliError::usage(format!("--expires: {error}")))?;
        let settings = setup::settings(&self.config)?;
        if matches!(settings.store, StoreSettings::Memory) {
            let error = CliError::new(ErrorCode::Configuration, "a key in memory would be lost at once");
            return Err(error.with_remedy("configure a store that is a file: `store: { sqlite: {} }`"));
        }
        let new = NewKey {
            name: self.name,
            tenant: self.tenant.map_or_else(Tenant::default, Tenant::from),
            principal: self.principal.map(Into::into),
            scopes: if self.all { KeyScope::ALL.into_iter().collect() } else { self.scopes.into_iter().collect() },
            expires_at,
            by: self.by.unwrap_or_else(who),
        };
        let app = setup::open(settings).await?;
        let created = app.create_key(new).await;
        setup::close(app, out).await;
        let (secret, key) = created?;
        let until =
            key.expires_at.map_or_else(|| "until it is revoked".to_owned(), |at| format!("until {}", clock(at)));
        out.note(format!("{} `{}` is valid {until}; it is not shown again", key.id, key.name));
        out.line(secret.expose_secret());
        Ok(Exit::Done)
    }
}
