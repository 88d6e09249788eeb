//! Call selection for decisions: the chosen calls of a run and their current digests.

use std::collections::BTreeMap;

use clap::Args;

use super::show::nothing_waits;
use crate::app::App;
use crate::cli::binding_digest::{self, DigestPrefix};
use crate::cli::error::CliError;
use crate::cli::text::list;
use crate::core::id::{CallId, RunId};
use crate::core::run::{Answer, Decision, PendingItem, Resume};
use crate::service::InboxItem;

/// Call selection: by id, all at once, or up to an event.
#[derive(Args, Debug)]
pub(super) struct CallSelection {
    /// The run: its id, a unique beginning or end of it, or `last`
    pub(super) run: String,

    /// The calls
    #[arg(value_name = "CALL")]
    calls: Vec<String>,

    /// All calls of the run that require approval now
    #[arg(long, conflicts_with = "calls")]
    all: bool,

    /// All calls whose approval was requested up to this event of the run's journal
    #[arg(long, value_name = "EVENT", conflicts_with = "calls")]
    up_to: Option<u64>,

    /// The digest of the call as `approvals show` and `list --json` print it, or at least its first 12 digits: if the
    /// pending call has changed, nothing is decided
    #[arg(long, value_name = "DIGEST", value_parser = binding_digest::digest, conflicts_with_all = ["all", "up_to"])]
    digest: Option<DigestPrefix>,
}

/// The selected calls and the digests that bind the decisions about them.
pub(super) struct SelectedCalls {
    /// The pending items of these calls.
    items: Vec<PendingItem>,
    /// The calls, in the order in which the user named them or the model made them.
    calls: Vec<CallId>,
    /// The digests of the pending calls.
    digests: BTreeMap<CallId, String>,
}

impl SelectedCalls {
    /// The pending items of the calls.
    pub(super) fn items(&self) -> &[PendingItem] {
        &self.items
    }

    /// The same decision about each call.
    pub(super) fn decided(mut self, decision: &Decision) -> Resume {
        let answers = self.calls.into_iter().map(|call| {
            let digest = self.digests.remove(&call);
            (call, Answer::Decision { decision: Box::new(decision.clone()), digest })
        });
        answers.collect::<Resume>().partial()
    }
}

impl CallSelection {
    /// Validates the flags before the store is opened.
    pub(super) fn check(&self) -> Result<(), CliError> {
        let is_everything = self.all || self.up_to.is_some();
        if self.calls.is_empty() && !is_everything {
            let message = "no call is named";
            return Err(CliError::usage(message).with_remedy(
                "name them (`toolgate approvals list` lists pending calls), or use --all or --up-to EVENT",
            ));
        }
        if self.digest.is_some() && self.calls.len() != 1 {
            return Err(
                CliError::usage("--digest is the digest of one call").with_remedy("decide about one call at a time")
            );
        }
        Ok(())
    }

    /// Whether the user named exactly one call.
    pub(super) fn is_one(&self) -> bool {
        self.calls.len() == 1
    }

    /// Resolves the selection. Each decision is bound to the call that is pending now, or to the digest that the user
    /// saw.
    pub(super) async fn choose(&self, app: &App, run: &RunId) -> Result<SelectedCalls, CliError> {
        let mut waiting = app.operator().inbox_of(run).await?.waiting;
        waiting.retain(InboxItem::is_approval);
        if self.calls.is_empty() {
            waiting.retain(|waiting| self.up_to.is_none_or(|event| asked_at(&waiting.item) <= event));
            if waiting.is_empty() {
                return Err(nothing_waits(run));
            }
            let calls = waiting.iter().map(|waiting| waiting.call().clone()).collect();
            let digests = waiting.iter().filter_map(digest).collect();
            return Ok(SelectedCalls { items: items(waiting), calls, digests });
        }
        let calls: Vec<CallId> = self.calls.iter().map(|call| CallId::from(call.as_str())).collect();
        let digests = match (&self.digest, calls.first()) {
            (Some(digest), Some(call)) => [(call.clone(), digest.clone().into_digest())].into(),
            _ => waiting.iter().filter(|waiting| calls.contains(waiting.call())).filter_map(digest).collect(),
        };
        waiting.retain(|waiting| calls.contains(waiting.call()));
        Ok(SelectedCalls { items: items(waiting), calls, digests })
    }
}

fn items(waiting: Vec<InboxItem>) -> Vec<PendingItem> {
    waiting.into_iter().map(|waiting| waiting.item).collect()
}

fn digest(waiting: &InboxItem) -> Option<(CallId, String)> {
    Some((waiting.call().clone(), waiting.digest.clone()?))
}

fn asked_at(item: &PendingItem) -> u64 {
    item.describe().event.unwrap_or(u64::MAX)
}

/// Lists the calls of a run that require approval, for an error message.
pub(super) async fn that_wait(app: &App, run: &RunId) -> Result<String, CliError> {
    let waiting = app.operator().inbox_of(run).await?.waiting;
    Ok(list(waiting.iter().map(|waiting| waiting.call().to_string())))
}
