//! Round of prompts: the items that a person is asked about one after the other. Pure.
//!
//! A decision without other arguments is held until the last item is answered, so that the person can go back and change it.
//! While it is held, it also decides about the later calls that its grant will cover.

use std::collections::BTreeMap;

use crate::cli::argument_lines::EarlierChange;
use crate::cli::prompt::{AskedItem, Place, changed_before};
use crate::cli::text::{COMPACT, arguments_line};
use crate::core::id::CallId;
use crate::core::run::{Answer, Decision, DecisionKind, PendingItem};
use crate::core::tool::Arguments;

/// The items, the position in them, and the answers that are not recorded yet.
pub(super) struct Round {
    items: Vec<PendingItem>,
    /// The item to ask about.
    at: usize,
    held: BTreeMap<usize, Held>,
    /// The approved calls whose approval is recorded, with the arguments that the person wrote.
    recorded: BTreeMap<usize, Option<Arguments>>,
    /// The items before this one are recorded, or answered by another process.
    first_open: usize,
    /// The decision about the current item that the person took back.
    withdrawn: Option<Decision>,
}

/// An answer that is not recorded yet.
struct Held {
    call: CallId,
    answer: Answer,
    /// The item whose approval decided this one.
    covered_by: Option<usize>,
}

impl Round {
    pub(super) fn new(items: Vec<PendingItem>) -> Self {
        Self { items, at: 0, held: BTreeMap::new(), recorded: BTreeMap::new(), first_open: 0, withdrawn: None }
    }

    /// The call of an item, with its arguments and its number.
    pub(super) fn named(&self, number: usize) -> Option<String> {
        let call = self.items.get(number.checked_sub(1)?)?.call()?;
        let arguments = arguments_line(&call.arguments.to_value(), COMPACT / 2);
        Some(format!("{} {arguments} ({number} of {})", call.name, self.items.len()))
    }

    /// The item to ask about; `None` after the last.
    pub(super) fn current(&self) -> Option<&PendingItem> {
        self.items.get(self.at)
    }

    /// The items that are not asked about yet, the current one included.
    pub(super) fn remaining(&self) -> impl Iterator<Item = &PendingItem> {
        (self.at..)
            .zip(self.items.iter().skip(self.at))
            .filter(|(at, _)| !self.held.contains_key(at))
            .map(|(_, item)| item)
    }

    /// The current item, with what the person can do from there; `None` after the last.
    pub(super) fn asked(&self) -> Option<AskedItem> {
        Some(AskedItem {
            item: self.current()?.clone(),
            further: self.remaining().skip(1).filter(|item| is_approval(item)).cloned().collect(),
            changed_before: self.files_before(),
            withdrawn: self.withdrawn.clone(),
            place: Place { number: self.at + 1, of: self.items.len(), has_previous: self.previous().is_some() },
        })
    }

    /// The calls before the current one that change its file, as far as they are approved with it.
    fn files_before(&self) -> Vec<EarlierChange> {
        let approved = |change: EarlierChange| {
            let at = change.number.checked_sub(1)?;
            match (self.held.get(&at), self.recorded.get(&at)) {
                (Some(held), _) => (!held.is_denial()).then_some(change),
                (None, Some(Some(edited))) => Some(EarlierChange { arguments: edited.clone(), ..change }),
                (None, Some(None)) => Some(change),
                (None, None) => None,
            }
        };
        changed_before(self.items.iter(), self.at).into_iter().filter_map(approved).collect()
    }

    /// Notes which calls these recorded answers approve.
    pub(super) fn note_recorded(&mut self, answers: &[(CallId, Answer)]) {
        for (call, answer) in answers {
            let at = self.items.iter().position(|item| item.call_id() == Some(call));
            let approval = answer.decision().filter(|decision| decision.answer == DecisionKind::Approve);
            if let (Some(at), Some(approval)) = (at, approval) {
                self.recorded.insert(at, approval.edited_arguments.clone());
            }
        }
    }

