//! Framing of a child's stdout: splits the bytes into JSON texts. A text is one line, or several lines of indented
//! JSON.

use super::quote;

/// How many bytes of a line are examined before it counts as not JSON. The rest of the line is skipped.
const LOOKED_AT: usize = 64 * 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One text of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A line, or several lines that belong together. Not necessarily valid.
    Text(Vec<u8>),
    /// A text exceeded the size limit. Nothing after it can be read.
    TooLong,
}

/// Joins the lines of a JSON text that spans several.
#[derive(Debug)]
pub(super) struct Frames {
    line: Vec<u8>,
    /// Whether the rest of the line is skipped.
    skips: bool,
    /// The lines of an unfinished text.
    text: Vec<u8>,
    balance: Balance,
    max: usize,
    frames: Vec<Frame>,
}

impl Frames {
    /// A framer for texts of up to `max` bytes.
    pub(super) fn up_to(max: usize) -> Self {
        let (line, text, balance) = (Vec::new(), Vec::new(), Balance::default());
        Self { line, skips: false, text, balance, max, frames: Vec::new() }
    }

    /// The texts that end with these bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<Frame> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let is_end = piece.ends_with(b"\n");
            if !self.skips {
                self.line.extend_from_slice(piece);
            }
            if self.line.len() + self.text.len() > self.max {
                self.frames.push(Frame::TooLong);
                break;
            }
            if is_end {
                self.skips = false;
                let line = std::mem::take(&mut self.line);
                self.take(&line);
            } else if self.line.len() > LOOKED_AT && self.text.is_empty() && !begins_like_json(trimmed(&self.line)) {
                let line = std::mem::take(&mut self.line);
                self.frames.push(Frame::Text(line));
                self.skips = true;
            }
        }
        std::mem::take(&mut self.frames)
    }

    /// Whether a text is unfinished, so that its beginning waits for the rest.
    pub(super) fn is_unfinished(&self) -> bool {
        !self.text.is_empty()
    }

    /// The length of a line without an end, which waits for the rest.
    pub(super) fn unended(&self) -> usize {
        if self.text.is_empty() && !self.skips { self.line.len() } else { 0 }
    }

    pub(super) fn line(&self) -> &[u8] {
        trimmed(&self.line)
    }

    /// The unfinished text, without waiting for the rest.
    pub(super) fn give_up(&mut self) -> Option<Frame> {
        self.balance = Balance::default();
        (!self.text.is_empty()).then(|| Frame::Text(std::mem::take(&mut self.text)))
    }

    /// The remaining texts at the end of the stream.
    pub(super) fn finish(&mut self) -> Vec<Frame> {
        let text = self.give_up();
        let line = std::mem::take(&mut self.line);
        text.into_iter().chain((!trimmed(&line).is_empty()).then_some(Frame::Text(line))).collect()
    }

    fn take(&mut self, line: &[u8]) {
        let line = trimmed(line);
        if line.is_empty() {
            return;
        }
        if self.text.is_empty() {
            let balance = Balance::new(line);
            if balance.is_incomplete() && begins_like_json(line) {
                self.balance = balance;
                self.keep(line);
            } else {
                self.frames.push(Frame::Text(line.to_vec()));
            }
            return;
        }
        if self.text.starts_with(b"{") && is_whole_message(line) {
            // The text before was not JSON, or was never finished.
            let text = self.give_up();
            self.frames.extend(text);
            self.frames.push(Frame::Text(line.to_vec()));
            return;
        }
        line.iter().for_each(|byte| self.balance.weigh(*byte));
        self.keep(line);
        if !self.balance.is_incomplete() {
            let text = self.give_up();
            self.frames.extend(text);
        }
    }

    fn keep(&mut self, line: &[u8]) {
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
    }
}

/// The bytes without surrounding white space and without a byte order mark.
pub(super) fn trimmed(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.trim_ascii();
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes).trim_ascii()
}

/// Whether the bytes may be the beginning of an object or of a list of objects.
pub(super) fn begins_like_json(bytes: &[u8]) -> bool {
    let Some((first, rest)) = bytes.split_first() else { return false };
    match (first, rest.trim_ascii_start().first()) {
        (b'{', next) => matches!(next, None | Some(b'"' | b'}')),
        (b'[', next) => matches!(next, None | Some(b'{')),
        (_, _) => false,
    }
}

