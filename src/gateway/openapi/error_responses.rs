//! Error responses of each operation. Handlers declare `default`; the published document lists each status, so that a
//! client finds an unexpected response in it.

use utoipa::openapi::path::{HttpMethod, Operation, PathItem};
use utoipa::openapi::{OpenApi, RefOr, Response};

const DEFAULT: &str = "default";

/// Replaces each `default` by the statuses that such an operation can return.
pub(super) fn spell_out(description: &mut OpenApi) {
    for (path, item) in &mut description.paths.paths {
        let names_something = path.contains('{');
        for (method, operation) in operations(item) {
            let Some(refused) = operation.responses.responses.remove(DEFAULT) else { continue };
            let takes_body = operation.request_body.is_some();
            let changes = method != HttpMethod::Get;
            for (status, meaning) in REFUSALS
                .iter()
                .filter(|(.., when)| match when {
                    When::Always => true,
                    When::Named => names_something,
                    When::Body => takes_body,
                    When::Changes => changes,
                })
                .map(|(status, meaning, _)| (status, meaning))
            {
                let told = ErrorResponse { response: &refused, meaning };
                operation.responses.responses.entry((*status).to_owned()).or_insert_with(|| told.response());
            }
        }
    }
}

/// The operations that can return a status.
enum When {
    Always,
    /// The path has a parameter.
    Named,
    /// The operation has a body.
    Body,
    /// The operation changes something.
    Changes,
}

const REFUSALS: [(&str, &str, When); 14] = [
    ("400", "The request is malformed", When::Always),
    ("401", "The credentials are missing or not valid", When::Always),
    ("403", "The caller may not do this", When::Always),
    ("404", "The resource does not exist, or belongs to another tenant", When::Named),
    ("406", "No representation matches `Accept`", When::Always),
    ("408", "The body did not arrive in time", When::Body),
    ("409", "The request conflicts with the resource's state, or another request was first", When::Changes),
    ("410", "The resource no longer exists", When::Named),
    ("412", "The resource has changed since it was read", When::Changes),
    ("413", "The body is too large", When::Body),
    ("415", "The body's media type or encoding is not supported", When::Body),
    ("422", "The request is well formed, but not valid", When::Always),
    ("429", "Too many requests, or too many at once", When::Always),
    ("503", "The server accepts no new work at the moment, or its store is not available", When::Always),
];

struct ErrorResponse<'a> {
    response: &'a RefOr<Response>,
    meaning: &'a str,
}

impl ErrorResponse<'_> {
    fn response(&self) -> RefOr<Response> {
        match self.response.clone() {
            RefOr::T(mut response) => {
                self.meaning.clone_into(&mut response.description);
                RefOr::T(response)
            }
            reference @ RefOr::Ref(_) => reference,
        }
    }
}

/// The operations of a path.
pub(super) fn operations(item: &mut PathItem) -> impl Iterator<Item = (HttpMethod, &mut Operation)> {
    let all = [
        (HttpMethod::Get, &mut item.get),
        (HttpMethod::Put, &mut item.put),
        (HttpMethod::Post, &mut item.post),
        (HttpMethod::Patch, &mut item.patch),
        (HttpMethod::Delete, &mut item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}