    /// Holds answers, and answers of their own for the calls that a grant from one of them will cover. Goes to the next item.
    /// Returns the numbers of the covered items.
    pub(super) fn hold(
        &mut self,
        answers: Vec<(CallId, Answer)>,
        covers: impl Fn(&Decision, &CallId, &CallId) -> bool,
    ) -> Vec<usize> {
        let approved_at = self.at;
        for (call, answer) in answers {
            let Some(at) = self.items.iter().position(|item| item.call_id() == Some(&call)) else { continue };
            self.held.insert(at, Held { call, answer, covered_by: None });
        }
        let mut covered = Vec::new();
        if let Some(Held { call, answer: Answer::Decision { decision, .. }, .. }) = self.held.get(&approved_at) {
            for (at, item) in self.items.iter().enumerate().skip(approved_at + 1) {
                let is_open = is_approval(item) && !self.held.contains_key(&at) && !self.is_denied(item);
                let other = item.call_id().filter(|_| is_open);
                if let Some(other) = other.filter(|other| covers(decision, call, other)) {
                    covered.push((at, Held::covered(other, decision, call, approved_at)));
                }
            }
        }
        let numbers = covered.iter().map(|(at, _)| at + 1).collect();
        self.held.extend(covered);
        self.next();
        numbers
    }

    /// Whether the person denied the same call in this round.
    fn is_denied(&self, item: &PendingItem) -> bool {
        let call = |item: &PendingItem| item.call().map(|call| (call.name.to_string(), call.arguments.to_value()));
        self.held.iter().any(|(at, held)| held.is_denial() && self.items.get(*at).and_then(call) == call(item))
    }

    /// Goes to the next item without an answer, for example because the answer is recorded.
    pub(super) fn next(&mut self) {
        self.withdrawn = None;
        self.at += 1;
        while self.held.contains_key(&self.at) {
            self.at += 1;
        }
    }

    /// Ends the way back to this item and those before it, because an answer is recorded.
    pub(super) fn fix(&mut self) {
        self.first_open = self.at + 1;
    }

    /// Goes back to the item before, and drops its answer and the answers that followed from it.
    pub(super) fn back(&mut self) {
        let Some(previous) = self.previous() else { return };
        self.at = previous;
        self.withdrawn = self.held.get(&previous).and_then(|held| held.answer.decision().cloned());
        self.held.retain(|at, held| *at != previous && held.covered_by != Some(previous));
    }

    /// The calls that the person was asked about and approved.
    pub(super) fn approved(&self) -> impl Iterator<Item = (usize, &PendingItem)> {
        let is_approved = |held: &Held| held.covered_by.is_none() && !held.is_denial();
        let held = self.held.iter().filter(move |(_, held)| is_approved(held));
        held.filter_map(|(at, _)| Some((*at, self.items.get(*at)?)))
    }

    /// Drops the answers about these items, and those that followed from them, and goes back to the first one.
    pub(super) fn reopen(&mut self, items: &[usize]) {
        let is_dropped = |at: usize| items.contains(&at);
        self.held.retain(|at, held| !is_dropped(*at) && !held.covered_by.is_some_and(is_dropped));
        self.at = items.iter().copied().min().unwrap_or(self.at);
    }

    /// Takes the answers that are not recorded yet, each with its item, in order.
    pub(super) fn take_held(&mut self) -> Vec<(PendingItem, CallId, Answer)> {
        let held = std::mem::take(&mut self.held);
        held.into_iter().filter_map(|(at, held)| Some((self.items.get(at)?.clone(), held.call, held.answer))).collect()
    }

    /// The item before, that the person was asked about and that is not recorded.
    fn previous(&self) -> Option<usize> {
        let is_asked = |at: &usize| self.held.get(at).is_none_or(|held| held.covered_by.is_none());
        (self.first_open..self.at).rev().find(is_asked)
    }
}

impl Held {
    fn is_denial(&self) -> bool {
        self.answer.decision().is_some_and(|decision| decision.answer == DecisionKind::Deny)
    }

    /// The decision about a call that an approval of another one covers.
    fn covered(call: &CallId, decision: &Decision, approved: &CallId, covered_by: usize) -> Self {
        let reason = Some(format!("covered by the approval of {approved}"));
        let own = Decision { reason, via: decision.via, ..Decision::new(DecisionKind::Approve, decision.by.clone()) };
        Self { call: call.clone(), answer: own.into(), covered_by: Some(covered_by) }
    }
}

/// Whether an answer can be held: a decision without other arguments, which the schema of the tool could refuse.
pub(super) fn is_holdable(answer: &Answer) -> bool {
    matches!(answer, Answer::Decision { decision, .. } if decision.edited_arguments.is_none())
}

