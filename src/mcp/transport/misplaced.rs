//! Answers in the wrong place or encoding: behind other text on a line, or in UTF-16. They are not read, and their
//! requests fail with an explanation instead of a timeout.

use rmcp::model::RequestId;

use super::json;
use super::quote::quoted;
use super::salvage::{end_of_value, is_like_an_answer, request_id, salvaged_id};

/// How many braces of a line are tried as the beginning of an answer.
const MAX_BRACES: usize = 8;

/// The request that an answer in UTF-16 names, if it names one, and the reason for the error.
pub(super) fn in_utf16(text: &[u8]) -> Option<(Option<RequestId>, String)> {
    let text = without_zeros_of_utf16(text).filter(|text| is_like_an_answer(text))?;
    Some((salvaged_id(&text), format!("it is in UTF-16, and messages have to be in UTF-8: {}", quoted(&text))))
}

/// The request in flight that is answered behind other text.
pub(super) fn misplaced(text: &[u8], is_in_flight: &dyn Fn(&RequestId) -> bool) -> Option<RequestId> {
    text.iter().enumerate().filter(|(_, byte)| **byte == b'{').take(MAX_BRACES).find_map(|(place, _)| {
        let rest = text.get(place..)?;
        let (value, _) = json::read(rest.get(..end_of_value(rest)?)?).ok()?;
        let is_answer = value.get("jsonrpc").is_some() && value.get("method").is_none();
        value.get("id").and_then(request_id).filter(|id| is_answer && is_in_flight(id))
    })
}

/// A text of ASCII characters in UTF-16, without their second bytes and the byte order mark.
fn without_zeros_of_utf16(text: &[u8]) -> Option<Vec<u8>> {
    let zeros = text.iter().filter(|byte| **byte == 0).count();
    let is_utf16 = zeros > 0 && zeros + 4 >= text.len() / 2;
    is_utf16.then(|| {
        let letters = text.iter().copied().filter(|byte| !matches!(byte, 0 | 0xfe | 0xff)).collect::<Vec<u8>>();
        letters.trim_ascii().to_vec()
    })
}
