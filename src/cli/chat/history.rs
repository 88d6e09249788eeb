//! Messages that the prompt of a conversation recalls: its own, and those of the agent's conversations before it.

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::session_arg;
use crate::core::chat::{Part, Role};
use crate::core::id::{AgentName, SessionId, Tenant};
use crate::core::run::{Event, JournalEntry};
use crate::runner::SessionMessage;

/// The number of messages after which no further conversation is read.
const MESSAGES: usize = 200;
/// How texts begin that toolgate adds to a conversation.
const NOTE: &str = "[toolgate]";

/// The messages of the user, oldest first. Those of the conversation itself are the last ones.
pub(super) async fn recalled(
    app: &App,
    agent: &AgentName,
    session: Option<&SessionId>,
    own: &[SessionMessage],
) -> Result<Vec<String>, CliError> {
    let tenant = Tenant::default();
    let mut recalled = texts(own);
    for earlier in session_arg::last_used(app, &tenant, Some(agent)).await? {
        if recalled.len() >= MESSAGES {
            break;
        }
        // One that cannot be read, or was deleted meanwhile, hinders no conversation.
        if session != Some(&earlier)
            && let Ok(messages) = app.runner.session_messages(&tenant, &earlier).await
        {
            let mut earlier = texts(&messages);
            earlier.append(&mut recalled);
            recalled = earlier;
        }
    }
    recalled.dedup();
    Ok(recalled)
}

/// The messages of a turn that no model has read yet.
pub(super) fn unread(journal: &[JournalEntry], read: &[String]) -> Vec<String> {
    let added = journal.iter().filter_map(|entry| {
        let Event::MessageAdded { message } = &entry.event else { return None };
        Some(message.text())
    });
    added.filter(|text| !read.contains(text)).collect()
}

fn texts(messages: &[SessionMessage]) -> Vec<String> {
    let of_user = messages.iter().filter(|earlier| earlier.message.role == Role::User);
    let texts = of_user.map(|earlier| {
        let parts = earlier.message.content.iter().filter_map(Part::as_text);
        parts.filter(|part| !part.starts_with(NOTE)).collect::<Vec<_>>().join("\n")
    });
    texts.filter(|text| !text.trim().is_empty()).collect()
}
