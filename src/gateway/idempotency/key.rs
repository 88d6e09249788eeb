//! Idempotency key of a request, and the fingerprint that repeats are compared by.

use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use memchr::memmem::Finder;
use sha2::{Digest, Sha256};
use toolgate_core::error::ErrorCode;
use toolgate_service::{Caller, Scope};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};

use crate::problem::Problem;

const HEADER: &str = "Idempotency-Key";
const LONGEST: usize = 255;
/// The shortest boundary of a form that is recognized. Those of clients are random and longer; a short one could be found
/// everywhere in a file.
const SHORTEST_BOUNDARY: usize = 16;

/// The key: 1 to 255 visible ASCII characters, given once.
pub(super) fn from_headers(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut given = headers.get_all(HEADER).iter();
    let (first, second) = (given.next(), given.next());
    let Some(first) = first else { return Ok(None) };
    let is_visible = |key: &&str| (1..=LONGEST).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    match (first.to_str().ok().filter(is_visible), second) {
        (Some(key), None) => Ok(Some(key.to_owned())),
        _ => {
            let detail = format!("`{HEADER}` has 1 to {LONGEST} visible ASCII characters, and appears once");
            Err(Problem::new(ErrorCode::InvalidRequest, detail))
        }
    }
}

/// The header parameter, for the description of every POST.
pub(crate) fn described() -> Parameter {
    let visible = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(LONGEST))
        .pattern(Some("^[!-~]+$"));
    ParameterBuilder::new()
        .name(HEADER)
        .parameter_in(ParameterIn::Header)
        .description(Some("A unique key for each operation: a repeated request with the same key is handled only once"))
        .schema(Some(visible))
        .build()
}

/// Hash of a request: method, path with its query, and body; and of the caller's scopes, because a stored response is
/// returned without checking them again. The lengths prevent one part from passing for another. Of a form, the boundary does
/// not count: a client chooses a new one when it builds the same form again.
pub(super) fn fingerprint(caller: &Caller, parts: &Parts, body: &[u8]) -> String {
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let scopes: Vec<&str> = caller.scopes.iter().map(Scope::as_str).collect();
    let (scopes, principal) = (scopes.join(" "), caller.principal.as_ref().map_or("", |principal| principal.as_str()));
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    };
    [parts.method.as_str(), path, &scopes, principal].into_iter().for_each(|part| add(part.as_bytes()));
    let boundary = boundary(&parts.headers).unwrap_or_default().as_bytes();
    let mut rest = body;
    if boundary.len() >= SHORTEST_BOUNDARY {
        let finder = Finder::new(boundary);
        while let Some((before, after)) = finder.find(rest).and_then(|at| rest.split_at_checked(at)) {
            add(before);
            rest = after.get(boundary.len()..).unwrap_or_default();
        }
    }
    add(rest);
    toolgate_core::json::hex(&hash.finalize())
}

/// The boundary of a form.
fn boundary(headers: &HeaderMap) -> Option<&str> {
    let media_type = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let (essence, parameters) = media_type.split_once(';')?;
    if !essence.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let mut parameters = parameters.split(';').filter_map(|parameter| parameter.split_once('='));
    let (_, boundary) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("boundary"))?;
    Some(boundary.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_single_visible_and_bounded() {
        let parsed = |keys: &[&str]| {
            let mut headers = HeaderMap::new();
            for key in keys {
                headers.append(HEADER, key.parse().unwrap());
            }
            from_headers(&headers).map_err(|problem| problem.code())
        };
        let long = "k".repeat(LONGEST);
        assert_eq!(parsed(&[]), Ok(None));
        assert_eq!(parsed(&[&long]), Ok(Some(long.clone())));
        for wrong in [&["a b"][..], &[""], &["a", "a"], &[&format!("{long}k")]] {
            assert_eq!(parsed(wrong), Err(ErrorCode::InvalidRequest), "{wrong:?}");
        }
    }

    #[test]
    fn a_form_is_the_same_with_another_boundary() {
        let of = |media_type: &str, body: &str| {
            let request = axum::http::Request::post("/v1/files").header(CONTENT_TYPE, media_type).body(()).unwrap();
            fingerprint(&Caller::local(), &request.into_parts().0, body.as_bytes())
        };
        let form = |boundary: &str, text: &str| {
            let body = format!("--{boundary}\r\n\r\n{text}\r\n--{boundary}--\r\n");
            of(&format!("multipart/form-data; boundary=\"{boundary}\""), &body)
        };
        let (one, other) = ("a123456789abcdef", "----WebKitFormBoundary7MA4YWxkTrZu0gW");
        assert_eq!(form(one, "text"), form(other, "text"));
        assert_ne!(form(one, "text"), form(one, "texts"));
        assert_ne!(form("short", "text"), form("other", "text"));
        assert_ne!(of("application/json", "a1"), of("application/json", "a2"));
    }
}
