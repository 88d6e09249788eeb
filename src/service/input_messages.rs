//! Checks of the messages with which a new run begins: their media, and the results of their calls.

use std::collections::{BTreeMap, BTreeSet};

use toolgate_core::address::AllowedClasses;
use toolgate_core::blob::BlobHandle;
use toolgate_core::chat::{Media, Message, Part, Role};
use toolgate_core::id::CallId;
use toolgate_runner::Request;

use super::error::ServiceError;
use super::media_url;
use super::name_rules::require_name;

/// Checks the parts of all messages, that each call has one result before the model's next message, and that the last
/// message is the user's.
pub(super) fn check(request: &mut Request, hosts: AllowedClasses) -> Result<(), ServiceError> {
    let Request { files, history, input, .. } = request;
    let last = history.len();
    let mut calls = Calls::default();
    if input.content.iter().all(|part| matches!(part, Part::ToolResult { .. })) && !input.content.is_empty() {
        let rule = "the last message has only results; add what the user says after them";
        return Err(ServiceError::invalid(format!("/input/{last}/content"), rule));
    }
    for (index, Message { role, content, .. }) in history.iter_mut().chain([input]).enumerate() {
        calls.check_message(index, *role, content, index == last)?;
        for (at, part) in content.iter_mut().enumerate() {
            let pointer = format!("/input/{index}/content/{at}");
            let is_stored = check_part(part, &pointer, files, hosts)?;
            let is_media = matches!(part, Part::Image(_) | Part::Audio(_) | Part::Resource { .. });
            if *role == Role::Assistant && is_media && !is_stored {
                let rule = "only user messages may contain media, besides media that a run stored";
                return Err(ServiceError::invalid(pointer, rule));
            }
        }
    }
    match request.input.role {
        Role::User => Ok(()),
        Role::Assistant => {
            Err(ServiceError::invalid(format!("/input/{last}/role"), "the last message must be the user's"))
        }
    }
}

/// Checks the media of a part, and marks addresses that only look like handles of the run's blobs. Returns whether the part
/// is a blob of the run.
fn check_part(
    part: &mut Part,
    pointer: &str,
    files: &BTreeSet<BlobHandle>,
    hosts: AllowedClasses,
) -> Result<bool, ServiceError> {
    if let Part::ToolResult { content, .. } = part {
        for (at, part) in content.iter_mut().enumerate() {
            if matches!(part, Part::Reasoning { .. } | Part::ToolUse { .. } | Part::ToolResult { .. }) {
                let rule = "a result has parts of type `text`, `image`, `audio`, `file` and `resource`";
                return Err(ServiceError::invalid(format!("{pointer}/content/{at}"), rule));
            }
            check_part(part, &format!("{pointer}/content/{at}"), files, hosts)?;
        }
        return Ok(false);
    }
    let has_content = match part {
        Part::Image(media) | Part::Audio(media) => media.data.is_some(),
        Part::Resource { text, data, .. } => text.is_some() || data.is_some(),
        Part::Text { .. } | Part::Reasoning { .. } | Part::ToolUse { .. } | Part::ToolResult { .. } => false,
    };
    if !has_content && part.blobs().iter().any(|handle| files.contains(handle)) {
        return Ok(true);
    }
    if let Part::Image(media) | Part::Audio(media) = part {
        check_media(media, pointer, hosts)?;
    }
    if let Part::Resource { data: Some(data), .. } = part
        && Media::decode(data).is_none()
    {
        return Err(ServiceError::invalid(format!("{pointer}/data"), "this is not valid base64"));
    }
    // A URL that looks like a blob handle gives no access to the blob.
    part.invalidate_handle();
    Ok(false)
}

/// The calls of a conversation. Providers refuse a call without a result, and a result without a call.
#[derive(Default)]
struct Calls {
    all: BTreeSet<CallId>,
    /// The calls without a result so far, and their places.
    open: BTreeMap<CallId, String>,
}

impl Calls {
    fn check_message(&mut self, index: usize, role: Role, content: &[Part], is_last: bool) -> Result<(), ServiceError> {
        let mut called = BTreeMap::new();
        for (at, part) in content.iter().enumerate() {
            let pointer = format!("/input/{index}/content/{at}");
            let refuse = |member: &str, rule: String| Err(ServiceError::invalid(format!("{pointer}{member}"), rule));
            match (part, role) {
                (Part::ToolUse { id, .. }, Role::Assistant) => {
                    require_name(&format!("{pointer}/call_id"), Some(id.as_str()))?;
                    if !self.all.insert(id.clone()) {
                        return refuse("/call_id", format!("two calls have the id `{id}`"));
                    }
                    called.insert(id.clone(), pointer);
                }
                (Part::ToolResult { tool_use_id: id, .. }, Role::User) if self.open.remove(id).is_none() => {
                    return refuse(
                        "/call_id",
                        format!("the message before has no call `{id}`, or it has a result already"),
                    );
                }
                (Part::ToolUse { .. } | Part::Reasoning { .. }, Role::User) => {
                    return refuse("", "only messages of the model contain calls and reasoning".into());
                }
                (Part::ToolResult { .. }, Role::Assistant) => {
                    return refuse("", "only user messages contain results".into());
                }
                _ => {}
            }
        }
        if (role == Role::Assistant || is_last)
            && let Some((id, pointer)) = self.open.first_key_value()
        {
            let rule =
                format!("the call `{id}` has no result before the model's next message; add it, or leave out the call");
            return Err(ServiceError::invalid(pointer, rule));
        }
        self.open.append(&mut called);
        Ok(())
    }
}

fn check_media(media: &Media, pointer: &str, hosts: AllowedClasses) -> Result<(), ServiceError> {
    match (&media.data, &media.url) {
        (Some(data), None) if Media::decode(data).is_some() => Ok(()),
        (Some(_), None) => Err(ServiceError::invalid(format!("{pointer}/data"), "this is not valid base64")),
        (None, Some(url)) => {
            media_url::check(url, hosts).map_err(|why| ServiceError::invalid(format!("{pointer}/url"), why))
        }
        (Some(_), Some(_)) | (None, None) => {
            Err(ServiceError::invalid(pointer, "give one of `data`, `url` and `file_id`"))
        }
    }
}