fn is_whole_message(line: &[u8]) -> bool {
    line.starts_with(b"{") && Balance::new(line).is_even() && quote::contains(line, b"\"jsonrpc\"")
}

/// The open brackets of a JSON text.
#[derive(Debug, Default)]
pub(super) struct Balance {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Balance {
    fn new(bytes: &[u8]) -> Self {
        let mut balance = Self::default();
        bytes.iter().for_each(|byte| balance.weigh(*byte));
        balance
    }

    /// Processes the next byte.
    pub(super) fn weigh(&mut self, byte: u8) {
        if self.in_string {
            self.in_string = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }

    /// Whether every bracket is closed.
    pub(super) fn is_even(&self) -> bool {
        self.depth == 0 && !self.in_string
    }

    /// The number of open brackets.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether the position is inside a string.
    pub(super) fn is_in_string(&self) -> bool {
        self.in_string
    }

    /// Whether a text continues after the end of a line. A string never does.
    fn is_incomplete(&self) -> bool {
        self.depth > 0 && !self.in_string
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

    /// The texts of a stream that arrives in pieces of this size.
    fn framed(stream: &str, piece: usize) -> Vec<String> {
        let mut frames = Frames::up_to(1 << 20);
        let mut texts: Vec<Frame> = stream.as_bytes().chunks(piece).flat_map(|bytes| frames.push(bytes)).collect();
        texts.extend(frames.finish());
        let text = |frame| match frame {
            Frame::Text(text) => String::from_utf8_lossy(trimmed(&text)).into_owned(),
            Frame::TooLong => "too long".into(),
        };
        texts.into_iter().map(text).collect()
    }

    #[test]
    fn a_text_is_a_line_or_the_lines_of_indented_json() {
        let indented = "{\n  \"jsonrpc\": \"2.0\",\n  \"result\": {\n    \"a\": \"}\"\n  }\n}";
        let stream = format!("Listening on 3000\r\n\u{feff}{PING}\n  \n{indented}\n[INFO] ready\n[]\n{PING}\n");
        for piece in [1, 7, 4096] {
            let flat: Vec<String> = framed(&stream, piece).iter().map(|text| text.replace("\n", "")).collect();
            let joined: String = indented.lines().map(str::trim).collect();
            assert_eq!(flat, ["Listening on 3000", PING, &joined, "[INFO] ready", "[]", PING]);
        }
    }

    #[test]
    fn a_message_is_not_lost_behind_an_object_that_never_ends() {
        let cut = r#"{"jsonrpc":"2.0","id":2,"#;
        assert_eq!(framed(&format!("{{\n{PING}\n{cut}\n{PING}\n{cut}"), 5), ["{", PING, cut, PING, cut]);
        let mut frames = Frames::up_to(100);
        assert_eq!(frames.push(b"{\n"), []);
        assert!(frames.is_unfinished());
        assert_eq!((frames.give_up(), frames.is_unfinished()), (Some(Frame::Text(b"{\n".to_vec())), false));
    }

    #[test]
    fn a_cut_in_a_string_is_not_waited_for() {
        let mut frames = Frames::up_to(100);
        assert_eq!(frames.push(b"{\"jsonrpc\":\"2.0\",\"res\n").len(), 1);
    }

    #[test]
    fn noise_without_end_is_kept_at_its_beginning_and_json_up_to_the_bound() {
        let noise = "y".repeat(3 * LOOKED_AT);
        let texts = framed(&format!("{noise}\n{PING}\n"), 10_000);
        assert!(texts.len() == 2 && texts[0].len() <= LOOKED_AT + 10_000 && texts[1] == PING);
        let long = format!("{{\"a\":\"{}", "x".repeat(2 << 20));
        assert_eq!(framed(&long, 10_000).first().map(String::as_str), Some("too long"));
    }

    proptest! {
        /// The size of the pieces does not change the texts.
        #[test]
        fn cuts_do_not_matter(
            lines in proptest::collection::vec("(\\{\"jsonrpc\":1\\}|[a-z\\{\\}\\[\" é]{0,9})", 0..8), cut in 1usize..40,
        ) {
            let stream = lines.join("\n");
            prop_assert_eq!(framed(&stream, cut), framed(&stream, usize::MAX));
        }
    }
}
