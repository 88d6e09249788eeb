//! Checks of a new run that a caller requests, on whichever surface. The pointers of the errors are those of
//! `POST /v1/runs`.

use toolgate_core::address::AllowedClasses;
use toolgate_core::id::{Principal, SessionId};
use toolgate_core::run::ModelOptions;
use toolgate_core::tool::{ToolChoice, ToolFilter};
use toolgate_runner::{Cause, Request};

use super::authorize::Caller;
use super::error::ServiceError;
use super::input_messages;
use super::name_rules::require_name;

/// The longest instructions of a run, in bytes.
const MAX_INSTRUCTIONS_BYTES: usize = 64 << 10;

/// How many tools a request may bring: each has schemas to compile, and no model accepts more.
const MAX_EXTERNAL_TOOLS: usize = 1000;

/// The request in the name of a caller, for its tenant, if it is valid. `media_hosts`: the addresses that media URLs
/// may lead to.
pub(crate) fn for_caller(
    mut request: Request,
    caller: &Caller,
    media_hosts: AllowedClasses,
) -> Result<Request, ServiceError> {
    require_name("/session_id", request.session.as_ref().map(SessionId::as_str))?;
    if let Cause::Schedule { name } = &request.cause {
        require_name("/schedule", Some(name.as_str()))?;
    }
    require_name("/principal", request.principal.as_ref().map(Principal::as_str))?;
    if request.external_tools.len() > MAX_EXTERNAL_TOOLS {
        return Err(ServiceError::invalid("/external_tools", format!("at most {MAX_EXTERNAL_TOOLS} tools")));
    }
    if request.instructions.as_ref().is_some_and(|text| text.trim().is_empty() || text.len() > MAX_INSTRUCTIONS_BYTES) {
        let rule = format!("instructions have 1 to {MAX_INSTRUCTIONS_BYTES} bytes and are not blank");
        return Err(ServiceError::invalid("/instructions", rule));
    }
    check_options(&request.model_options)?;
    input_messages::check(&mut request, media_hosts)?;
    check_patterns(&request.tools)?;
    let principal = caller.principal_of(request.principal)?;
    let (tenant, by) = (caller.tenant.clone(), Some(caller.name.as_ref().to_owned()));
    Ok(Request { tenant, by, principal, ..request })
}

/// Refuses values that no provider accepts.
fn check_options(options: &ModelOptions) -> Result<(), ServiceError> {
    let ModelOptions { tool_choice, parallel_tool_calls: _, temperature, max_output_tokens } = options;
    if let Some(ToolChoice::Tool(name)) = tool_choice {
        require_name("/tool_choice", Some(name))?;
    }
    if temperature.is_some_and(|temperature| !(0.0..=2.0).contains(&temperature)) {
        return Err(ServiceError::invalid("/temperature", "a temperature is between 0 and 2"));
    }
    if *max_output_tokens == Some(0) {
        return Err(ServiceError::invalid("/max_output_tokens", "a reply needs at least one token"));
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use toolgate_core::chat::{Media, Message, Part, Role};
    use toolgate_core::error::ErrorCode;
    use toolgate_core::tool::ExternalTool;

    use super::*;

    fn refused(request: Request) -> (ErrorCode, Vec<String>) {
        let error = for_caller(request, &Caller::local(), AllowedClasses::default()).unwrap_err();
        (error.code, error.errors.into_iter().map(|error| error.pointer).collect())
    }

    fn image(role: Role, url: &str) -> Message {
        let media = Media { media_type: "image/png".to_owned(), data: None, url: Some(url.to_owned()) };
        Message { role, content: vec![Part::text("look"), Part::Image(media)], provider_state: None }
    }

    fn request() -> Request {
        Request::new("clerk", "Clean up")
    }

    #[test]
    fn an_invalid_part_of_a_new_run_is_reported_at_its_field() {
        let public = "https://example.com/cat.png";
        let at = |pointer: &str| (ErrorCode::Validation, vec![pointer.to_owned()]);
        let declared: ExternalTool = serde_json::from_value(serde_json::json!({ "name": "order" })).unwrap();
        let tools = ToolFilter { deny: vec!["mcp_*".into(), "[".into()], ..ToolFilter::default() };
        let none = ModelOptions::default;
        let with = |model_options| Request { model_options, ..request() };
        for (wrong, pointer) in [
            (Request { session: Some("".into()), ..request() }, "/session_id"),
            (Request { cause: Cause::Schedule { name: String::new() }, ..request() }, "/schedule"),
            (Request { principal: Some("a\nb".into()), ..request() }, "/principal"),
            (Request { external_tools: vec![declared; MAX_EXTERNAL_TOOLS + 1], ..request() }, "/external_tools"),
            (Request { history: vec![image(Role::Assistant, public)], ..request() }, "/input/0/content/1"),
            (Request { history: vec![image(Role::User, "http://10.1.2.3/")], ..request() }, "/input/0/content/1/url"),
            (
                Request { input: Message { role: Role::Assistant, ..Message::user("yes") }, ..request() },
                "/input/0/role",
            ),
            (Request { tools, ..request() }, "/tools/deny/1"),
            (Request { instructions: Some(" \n".into()), ..request() }, "/instructions"),
            (Request { instructions: Some("x".repeat(MAX_INSTRUCTIONS_BYTES + 1)), ..request() }, "/instructions"),
            (with(ModelOptions { temperature: Some(2.1), ..none() }), "/temperature"),
            (with(ModelOptions { temperature: Some(f64::NAN), ..none() }), "/temperature"),
            (with(ModelOptions { max_output_tokens: Some(0), ..none() }), "/max_output_tokens"),
            (with(ModelOptions { tool_choice: Some(String::new().into()), ..none() }), "/tool_choice"),
        ] {
            assert_eq!(refused(wrong), at(pointer));
        }
        let valid = Request { history: vec![image(Role::User, public)], ..request() };
        assert!(for_caller(valid, &Caller::local(), AllowedClasses::default()).is_ok());
    }

    #[test]
    fn a_run_acts_for_the_principal_of_its_caller() {
        let ann = Caller { principal: Some("ann".into()), ..Caller::local() };
        let run = |principal: Option<&str>| {
            let request = Request { principal: principal.map(Principal::from), ..request() };
            let made = for_caller(request, &ann, AllowedClasses::default());
            made.map(|request| request.principal).map_err(|error| error.code)
        };
        assert_eq!(run(None), Ok(Some("ann".into())));
        assert_eq!(run(Some("ann")), Ok(Some("ann".into())));
        assert_eq!(run(Some("bob")), Err(ErrorCode::Forbidden));
    }
}
