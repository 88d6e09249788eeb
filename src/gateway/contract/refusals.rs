//! Which statuses an operation refuses with. Handlers say `default`, which is all of them; what is published names each, so
//! that an answer nobody expected is found.

use utoipa::openapi::path::{HttpMethod, Operation, PathItem};
use utoipa::openapi::{OpenApi, RefOr, Response};

const DEFAULT: &str = "default";

/// Puts in the place of each `default` the statuses that can come of such an operation.
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
                let told = Told { response: &refused, meaning };
                operation.responses.responses.entry((*status).to_owned()).or_insert_with(|| told.response());
            }
        }
    }
}

/// When a status can come.
enum When {
    Always,
    /// The path names something.
    Named,
    /// There is a body.
    Body,
    /// It is more than reading.
    Changes,
}

const REFUSALS: [(&str, &str, When); 14] = [
    ("400", "The request is malformed", When::Always),
    ("401", "Nobody showed who they are, or what they showed does not hold", When::Always),
    ("403", "Whoever asks may not do this", When::Always),
    ("404", "There is no such thing, or it is somebody else's", When::Named),
    ("406", "There is nothing in a form that the request accepts", When::Always),
    ("408", "The body did not arrive in time", When::Body),
    ("409", "Not as things are, or somebody else was first", When::Changes),
    ("410", "It was there, and is not any more", When::Named),
    ("412", "Changed since", When::Changes),
    ("413", "The body is too large", When::Body),
    ("415", "The body is in a form that is not taken", When::Body),
    ("422", "It can be read, and cannot be meant", When::Always),
    ("429", "Too often, or too much at once", When::Always),
    ("503", "Nothing new is taken at the moment, or the store cannot be used", When::Always),
];

struct Told<'a> {
    response: &'a RefOr<Response>,
    meaning: &'a str,
}

impl Told<'_> {
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
