//! Event stream parser by the standard (WHATWG HTML, 9.2). Unknown fields are skipped.

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An event, or fields without data.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// Its type; `None` for a message.
    pub(super) kind: Option<String>,
    /// Its data. Bytes that are not UTF-8 are kept as they are.
    pub(super) data: Option<Vec<u8>>,
    /// Its id, if it is not empty.
    pub(super) id: Option<String>,
    /// The delay before the stream is opened again, in milliseconds.
    pub(super) retry: Option<u64>,
}

/// The state of a stream parser.
#[derive(Debug)]
pub(super) struct Parser {
    line: Vec<u8>,
    event: Event,
    /// The bytes of the current event so far.
    length: usize,
    max: usize,
    is_first_line: bool,
    /// Whether the last byte was a carriage return: a line feed then belongs to the same line end.
    after_return: bool,
    /// Whether the event is too long, and the rest of it is skipped.
    skips: bool,
}

/// An item of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamItem {
    /// An event.
    Event(Event),
    /// An event over the size limit, which was skipped.
    TooLong,
}

impl Parser {
    /// A parser for events of up to `max` bytes.
    pub(super) fn up_to(max: usize) -> Self {
        Self {
            line: Vec::new(),
            event: Event::default(),
            length: 0,
            max,
            is_first_line: true,
            after_return: false,
            skips: false,
        }
    }

    /// The events that end with these bytes.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Vec<StreamItem> {
        let mut found = Vec::new();
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = bytes.split_at(end);
            self.extend(line, &mut found);
            self.end_line(&mut found);
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] | [b'\n', rest @ ..] => rest,
                [b'\r', rest @ ..] => {
                    self.after_return = rest.is_empty();
                    rest
                }
                other => other,
            };
        }
        self.extend(bytes, &mut found);
        found
    }

    /// The event at the end of a stream without its last empty line, if it is complete.
    pub(super) fn finish(&mut self) -> Option<Event> {
        let mut found = Vec::new();
        self.end_line(&mut found);
        self.dispatch(&mut found);
        match found.pop() {
            Some(StreamItem::Event(event)) => Some(event),
            Some(StreamItem::TooLong) | None => None,
        }
    }

    fn extend(&mut self, piece: &[u8], found: &mut Vec<StreamItem>) {
        let is_comment = self.line.first().or(piece.first()) == Some(&b':');
        if self.skips || is_comment {
            if self.line.is_empty() {
                self.line.extend(piece.first());
            }
            return;
        }
        self.length += piece.len();
        if self.length > self.max {
            found.push(StreamItem::TooLong);
            self.skips = true;
            self.line = Vec::from(*b"x");
            self.event = Event::default();
            return;
        }
        self.line.extend_from_slice(piece);
    }

    fn end_line(&mut self, found: &mut Vec<StreamItem>) {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if std::mem::take(&mut self.is_first_line) {
            line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch(found);
        }
        if self.skips {
            return;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                let data = self.event.data.get_or_insert_with(Vec::new);
                if !data.is_empty() {
                    data.push(b'\n');
                }
                data.extend_from_slice(value);
            }
            b"event" => self.event.kind = Some(text(value)).filter(|kind| !kind.is_empty()),
            b"id" if !value.is_empty() && !value.contains(&0) => self.event.id = Some(text(value)),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.event.retry = text(value).parse().ok();
            }
            // A comment, a field of another standard, or one without a usable value.
            _ => {}
        }
    }

    fn dispatch(&mut self, found: &mut Vec<StreamItem>) {
        let event = std::mem::take(&mut self.event);
        self.length = 0;
        self.skips = false;
        if event.data.is_some() || event.id.is_some() || event.retry.is_some() {
            found.push(StreamItem::Event(event));
        }
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The events of a stream that arrives in pieces of this size.
    fn parsed(stream: &[u8], piece: usize) -> Vec<StreamItem> {
        let mut parser = Parser::up_to(64);
        let mut found: Vec<StreamItem> = stream.chunks(piece).flat_map(|bytes| parser.push(bytes)).collect();
        found.extend(parser.finish().map(StreamItem::Event));
        found
    }

    fn data(text: &str) -> StreamItem {
        StreamItem::Event(Event { data: Some(text.into()), ..Event::default() })
    }

    #[test]
    fn unknown_fields_are_skipped() {
        let stream = "\u{feff}: welcome\r\nfolder: inbox\r\nid\r\nretry: soon\r\n\r\nretry\nid:\n:\n\nwhatever\n\ndata: a\rdata:b\r\n\
                      data:  c\n\nevent: beat\ndata: tick\n\nid: 7\nretry: 100\n\nid: 1\0\ndata\n\nretry: -5\ndata: d\n\n";
        let event = |kind: Option<&str>, data: Option<&str>, id: Option<&str>, retry| {
            let own = |text: Option<&str>| text.map(str::to_owned);
            StreamItem::Event(Event { kind: own(kind), data: data.map(Into::into), id: own(id), retry })
        };
        let expected = [
            data("a\nb\n c"),
            event(Some("beat"), Some("tick"), None, None),
            event(None, None, Some("7"), Some(100)),
            data(""),
            data("d"),
        ];
        for piece in [1, 2, 3, 1000] {
            assert_eq!(parsed(stream.as_bytes(), piece), expected, "{piece}");
        }
    }

    #[test]
    fn an_event_that_is_too_long_is_passed_over_alone() {
        let comment = format!(": {}\n", "c".repeat(500));
        let stream = format!("data: {}\ndata: y\n\n{comment}data: z\n\n", "x".repeat(100));
        for piece in [1, 7, 1000] {
            assert_eq!(parsed(stream.as_bytes(), piece), [StreamItem::TooLong, data("z")], "{piece}");
        }
    }

    #[test]
    fn an_event_at_the_end_needs_no_empty_line() {
        assert_eq!(parsed(b"data: a\n\ndata: b", 4), [data("a"), data("b")]);
    }

    proptest! {
        /// The size of the pieces does not change the events.
        #[test]
        fn cuts_do_not_matter(stream in "(data: [a-z]{0,3}|id: ?[0-9]?|: c|event|x|\r\n|\n|\r|\n\n){0,12}", cut in 1usize..9) {
            prop_assert_eq!(parsed(stream.as_bytes(), cut), parsed(stream.as_bytes(), usize::MAX));
        }
    }
}
