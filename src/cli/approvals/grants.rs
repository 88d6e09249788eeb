//! `toolgate approvals grants`: lists grants, the approvals that cover more than one call.

use clap::Args;
use jiff::Timestamp;

use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::paint::Paint;
use crate::cli::setup::{self, ConfigFlag, ConfigOverrides};
use crate::cli::text::count;
use crate::cli::view::{by_way_of, clock};
use crate::core::policy::analysis::condition_in_words;
use crate::core::tool::escape_untrusted;
use crate::gateway::views::GrantView;
use crate::ports::{ApprovedCall, Grant, GrantFilter};

/// List grants: the calls that they cover run without approval
#[derive(Args, Debug)]
pub(super) struct Grants {
    #[command(flatten)]
    config: ConfigFlag,

    /// Only grants for this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Only grants in force in this conversation
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Also lists grants that are no longer in force
    #[arg(long)]
    ended: bool,

    /// Prints one JSON object per line
    #[arg(long)]
    json: bool,
}

impl Grants {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        setup::warn_of_unknown(self.agent.as_deref(), &app.settings, out);
        let filter = GrantFilter {
            agent: self.agent.as_deref().map(Into::into),
            session: self.session.as_deref().map(Into::into),
            ended: self.ended,
            ..GrantFilter::default()
        };
        let grants = app.runner.grants(&filter).await;
        setup::close(app, out).await;
        let (grants, now) = (grants?, Timestamp::now());
        if self.json {
            grants.into_iter().for_each(|grant| out.json(&GrantView::new(grant, now)));
            return Ok(Exit::Done);
        }
        if grants.is_empty() {
            let which = if self.ended { "there is no grant" } else { "no grant is in force" };
            out.note(format!("{which}; `toolgate approvals approve … --scope session` creates one"));
            return Ok(Exit::Done);
        }
        let paint = out.paint();
        grants.iter().flat_map(|grant| grant_lines(grant, now, paint)).for_each(|line| out.line(line));
        out.note(count(grants.len(), "grant"));
        // A grant that is no longer in force cannot be revoked.
        if let Some(first) = grants.iter().find(|grant| grant.holds(now)) {
            let again = setup::again(&self.config, &ConfigOverrides::default());
            let command = again.elsewhere(&["approvals", "revoke", first.id.as_str()]);
            let which = if self.ended { "the first in force" } else { "the first" };
            out.note(format!("revoke {which} with:\n  {command}"));
        }
        Ok(Exit::Done)
    }
}

/// The lines about a grant.
pub(in crate::cli) fn grant_lines(grant: &Grant, now: Timestamp, paint: Paint) -> Vec<String> {
    let principal = grant
        .principal
        .as_ref()
        .map(|principal| format!(" for {}", escape_untrusted(&principal.to_string())))
        .unwrap_or_default();
    let (reach, covers) = (reach(grant), covers(grant));
    let reason = grant.reason.as_ref().map(|reason| format!(": {}", escape_untrusted(reason))).unwrap_or_default();
    vec![
        format!("{}  {}{}", paint.bold(&grant.id), paint.bold(&grant.tool), state(grant, now, paint)),
        format!("    agent {}{principal}, {reach}", grant.agent),
        format!("    covers {covers}"),
        format!(
            "    by {} {}, {}{}{reason}",
            escape_untrusted(&grant.by),
            by_way_of(grant.via),
            clock(grant.created_at),
            given_with(grant),
        ),
    ]
}

/// The call whose approval created the grant, if there is one.
fn given_with(grant: &Grant) -> String {
    let suffix =
        |ApprovedCall { run, call }: &ApprovedCall| format!(", at {} of {run}", escape_untrusted(call.as_str()));
    grant.given_with.as_ref().map(suffix).unwrap_or_default()
}

/// The sessions in which the grant is in force.
pub(super) fn reach(grant: &Grant) -> String {
    match &grant.session {
        Some(session) => format!("in session {}", escape_untrusted(session.as_str())),
        None => "in every session".to_owned(),
    }
}

/// The calls that the grant covers.
pub(super) fn covers(grant: &Grant) -> String {
    match grant.arguments {
        _ if let Some(when) = &grant.when => match condition_in_words(when) {
            Some(words) => format!("calls with {}", escape_untrusted(&words)),
            None => format!("calls with `{}`", escape_untrusted(when)),
        },
        Some(_) => format!("only {}", grant.summary),
        None => "any arguments".to_owned(),
    }
}

fn state(grant: &Grant, now: Timestamp, paint: Paint) -> String {
    match (&grant.revoked, grant.expires_at) {
        (Some(revoked), _) => {
            paint.red(format!("  revoked by {} {}", escape_untrusted(&revoked.by), clock(revoked.at)))
        }
        (None, Some(until)) if until <= now => paint.yellow(format!("  expired {}", clock(until))),
        (None, Some(until)) => format!("  until {}", clock(until)),
        (None, None) => "  until it is revoked".to_owned(),
    }
}
