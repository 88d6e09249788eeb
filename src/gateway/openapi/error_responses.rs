//! Error responses of every operation. The published document lists each status, so that a client finds an unexpected
//! response in it.

use utoipa::ToSchema as _;
use utoipa::openapi::path::HttpMethod;
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder};

use super::operations::operations;
use super::response_headers;
use crate::problem::ProblemView;

/// Adds the error responses that each operation can return.
pub(super) fn add(description: &mut OpenApi) {
    for (path, item) in &mut description.paths.paths {
        let names_something = path.contains('{');
        for (method, operation) in operations(item) {
            let names_elsewhere = operation.operation_id.as_deref().is_some_and(|id| NAME_ELSEWHERE.contains(&id));
            let takes_body = operation.request_body.is_some();
            let changes = method != HttpMethod::Get;
            let applies = |when: &AppliesTo| match when {
                AppliesTo::Always => true,
                AppliesTo::Named => names_something,
                AppliesTo::NamedAnywhere => names_something || names_elsewhere,
                AppliesTo::Body => takes_body,
                AppliesTo::Changes => changes,
            };
            for (status, name, ..) in REFUSALS.iter().filter(|(.., when)| applies(when)) {
                let shared = || RefOr::Ref(Ref::new(format!("#/components/responses/{name}")));
                operation.responses.responses.entry((*status).to_owned()).or_insert_with(shared);
            }
        }
    }
    let components = description.components.get_or_insert_default();
    components.responses.extend(REFUSALS.map(|(status, name, meaning, _)| (name.to_owned(), refusal(status, meaning))));
}

/// The response that operations share.
fn refusal(status: &str, meaning: &str) -> RefOr<Response> {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(ProblemView::name()))).build();
    let mut response = ResponseBuilder::new().description(meaning).content("application/problem+json", content).build();
    let headers: &[&str] = match status {
        "409" => &["ETag", "Idempotent-Replayed", "Retry-After"],
        "412" => &["ETag"],
        "429" | "503" => &["Retry-After"],
        _ => &[],
    };
    response_headers::refer(&mut response, headers);
    RefOr::T(response)
}

/// The operations that can return a status.
enum AppliesTo {
    Always,
    /// The path has a parameter.
    Named,
    /// The path has a parameter, or the body names something that may be gone.
    NamedAnywhere,
    /// The operation has a body.
    Body,
    /// The operation changes something.
    Changes,
}

/// Operations without a parameter in the path whose body names a run or a session.
const NAME_ELSEWHERE: [&str; 4] = ["createStreamTicket", "createRun", "createSession", "createApprovalGrant"];

/// The status, the name and the meaning of each response, and the operations that have it.
const REFUSALS: [(&str, &str, &str, AppliesTo); 14] = [
    ("400", "BadRequest", "The request is malformed", AppliesTo::Always),
    ("401", "Unauthorized", "The credentials are missing or not valid", AppliesTo::Always),
    ("403", "Forbidden", "The caller may not do this", AppliesTo::Always),
    ("404", "NotFound", "The resource does not exist, or belongs to another tenant", AppliesTo::Named),
    ("406", "NotAcceptable", "No representation matches `Accept`", AppliesTo::Always),
    ("408", "RequestTimeout", "The body did not arrive in time", AppliesTo::Body),
    (
        "409",
        "Conflict",
        "The request conflicts with the resource's state, or another request was first",
        AppliesTo::Changes,
    ),
    ("410", "Gone", "The resource no longer exists", AppliesTo::NamedAnywhere),
    ("412", "PreconditionFailed", "The resource has changed since it was read", AppliesTo::Changes),
    ("413", "PayloadTooLarge", "The body is too large", AppliesTo::Body),
    ("415", "UnsupportedMediaType", "The body's media type or encoding is not supported", AppliesTo::Body),
    ("422", "Invalid", "The request is well formed, but not valid", AppliesTo::Always),
    ("429", "TooManyRequests", "Too many requests, or too many at once", AppliesTo::Always),
    (
        "503",
        "Unavailable",
        "The server accepts no new work at the moment, or its store is not available",
        AppliesTo::Always,
    ),
];
