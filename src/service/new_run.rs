//! Checks of a new run that a caller requests, on whichever surface. The pointers of the errors are those of
//! `POST /v1/runs`.

use toolgate_core::address::AllowedClasses;
use toolgate_core::chat::{Media, Message, Part, Role};
use toolgate_core::error::ErrorCode;
use toolgate_core::id::{Principal, SessionId};
use toolgate_core::tool::ToolFilter;
use toolgate_runner::Request;

use super::authorize::Caller;
use super::error::ServiceError;
use super::media_url;
use super::name_rules::require_name;

/// How many tools a request may bring: each has schemas to compile, and no model accepts more.
const MOST_TOOLS: usize = 1000;

/// The request in the name of a caller, for its tenant, if it is valid. `hosts`: the addresses that media URLs may lead
/// to.
pub(crate) fn for_caller(
    mut request: Request,
    caller: &Caller,
    hosts: AllowedClasses,
) -> Result<Request, ServiceError> {
    require_name("/session_id", request.session.as_ref().map(SessionId::as_str))?;
    require_name("/principal", request.principal.as_ref().map(Principal::as_str))?;
    if request.external_tools.len() > MOST_TOOLS {
        return Err(ServiceError::invalid("/external_tools", format!("at most {MOST_TOOLS} tools")));
    }
    check_messages(&mut request, hosts)?;
    check_patterns(&request.tools)?;
    if let (Some(own), Some(other)) = (&caller.principal, &request.principal)
        && own != other
    {
        let detail = format!("these credentials can only act for `{own}`");
        return Err(ServiceError::new(ErrorCode::Forbidden, detail));
    }
    let principal = caller.principal.clone().or(request.principal);
    let (tenant, by) = (caller.tenant.clone(), Some(caller.name.as_ref().to_owned()));
    Ok(Request { tenant, by, principal, ..request })
}

/// Checks the media of all messages, and that the last message is the user's.
fn check_messages(request: &mut Request, hosts: AllowedClasses) -> Result<(), ServiceError> {
    let messages = request.history.iter_mut().chain([&mut request.input]);
    for (index, Message { role, content, .. }) in messages.enumerate() {
        for (at, part) in content.iter_mut().enumerate() {
            if let Part::Image(media) | Part::Audio(media) = part {
                check_media(media, *role, format!("/input/{index}/content/{at}"), hosts)?;
            }
            // A URL that looks like a blob handle gives no access to the blob.
            part.invalidate_handle();
        }
    }
    if request.input.role == Role::User {
        return Ok(());
    }
    let last = request.history.len();
    Err(ServiceError::invalid(format!("/input/{last}/role"), "the last message must be the user's"))
}

fn check_media(media: &Media, role: Role, pointer: String, hosts: AllowedClasses) -> Result<(), ServiceError> {
    if role == Role::Assistant {
        return Err(ServiceError::invalid(pointer, "only user messages may contain media"));
    }
    match (&media.data, &media.url) {
        (Some(data), None) if Media::decode(data).is_some() => Ok(()),
        (Some(_), None) => Err(ServiceError::invalid(format!("{pointer}/data"), "this is not valid base64")),
        (None, Some(url)) => {
            media_url::check(url, hosts).map_err(|why| ServiceError::invalid(format!("{pointer}/url"), why))
        }
        (Some(_), Some(_)) | (None, None) => Err(ServiceError::invalid(pointer, "give either `data` or `url`")),
    }
}

/// An invalid pattern would match nothing, without any report.
fn check_patterns(tools: &ToolFilter) -> Result<(), ServiceError> {
    for (list, patterns) in [("allow", &tools.allow), ("deny", &tools.deny)] {
        for (index, pattern) in patterns.iter().enumerate() {
            pattern.fits("").map_err(|why| {
                ServiceError::invalid(format!("/tools/{list}/{index}"), format!("this pattern is not valid: {why}"))
            })?;
        }
    }
    Ok(())
}
