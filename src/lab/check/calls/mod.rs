//! Calls of tools: valid and bad arguments, results, tasks, cancellation, progress, and many calls at the same time.

mod approvals;
mod arguments;
mod bad_input;
mod caller;
mod load;
mod media;
mod mirrored;
mod results;
mod secrets;
mod tasks;

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

pub use load::LoadRow;

use caller::Caller;
use tasks::Support;

use super::context::{Context, Session};
use super::finding::one_line;
use super::options::Calls;
use super::rules::calls as rules;
use super::wire::answer::{Answer, NoAnswer, seconds};

/// Calls of this time or longer are cancelled once.
const LONG: Duration = Duration::from_millis(250);

/// The error of a call that needs a capability which the client did not announce.
const MISSING_CAPABILITY: i64 = -32021;

/// What was called.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CallFacts {
    pub called: Vec<CallRow>,
    /// Tools that were not called, each with the reason.
    pub skipped: Vec<(String, String)>,
    /// Times of calls at the same time.
    pub load: Vec<LoadRow>,
}

/// A valid call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallRow {
    pub tool: String,
    pub succeeded: bool,
    pub ms: u64,
    pub bytes: usize,
}

/// Calls the selected tools.
pub(super) async fn examine(
    context: &Context,
    main: &Session,
    calls: &Calls,
    tools: &[Value],
    progress: &(dyn Fn(&str) + Sync),
) -> CallFacts {
    let mut facts = CallFacts::default();
    let mut caller = Caller::new(context, main.revision, tools);
    bad_input::unknown_tool(&mut caller).await;
    let mut fastest: Option<(String, Value, Duration)> = None;
    for tool in tools {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        if let Some(reason) = why_not(tool, name, calls, main) {
            facts.skipped.push((name.to_owned(), reason));
            continue;
        }
        progress(&format!("calling {}", one_line(name, 40)));
        let schema = tool.get("inputSchema").cloned().unwrap_or_default();
        let Some(arguments) = arguments::minimal(&schema) else {
            facts.skipped.push((name.to_owned(), "no valid arguments could be made from its schema".into()));
            bad_input::all(&mut caller, name, &schema, None, Duration::ZERO).await;
            continue;
        };
        let Some(session) = caller.session().await else {
            facts.skipped.push((name.to_owned(), caller.reason()));
            continue;
        };
        let support = Support::of(&session, tool);
        if support != Support::None
            && let Some(reason) = tasks::examine(&mut caller, tool, name, &arguments, support).await
        {
            facts.skipped.push((name.to_owned(), reason));
        }
        if support == Support::Required {
            continue;
        }
        let Some(answered) = caller.call(name, Some(&arguments)).await else {
            facts.skipped.push((name.to_owned(), caller.reason()));
            continue;
        };
        if let Ok(answer) = &answered {
            tasks::judge_uninvited(context, &session, name, answer);
            let requires = (answer.error_code() == Some(MISSING_CAPABILITY)).then(|| results::error_text(answer));
            if let Some(reason) = approvals::denial(context, &session, name, answer).or(requires) {
                facts.skipped.push((name.to_owned(), reason));
                continue;
            }
        }
        mirrored::judge(&mut caller, name, &schema, &arguments).await;
        let took = answered.as_ref().map_or(context.limits.call, |answer| answer.took);
        let is_silent = matches!(answered, Err(NoAnswer::TimedOut(_)));
        if valid(&mut caller, tool, name, &arguments, answered, &mut facts).await
            && fastest.as_ref().is_none_or(|(_, _, time)| took < *time)
        {
            fastest = Some((name.to_owned(), arguments.clone(), took));
        }
        // Bad arguments would take as long again, and tell nothing new.
        if !is_silent {
            bad_input::all(&mut caller, name, &schema, Some(&arguments), took).await;
        }
    }
    if let Some((name, arguments, _)) = fastest {
        progress("calling one tool many times");
        facts.load = load::run(&mut caller, &name, &arguments).await;
    }
    facts
}

fn why_not(tool: &Value, name: &str, calls: &Calls, main: &Session) -> Option<String> {
    let is_required = tool.pointer("/execution/taskSupport").is_some_and(|support| support == "required");
    let is_unreachable = is_required && Support::of(main, tool) == Support::None && !main.revision.is_modern();
    if is_unreachable {
        return Some("it only runs as a task, and the server does not declare tasks".into());
    }
    match calls {
        Calls::All => None,
        Calls::Only(names) if names.iter().any(|one| one == name) => None,
        Calls::Only(_) => Some("it is not named by --only".into()),
        Calls::ReadOnly if tool.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true)) => None,
        Calls::ReadOnly | Calls::Never => Some("it does not declare readOnlyHint; --only TOOL or --all call it".into()),
    }
}

/// Judges the answer to a valid call. Returns whether it succeeded.
async fn valid(
    caller: &mut Caller<'_>,
    tool: &Value,
    name: &str,
    arguments: &Value,
    answered: Result<Answer, NoAnswer>,
    facts: &mut CallFacts,
) -> bool {
    let (context, revision) = (caller.context, caller.revision);
    let report = |rule, text: String| {
        context.findings.add(super::finding::Finding::new(rule, text).in_revision(rule, revision).tool(name));
    };
    let shown = one_line(&arguments.to_string(), 120);
    let answer = match answered {
        Ok(answer) => answer,
        Err(why) if why.is_closed() => {
            report(&rules::CALL_CRASH, format!("the call with {shown} {}", why.in_words()));
            return false;
        }
        // The reader has reported what cannot be read.
        Err(NoAnswer::Unreadable(_)) => return false,
        Err(why) => {
            report(&rules::CALL_UNANSWERED, format!("the call with {shown} {}", why.in_words()));
            return false;
        }
    };
    let is_asking = results::is_asking(&answer);
    let is_success = is_asking || results::is_success(&answer);
    let ms = u64::try_from(answer.took.as_millis()).unwrap_or(u64::MAX);
    facts.called.push(CallRow { tool: name.to_owned(), succeeded: is_success, ms, bytes: answer.size });
    results::judge(context, revision, tool, name, &answer);
    if !is_success {
        report(&rules::SUCCESS_AS_ERROR, format!("the call with {shown} failed: {}", results::error_text(&answer)));
        return false;
    }
    if is_asking {
        // A call that waits for input is no measure of the server's speed.
        return false;
    }
    if answer.took >= LONG {
        cancel(caller, name, arguments, answer.took).await;
    }
    true
}

/// Cancels the same call, which is known to take a while.
async fn cancel(caller: &mut Caller<'_>, name: &str, arguments: &Value, took: Duration) {
    let Some(session) = caller.session().await else { return };
    let params = caller.params(name, Some(arguments));
    let grace = (took + Duration::from_millis(300)).min(Duration::from_secs(4));
    let late = session.connection.request_and_cancel("tools/call", params, took / 4, grace).await;
    if late == Some(true) {
        let text = format!("the call was cancelled after {}, and answered all the same", seconds(took / 4));
        caller.context.findings.add(session.finding(&rules::CANCEL_IGNORED, text).tool(name));
    }
}
