//! `toolgate approvals revoke`: revokes grants.

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use super::grants::{covers, reach};
use crate::app::App;
use crate::cli::answers::who;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::text::list;
use crate::cli::view::clock;
use crate::core::id::GrantId;
use crate::core::tool::escape_untrusted;
use crate::gateway::views::GrantView;
use crate::ports::{Grant, GrantFilter};

/// Revoke grants: calls that nothing else covers require approval again
#[derive(Args, Debug)]
pub(super) struct Revoke {
    /// The grants, by their ids or a unique beginning of each
    #[arg(required = true, value_name = "GRANT")]
    grants: Vec<String>,

    /// Who revokes them [default: the user of this terminal]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    #[command(flatten)]
    config: ConfigFlag,

    /// Prints one JSON object per line
    #[arg(long)]
    json: bool,
}

impl Revoke {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let revoked = revoke(&app, &self.grants, &self.by.clone().unwrap_or_else(who)).await;
        let active = app.runner.grants(&GrantFilter::default()).await;
        setup::close(app, out).await;
        let (revoked, active, now) = (revoked?, active?, Timestamp::now());
        for grant in &revoked {
            if self.json {
                let still_covered_by = overlapping(grant, &active).map(|other| &other.id).collect();
                out.json(&RevokedGrant { grant: GrantView::new(grant.clone(), now), still_covered_by });
            } else {
                print_revoked(grant, &active, out);
            }
        }
        Ok(Exit::Done)
    }
}

/// Revokes grants, by their ids or a unique beginning of each. Resolves all of them before it revokes the first one.
pub(in crate::cli) async fn revoke(app: &App, grants: &[String], by: &str) -> Result<Vec<Grant>, CliError> {
    let known = app.runner.grants(&GrantFilter { ended: true, ..GrantFilter::default() }).await?;
    let named: Vec<GrantId> = grants.iter().map(|named| choose(named, &known)).collect::<Result<_, _>>()?;
    Ok(app.operator().revoke(named, by).await?)
}

/// Prints a revoked grant, and the active ones that cover some or all of its calls.
pub(in crate::cli) fn print_revoked(grant: &Grant, active: &[Grant], out: &mut Output) {
    if let Some(revoked) = &grant.revoked {
        let (by, at) = (escape_untrusted(&revoked.by), clock(revoked.at));
        out.line(format!("{} {} revoked by {by} {at}", grant.id, grant.tool));
    }
    for other in overlapping(grant, active) {
        let (reach, covers) = (reach(other), covers(other));
        // Whether two conditions meet is not known, nor whether arguments meet one: a grant keeps only their hash.
        let still = if grant.when.is_none() && other.when.is_none() { "still" } else { "some calls may still be" };
        out.line(format!("    ! {still} covered by {}, {reach}: {covers}", other.id));
    }
}

#[derive(Serialize)]
struct RevokedGrant<'a> {
    #[serde(flatten)]
    grant: GrantView,
    /// The grants that cover some or all of the same calls; with a condition, that may cover some of them.
    still_covered_by: Vec<&'a GrantId>,
}

/// The active grants that cover some of the same calls as this one.
fn overlapping<'a>(grant: &'a Grant, active: &'a [Grant]) -> impl Iterator<Item = &'a Grant> {
    fn meet<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
        one.as_ref().zip(other.as_ref()).is_none_or(|(one, other)| one == other)
    }
    let whose = |grant: &Grant| (grant.agent.clone(), grant.principal.clone(), grant.definition.clone());
    active.iter().filter(move |other| {
        other.id != grant.id
            && other.tool == grant.tool
            && whose(other) == whose(grant)
            && meet(&other.session, &grant.session)
            && meet(&other.arguments, &grant.arguments)
    })
}

fn choose(named: &str, known: &[Grant]) -> Result<GrantId, CliError> {
    if let Some(grant) = known.iter().find(|grant| grant.id.as_str() == named) {
        return Ok(grant.id.clone());
    }
    let fits: Vec<&GrantId> = known.iter().map(|grant| &grant.id).filter(|id| id.as_str().starts_with(named)).collect();
    match fits.as_slice() {
        [only] if !named.is_empty() => Ok((*only).clone()),
        [] => Err(CliError::not_found(format!("there is no grant `{named}`"))
            .with_remedy("`toolgate approvals grants --ended` lists all of them")),
        several => Err(CliError::not_found(format!("`{named}` is the beginning of several grants: {}", list(several)))
            .with_remedy("give more of the id")),
    }
}
