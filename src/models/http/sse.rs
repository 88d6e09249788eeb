//! Server-sent events decoder: turns bytes into the data of complete events. It is bounded, linear in the input, and
//! independent of how the network splits bytes. Event names, ids and retry fields are ignored, because these APIs put
//! everything into the data.

use std::collections::VecDeque;

/// The most bytes of data in one event: an image comes in one event.
pub(super) const MAX_EVENT_BYTES: usize = 16 << 20;

/// Why a stream cannot be decoded further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SseFault {
    #[error("an event is larger than {} MiB", MAX_EVENT_BYTES >> 20)]
    TooLarge,
    #[error("an event is not UTF-8")]
    NotUtf8,
}

/// A decoder for one stream.
#[derive(Debug, Default)]
pub(super) struct SseDecoder {
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    ready: VecDeque<String>,
    /// The last byte was a carriage return: a line feed directly after it belongs to the same line end.
    after_return: bool,
    /// The first line was read; a byte order mark is valid only before it.
    begun: bool,
}

impl SseDecoder {
    /// Adds bytes of the stream.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Result<(), SseFault> {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_return) && first == b'\n' {
                bytes = bytes.get(1..).unwrap_or_default();
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                return self.extend_line(bytes);
            };
            let (rest_of_line, tail) = bytes.split_at(end);
            self.extend_line(rest_of_line)?;
            self.after_return = tail.first() == Some(&b'\r');
            self.end_line()?;
            bytes = tail.get(1..).unwrap_or_default();
        }
        Ok(())
    }

    /// The data of the next complete event. An event that the stream cuts off is never returned.
    pub(super) fn next_event(&mut self) -> Option<String> {
        self.ready.pop_front()
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), SseFault> {
        let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
        if held.saturating_add(bytes.len()) > MAX_EVENT_BYTES {
            return Err(SseFault::TooLarge);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), SseFault> {
        let line = self.line.as_slice();
        let line = match std::mem::replace(&mut self.begun, true) {
            false => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line),
            true => line,
        };
        if line.is_empty() {
            let event = self.data.take().map(String::from_utf8).transpose().map_err(|_| SseFault::NotUtf8)?;
            self.ready.extend(event);
        } else if let Some(value) = data_field(line) {
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            }
        }
        self.line.clear();
        Ok(())
    }
}

/// The value of a `data` field; `None` for comments and all other fields.
fn data_field(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"data")?;
    match rest.strip_prefix(b":") {
        Some(value) => Some(value.strip_prefix(b" ").unwrap_or(value)),
        None => rest.is_empty().then_some(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut decoder = SseDecoder::default();
        for piece in pieces {
            decoder.push(piece).unwrap();
        }
        std::iter::from_fn(|| decoder.next_event()).collect()
    }

    #[test]
    fn every_line_end_counts_wherever_the_stream_is_split() {
        let stream = "\u{feff}data: a\r\ndata:b\r\n\r\n: note\n\ndata\n\ndata: é\r\revent: x\ndata: cut";
        assert_eq!(events(&[stream.as_bytes()]), ["a\nb", "", "é"]);
        for at in 0..stream.len() {
            let (head, tail) = stream.as_bytes().split_at(at);
            assert_eq!(events(&[head, tail]), ["a\nb", "", "é"], "cut at {at}");
        }
    }

    #[test]
    fn an_event_beyond_the_limit_is_rejected() {
        let mut decoder = SseDecoder::default();
        assert_eq!(decoder.push(&vec![b'x'; MAX_EVENT_BYTES + 1]), Err(SseFault::TooLarge));
        let mut decoder = SseDecoder::default();
        let line = [b"data: ".as_slice(), &[b'x'; 1 << 20], b"\n"].concat();
        let pushed: Result<Vec<()>, SseFault> = (0..17).map(|_| decoder.push(&line)).collect();
        assert_eq!(pushed, Err(SseFault::TooLarge));
    }

    #[test]
    fn data_that_is_not_utf8_is_rejected() {
        assert_eq!(SseDecoder::default().push(b"data: \xff\n\n"), Err(SseFault::NotUtf8));
    }
}
