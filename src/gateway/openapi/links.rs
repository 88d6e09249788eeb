//! Links: the operations that take the id of what another one created. Shared under `components`; tools for stateful tests
//! follow them.

use utoipa::openapi::link::Link;
use utoipa::openapi::{OpenApi, Ref, RefOr};

use super::operations::operations;

/// The operations that create something, each with the path of what it creates.
const CREATED: [(&str, &str); 11] = [
    ("addFeedback", "/v1/runs/{run}/feedback/{feedback}"),
    ("compactSession", "/v1/runs/{run}"),
    ("createApprovalGrant", "/v1/approval-grants/{grant}"),
    ("createKey", "/v1/keys/{key}"),
    ("createRun", "/v1/runs/{run}"),
    ("createSession", "/v1/sessions/{session}"),
    ("createSessionRun", "/v1/runs/{run}"),
    ("createWebhookEndpoint", "/v1/webhook-endpoints/{endpoint}"),
    ("forkRun", "/v1/runs/{run}"),
    ("retryRun", "/v1/runs/{run}"),
    ("uploadFile", "/v1/files/{file}"),
];

/// Describes the links of responses that create something.
pub(super) fn add(description: &mut OpenApi) {
    let mut targets: Vec<(String, Vec<String>)> = Vec::new();
    for (path, item) in &mut description.paths.paths {
        let names = operations(item).filter_map(|(_, operation)| operation.operation_id.clone()).collect();
        targets.push((path.clone(), names));
    }
    let components = description.components.get_or_insert_default();
    for item in description.paths.paths.values_mut() {
        for (_, operation) in operations(item) {
            let id = operation.operation_id.as_deref().unwrap_or_default();
            let Some((_, created)) = CREATED.iter().find(|(creator, _)| *creator == id) else { continue };
            let followed = targets.iter().filter(|(path, _)| takes_only(path, created)).flat_map(|(_, names)| names);
            let followed: Vec<&String> = followed.collect();
            for (status, response) in &mut operation.responses.responses {
                let RefOr::T(response) = response else { continue };
                if !["200", "201", "202"].contains(&status.as_str()) {
                    continue;
                }
                for name in &followed {
                    components.links.insert((*name).clone(), RefOr::T(link(name, created)));
                    response.links.insert((*name).clone(), RefOr::Ref(Ref::new(format!("#/components/links/{name}"))));
                }
            }
        }
    }
}

/// Whether the path is that of the created thing, or of something of it without an id of its own.
fn takes_only(path: &str, created: &str) -> bool {
    path.strip_prefix(created).is_some_and(|rest| rest.is_empty() || (rest.starts_with('/') && !rest.contains('{')))
}

/// The link to an operation. The last parameter of the path is the id of what was created; others are those of the request.
fn link(operation: &str, created: &str) -> Link {
    let mut parameters = created.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).rev();
    let own = parameters.next().map(|name| (name, "$response.body#/id".to_owned()));
    let given = parameters.map(|name| (name, format!("$request.path.{name}")));
    own.into_iter()
        .chain(given)
        .fold(Link::builder().operation_id(operation), |link, (name, value)| link.parameter(name, value))
        .build()
}
