//! Headers of responses: which operations send them, and the problems that have them. Shared under `components`, and referred
//! to by each response.

use utoipa::openapi::path::{HttpMethod, Operation};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Header, HeaderBuilder, OpenApi, Ref, RefOr, Response};

use super::operations::operations;

const HEADERS: [(&str, &str); 9] = [
    ("ETag", "The version of the run, session or list, for `If-Match` and `If-None-Match`."),
    (
        "Idempotent-Replayed",
        "`true` if the request with this `Idempotency-Key` was handled before, and this is its response once more.",
    ),
    ("Location", "The address of the resource."),
    (
        "Preference-Applied",
        "The part of `Prefer` that was honoured: `respond-async`, or `wait` with the seconds that were waited.",
    ),
    (
        "RateLimit",
        "The requests or the daily quota that the caller has left, and the seconds until they are whole again \
         (draft-ietf-httpapi-ratelimit-headers); absent without a limit.",
    ),
    ("RateLimit-Policy", "The limit that `RateLimit` counts against; absent without a limit."),
    ("Retry-After", "Seconds before the same request may succeed."),
    (
        "traceresponse",
        "The root span of the run's latest execution, in the form of `traceparent`. Streams do not have it.",
    ),
    ("X-Request-Id", "The id of the request, in the log and in problems: the one that the client sent, or a new one."),
];

/// The headers of every response of the API.
const ALWAYS: [&str; 3] = ["RateLimit", "RateLimit-Policy", "X-Request-Id"];

/// Operations whose response has the address of what they created, besides those that wait for a run.
const LOCATED: [&str; 5] = ["createKey", "rotateKey", "createSession", "createWebhookEndpoint", "uploadFile"];
/// Operations whose response has a version, besides those that wait for a run and those with `If-None-Match`.
const TAGGED: [&str; 2] = ["createSession", "changeSession"];

/// Describes the headers of successful responses, and the headers that responses refer to.
pub(super) fn add(description: &mut OpenApi) {
    for item in description.paths.paths.values_mut() {
        for (method, operation) in operations(item) {
            let names = sent(&method, operation);
            for (status, response) in &mut operation.responses.responses {
                if let RefOr::T(response) = response
                    && (status.starts_with('2') || status == "304")
                {
                    refer(response, &names);
                }
            }
        }
    }
    let components = description.components.get_or_insert_default();
    components.headers.extend(HEADERS.map(|(name, meaning)| (name.to_owned(), RefOr::T(header(meaning)))));
}

/// Lets a response refer to these headers, and to those of every response.
pub(super) fn refer(response: &mut Response, names: &[&str]) {
    let place = |name: &&str| ((*name).to_owned(), RefOr::Ref(Ref::new(format!("#/components/headers/{name}"))));
    response.headers.extend(names.iter().chain(&ALWAYS).map(place));
}

/// The headers that an operation sends.
fn sent(method: &HttpMethod, operation: &Operation) -> Vec<&'static str> {
    let id = operation.operation_id.as_deref().unwrap_or_default();
    let takes = |name: &str| {
        let mut parameters = operation.parameters.iter().flatten();
        parameters.any(|parameter| matches!(parameter, RefOr::T(parameter) if parameter.name == name))
    };
    let waits = takes("Prefer");
    let sends = [
        ("ETag", takes("If-None-Match") || TAGGED.contains(&id) || (waits && id != "callTool")),
        ("Idempotent-Replayed", *method == HttpMethod::Post),
        ("Location", waits || LOCATED.contains(&id)),
        ("Preference-Applied", waits),
        ("traceresponse", waits),
    ];
    sends.into_iter().filter(|(_, sends)| *sends).map(|(name, _)| name).collect()
}

fn header(meaning: &str) -> Header {
    let text = ObjectBuilder::new().schema_type(Type::String);
    HeaderBuilder::new().schema(Some(text)).description(Some(meaning)).build()
}
