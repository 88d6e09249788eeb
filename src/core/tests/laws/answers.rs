//! Answers to pending items: valid ones, and random ones.

use serde_json::json;
use toolgate_core::id::CallId;
use toolgate_core::run::{
    AnswerForm, Channel, Coverage, Decision, DecisionKind, ElicitationAnswer, HumanAnswer, PendingItem, Resume, Scope,
};
use toolgate_core::tool::{Arguments, Ask, Choice, ElicitationResponse};

use crate::choices::Tape;
use crate::fixtures::any_outcome;

pub(crate) enum Expected {
    Result(CallId),
    Decision(CallId),
    Answer(CallId, Ask),
    Input(CallId, Vec<String>),
    /// No answer is possible.
    News,
    /// The run is to be continued.
    Continue,
}

pub(crate) fn decision(answer: DecisionKind) -> Decision {
    Decision::new(answer, "ada")
}

pub(crate) fn expected(item: &PendingItem) -> Expected {
    let Some(id) = item.call_id().cloned() else { return Expected::Continue };
    match item.form() {
        AnswerForm::Result { .. } => Expected::Result(id),
        AnswerForm::Decision(_) => Expected::Decision(id),
        AnswerForm::Choice(ask) => Expected::Answer(id, ask.clone()),
        AnswerForm::Elicitation { questions, .. } => Expected::Input(id, questions.keys().cloned().collect()),
        AnswerForm::Background(_) => Expected::News,
        AnswerForm::Continue { .. } => Expected::Continue,
    }
}

/// Approves and answers every item.
pub(crate) fn answer_all(items: &[PendingItem]) -> Resume {
    let mut resume = Resume::default();
    for item in items {
        match expected(item) {
            Expected::Result(id) => resume.answers.push((id, any_outcome(&mut Tape::blank()).into())),
            Expected::Decision(id) => resume.answers.push((id, decision(DecisionKind::Approve).into())),
            Expected::Answer(id, ask) => resume.answers.push((id, first_choice(&ask).into())),
            Expected::Input(id, keys) => {
                let declined = keys.into_iter().map(|key| (key, ElicitationResponse::decline()));
                resume.answers.push((id, reactions(declined).into()));
            }
            Expected::News => {}
            Expected::Continue => resume = resume.and_continue("ada", Channel::Library),
        }
    }
    resume
}

pub(crate) fn any_resume(tape: &mut Tape, items: &[PendingItem]) -> Resume {
    let partial = tape.once_in(3);
    let mut resume = Resume { partial, ..Resume::default() };
    for item in items {
        if partial && tape.once_in(2) {
            continue;
        }
        match expected(item) {
            Expected::Result(id) => resume.answers.push((id, any_outcome(tape).into())),
            Expected::Decision(id) => {
                let answer = *tape.pick(&[DecisionKind::Approve, DecisionKind::Deny]);
                let edited_arguments = match tape.below(6) {
                    4 => Some(Arguments::from_value(json!({"edited": 1}))),
                    5 => Some(Arguments::Malformed("not an object".into())),
                    _ => None,
                };
                let reason = tape.once_in(3).then(|| "because".to_owned());
                let (scope, coverage) = match tape.below(6) {
                    4 => (Scope::Session, Coverage::Arguments),
                    5 => (Scope::Always, Coverage::Tool),
                    _ => (Scope::Once, Coverage::Tool),
                };
                let decision = Decision { reason, edited_arguments, scope, coverage, ..decision(answer) };
                resume.answers.push((id, decision.into()));
            }
            Expected::Answer(id, ask) => {
                let nonsense = HumanAnswer { choice: Choice::default(), ..first_choice(&ask) };
                let answer = if tape.once_in(6) { nonsense } else { first_choice(&ask) };
                resume.answers.push((id, answer.into()));
            }
            Expected::Input(id, mut keys) => {
                if tape.once_in(6) {
                    keys.push("unsolicited".into());
                }
                let any = |key| {
                    (
                        key,
                        tape.pick(&[
                            ElicitationResponse::decline(),
                            ElicitationResponse::cancel(),
                            ElicitationResponse::done(),
                            filled_in(),
                        ])
                        .clone(),
                    )
                };
                let given = reactions(keys.into_iter().map(any));
                resume.answers.push((id, ElicitationAnswer { repeat: tape.once_in(2), ..given }.into()));
            }
            Expected::News => {}
            Expected::Continue => {
                if tape.once_in(2) {
                    resume = resume.and_continue("ada", Channel::Library);
                }
            }
        }
    }
    resume
}

fn first_choice(ask: &Ask) -> HumanAnswer {
    let choice = match ask.options.first() {
        Some(option) => Choice { chosen: vec![option.clone()], text: None },
        None => Choice::text("blue"),
    };
    HumanAnswer { choice, by: "ada".into(), via: Channel::Library }
}

fn filled_in() -> ElicitationResponse {
    ElicitationResponse::accept(json!({"size": 1}).as_object().unwrap().clone())
}

pub(crate) fn reactions(each: impl Iterator<Item = (String, ElicitationResponse)>) -> ElicitationAnswer {
    ElicitationAnswer { reactions: each.collect(), by: "ada".into(), via: Default::default(), repeat: false }
}