/// Whether a decision is all that the item waits for.
pub(super) fn is_approval(item: &PendingItem) -> bool {
    matches!(item, PendingItem::Approval(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::prompt::tests::{approval_item, external_item};
    use crate::core::run::{Coverage, PendingApproval, Scope};
    use serde_json::json;

    fn round(ids: &[&str]) -> Round {
        Round::new(ids.iter().map(|id| approval_item(id)).collect())
    }

    fn approval(call: &str, scope: Scope) -> Vec<(CallId, Answer)> {
        let decision = Decision { scope, coverage: Coverage::Tool, ..Decision::new(DecisionKind::Approve, "ada") };
        vec![(call.into(), decision.into())]
    }

    fn held(round: &mut Round) -> Vec<String> {
        round.take_held().into_iter().map(|(_, call, _)| call.to_string()).collect()
    }

    fn at(round: &Round) -> Option<&str> {
        round.current().and_then(PendingItem::call_id).map(CallId::as_str)
    }

    #[test]
    fn the_way_back_ends_at_what_is_recorded() {
        let mut round = round(&["1", "2", "3"]);
        assert!(!round.asked().unwrap().place.has_previous);
        round.hold(approval("1", Scope::Once), |_, _, _| false);
        round.back();
        assert_eq!(at(&round), Some("1"));
        round.next();
        round.fix();
        round.next();
        assert_eq!((at(&round), round.asked().unwrap().place.has_previous), (Some("3"), false));
    }

    #[test]
    fn a_covered_call_is_skipped_until_its_approval_is_taken_back() {
        let mut round = round(&["1", "2", "3"]);
        let covers = |_: &Decision, _: &CallId, other: &CallId| other.as_str() == "2";
        assert_eq!(round.hold(approval("1", Scope::Session), covers), [2]);
        assert_eq!(at(&round), Some("3"));
        assert_eq!(round.named(2).unwrap(), r#"mcp_shop_add_note text: "late" (2 of 3)"#);
        round.back();
        let again = round.asked().unwrap();
        assert_eq!((at(&round), again.further.len()), (Some("1"), 2));
        assert_eq!(again.withdrawn.map(|decision| decision.scope), Some(Scope::Session));
        round.hold(approval("1", Scope::Once), |_, _, _| false);
        assert_eq!(at(&round), Some("2"));
        assert_eq!(held(&mut round), ["1"]);
    }

    #[test]
    fn a_call_that_was_denied_in_the_round_is_asked_about_again() {
        let mut round = round(&["1", "2", "3"]);
        let denial = Decision::new(DecisionKind::Deny, "ada");
        round.hold(vec![("1".into(), denial.into())], |_, _, _| false);
        assert!(round.hold(approval("2", Scope::Session), |_, _, _| true).is_empty());
        assert_eq!(at(&round), Some("3"));
    }

    #[test]
    fn a_call_knows_the_calls_before_it_that_change_its_file() {
        let write = |id: &str, path: &str| {
            let PendingItem::Approval(approval) = approval_item(id) else { panic!("an approval") };
            let arguments = Arguments::from_value(json!({"path": path, "content": id}));
            PendingItem::Approval(PendingApproval { arguments, ..approval })
        };
        let mut round =
            Round::new(vec![write("1", "x/a"), write("2", "b"), write("3", "./x/y/../a"), approval_item("4")]);
        let mut before: Vec<Vec<usize>> = Vec::new();
        for call in ["1", "2", "3", "4"] {
            let earlier = round.asked().unwrap().changed_before;
            before.push(earlier.into_iter().map(|change| change.number).collect());
            round.hold(approval(call, Scope::Once), |_, _, _| false);
        }
        assert_eq!(before, [vec![], vec![], vec![1], vec![]]);
        let mut round = Round::new(vec![write("1", "a"), write("2", "a"), write("3", "a")]);
        let denial = Decision::new(DecisionKind::Deny, "ada");
        round.hold(vec![("1".into(), denial.into())], |_, _, _| false);
        round.next();
        assert!(round.asked().unwrap().changed_before.is_empty(), "neither a denied call nor one that is left");
    }

    #[test]
    fn only_approvals_remain_to_be_approved_together() {
        let mut round = Round::new(vec![approval_item("1"), external_item("2"), approval_item("3")]);
        assert_eq!(round.asked().unwrap().further.len(), 1);
        let both = [approval("1", Scope::Once), approval("3", Scope::Once)].concat();
        round.hold(both, |_, _, _| false);
        assert_eq!(at(&round), Some("2"));
        round.next();
        assert_eq!(at(&round), None);
        assert_eq!(held(&mut round), ["1", "3"]);
    }
}
