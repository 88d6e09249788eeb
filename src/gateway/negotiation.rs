//! Content negotiation: `Accept` (RFC 9110, 12.5.1), and the format of a response.

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use toolgate_core::error::ErrorCode;

use crate::problem::Problem;

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One JSON document.
    Json,
    /// Server-sent events.
    Stream,
}

impl Form {
    /// The preferred format. Among equally preferred ones it is the first that the client names, because generated
    /// clients list the media types of an operation in the order in which they read them, or else the first that is
    /// offered.
    pub(crate) fn wanted(headers: &HeaderMap, offered: &[Self]) -> Result<Self, Problem> {
        let given: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
        let ranges: Vec<Range<'_>> = given.iter().flat_map(|value| value.split(',')).map(Range::read).collect();
        let wish = |form: &&Self| if ranges.is_empty() { 1000 } else { form.wish(&ranges) };
        let most = offered.iter().map(|form| wish(&form)).max().unwrap_or_default();
        let place = |form: &&Self| ranges.iter().position(|range| range.names(**form)).unwrap_or(ranges.len());
        let best = offered.iter().filter(|form| wish(form) == most && most > 0).min_by_key(place).copied();
        best.ok_or_else(|| {
            let names: Vec<&str> = offered.iter().map(|form| form.media_type()).collect();
            Problem::new(ErrorCode::NotAcceptable, format!("this endpoint answers with {}", names.join(" or ")))
        })
    }

    const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Stream => "text/event-stream",
        }
    }

    /// The client's preference for the format, in thousandths: the quality of the most specific range that matches.
    fn wish(self, ranges: &[Range<'_>]) -> u32 {
        let (kind, _) = self.media_type().split_once('/').unwrap_or_default();
        let fits = |range: &&Range<'_>| match range.name.split_once('/') {
            Some(("*", "*")) => true,
            Some((named, "*")) => named.eq_ignore_ascii_case(kind),
            Some(_) | None => range.names(self),
        };
        ranges.iter().filter(fits).max_by_key(|range| range.specificity()).map_or(0, |range| range.quality)
    }
}

/// Whether a response is an event stream.
pub(crate) fn is_stream(headers: &HeaderMap) -> bool {
    let media_type = Form::Stream.media_type().as_bytes();
    headers.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(media_type))
}

/// A media range.
struct Range<'a> {
    name: &'a str,
    /// The quality, in thousandths.
    quality: u32,
}

impl<'a> Range<'a> {
    fn read(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let quality = parts.find_map(|parameter| parameter.strip_prefix("q=").or(parameter.strip_prefix("Q=")));
        let quality = quality.and_then(|quality| quality.trim().parse::<f32>().ok()).unwrap_or(1.0);
        Self { name, quality: (quality.clamp(0.0, 1.0) * 1000.0).round() as u32 }
    }

    fn names(&self, form: Form) -> bool {
        self.name.eq_ignore_ascii_case(form.media_type())
    }

    fn specificity(&self) -> usize {
        2 - self.name.matches('*').count().min(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(accept: &str, offered: &[Form]) -> Option<Form> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        Form::wanted(&headers, offered).ok()
    }

    #[test]
    fn the_most_preferred_format_is_chosen() {
        use Form::{Json, Stream};
        let either = [Stream, Json];
        assert_eq!(Form::wanted(&HeaderMap::new(), &either).ok(), Some(Stream));
        assert_eq!(wanted("*/*", &either), Some(Stream));
        assert_eq!(wanted("*/*", &[Json, Stream]), Some(Json));
        assert_eq!(wanted("application/json", &either), Some(Json));
        assert_eq!(wanted("application/json, text/event-stream;q=0.5", &either), Some(Json));
        assert_eq!(wanted("application/*;q=0.1, text/event-stream", &[Json, Stream]), Some(Stream));
        assert_eq!(wanted("*/*, text/event-stream;q=0", &either), Some(Json));
        assert_eq!(wanted("TEXT/EVENT-STREAM", &either), Some(Stream));
        assert_eq!(wanted("application/json, text/event-stream, application/problem+json", &either), Some(Json));
        assert_eq!(wanted("text/event-stream, application/json", &[Json, Stream]), Some(Stream));
        assert_eq!(wanted("*/*, application/json", &either), Some(Json));
        assert_eq!(wanted("text/html, image/*", &either), None);
        assert_eq!(wanted("text/event-stream;q=0, application/json;q=0", &either), None);
    }
}
