//! `toolgate keys list`: lists API keys and whether each is valid.

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::paint::Paint;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::text::count;
use crate::cli::view::clock;
use crate::core::tool::escape_untrusted;
use crate::ports::AccessKey;

/// List the keys of all tenants, newest first
#[derive(Args, Debug)]
pub(super) struct List {
    #[command(flatten)]
    config: ConfigFlag,

    /// Prints one JSON object per line
    #[arg(long)]
    json: bool,
}

/// An API key and whether it is valid now.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    key: &'a AccessKey,
    active: bool,
}

impl List {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let keys = app.keys().await;
        setup::close(app, out).await;
        let (keys, now) = (keys?, Timestamp::now());
        if self.json {
            keys.iter().for_each(|key| out.json(&Row { key, active: key.holds(now) }));
            return Ok(Exit::Done);
        }
        if keys.is_empty() {
            out.note("there are no keys; `toolgate keys create NAME --all` creates one");
            return Ok(Exit::Done);
        }
        let paint = out.paint();
        keys.iter().flat_map(|key| lines(key, now, paint)).for_each(|line| out.line(line));
        out.note(count(keys.len(), "key"));
        Ok(Exit::Done)
    }
}

fn lines(key: &AccessKey, now: Timestamp, paint: Paint) -> Vec<String> {
    let principal = key.principal.as_ref().map(|principal| format!(" for {}", escape_untrusted(principal.as_str())));
    let used = key.used_at.map_or_else(|| "never used".to_owned(), |at| format!("last used {}", clock(at)));
    vec![
        format!("{}  {}  {}", paint.bold(&key.id), paint.bold(escape_untrusted(&key.name)), state(key, now, paint)),
        format!("    tenant {}{}", escape_untrusted(key.tenant.as_str()), principal.unwrap_or_default()),
        format!("    {}", key.scopes.join(" ")),
        format!("    by {} {}, {used}", escape_untrusted(&key.created_by), clock(key.created_at)),
    ]
}

fn state(key: &AccessKey, now: Timestamp, paint: Paint) -> String {
    match (&key.revoked, key.valid_until()) {
        (Some(revoked), _) => paint.red(format!("revoked by {} {}", escape_untrusted(&revoked.by), clock(revoked.at))),
        (None, Some(until)) if until <= now => paint.yellow(format!("expired {}", clock(until))),
        (None, Some(until)) => format!("until {}", clock(until)),
        (None, None) => "until it is revoked".to_owned(),
    }
}
