//! Event stream decoder by the standard (WHATWG HTML, 9.2.6): bytes in any pieces in, events out. Pure and bounded.

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An event, or fields without data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Its type; `None` for a message.
    pub kind: Option<String>,
    /// Its data, lines joined with line feeds. Bytes that are not UTF-8 are kept as they are.
    pub data: Option<Vec<u8>>,
    /// The position after this event. An empty one means that the stream no longer has a position.
    pub id: Option<String>,
    /// The delay before the stream is opened again, in milliseconds.
    pub retry: Option<u64>,
}

/// An event over the limit. The rest of the stream is not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {} MiB", .limit >> 20)]
pub struct EventTooLarge {
    /// The limit in bytes.
    pub limit: usize,
}

/// A decoder for one stream.
#[derive(Debug)]
pub struct Decoder {
    line: Vec<u8>,
    event: Event,
    /// The bytes of the event so far, without comments.
    length: usize,
    limit: usize,
    is_first_line: bool,
    /// The last byte was a carriage return: a line feed directly after it belongs to the same line end.
    after_return: bool,
    is_over: bool,
}

impl Decoder {
    /// A decoder for events of up to `limit` bytes.
    pub fn up_to(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            event: Event::default(),
            length: 0,
            limit,
            is_first_line: true,
            after_return: false,
            is_over: false,
        }
    }

    /// The events that end with these bytes, in order. An event that is too large is the last one.
    pub fn push(&mut self, mut bytes: &[u8]) -> Vec<Result<Event, EventTooLarge>> {
        let mut found = Vec::new();
        while let Some(first) = bytes.first().filter(|_| !self.is_over) {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                bytes = bytes.get(1..).unwrap_or_default();
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(bytes.len());
            let (piece, rest) = bytes.split_at(end);
            self.extend_line(piece);
            if self.length > self.limit {
                self.is_over = true;
                found.push(Err(EventTooLarge { limit: self.limit }));
            } else if let Some(line_end) = rest.first() {
                self.after_return = *line_end == b'\r';
                found.extend(self.end_line().map(Ok));
            }
            bytes = rest.get(1..).unwrap_or_default();
        }
        found
    }

    /// The event at the end of a stream without its last empty line. The standard drops such an event, but some servers
    /// send no empty line after the last one. Of an unfinished line only data counts: an id or a delay may be cut.
    pub fn finish(&mut self) -> Option<Event> {
        let line = self.take_line();
        if line.starts_with(b"data") {
            self.field(&line);
        }
        self.dispatch().filter(|_| !self.is_over)
    }

    fn extend_line(&mut self, piece: &[u8]) {
        if self.line.first().or(piece.first()) == Some(&b':') {
            // Servers send comments without end to keep a connection open.
            self.line = vec![b':'];
            return;
        }
        self.length = self.length.saturating_add(piece.len());
        if self.length <= self.limit {
            self.line.extend_from_slice(piece);
        }
    }

    /// The line, without a byte order mark at the beginning of the stream.
    fn take_line(&mut self) -> Vec<u8> {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_first_line) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        line
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = self.take_line();
        if line.is_empty() {
            return self.dispatch();
        }
        self.field(&line);
        None
    }

    fn field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => match &mut self.event.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.event.data = Some(value.to_vec()),
            },
            b"event" => self.event.kind = Some(text(value)).filter(|kind| !kind.is_empty()),
            b"id" if !value.contains(&0) => self.event.id = Some(text(value)),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.event.retry = text(value).parse().ok().or(self.event.retry);
            }
            // A comment, an unknown field, or a field without a usable value.
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<Event> {
        self.length = 0;
        let event = std::mem::take(&mut self.event);
        (event.data.is_some() || event.id.is_some() || event.retry.is_some()).then_some(event)
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 64;

    /// The items of a stream that arrives in pieces of this size.
    fn decoded(stream: &[u8], piece: usize) -> Vec<Result<Event, EventTooLarge>> {
        let mut decoder = Decoder::up_to(LIMIT);
        stream.chunks(piece).flat_map(|bytes| decoder.push(bytes)).collect()
    }

    /// The same with the event at the end of the stream.
    fn finished(stream: &str) -> Vec<Event> {
        let mut decoder = Decoder::up_to(LIMIT);
        let found: Result<Vec<Event>, _> = decoder.push(stream.as_bytes()).into_iter().collect();
        found.unwrap().into_iter().chain(decoder.finish()).collect()
    }

    fn data(text: &str) -> Event {
        Event { data: Some(text.into()), ..Event::default() }
    }

    #[test]
    fn unknown_fields_are_skipped() {
        let stream = "\u{feff}: welcome\r\nfolder: inbox\r\nid: 1\0\r\nretry: soon\r\n\r\nretry\nid:\n:\n\nwhatever\n\ndata: a\rdata:b\r\n\
                      data:  c\n\nevent: beat\ndata: tick\n\nid: 7\nretry: 100\n\nid: 1\0\ndata\n\nretry: -5\ndata : y\n\
                      Data: x\n:data: x\ndata: d\n\n\u{feff}data: e\n\n";
        let event = |kind: Option<&str>, data: Option<&str>, id: Option<&str>, retry| {
            let own = |text: Option<&str>| text.map(str::to_owned);
            Event { kind: own(kind), data: data.map(Into::into), id: own(id), retry }
        };
        let expected = [
            event(None, None, Some(""), None),
            data("a\nb\n c"),
            event(Some("beat"), Some("tick"), None, None),
            event(None, None, Some("7"), Some(100)),
            data(""),
            data("d"),
        ];
        for piece in [1, 2, 3, 1000] {
            assert_eq!(decoded(stream.as_bytes(), piece), expected.clone().map(Ok), "{piece}");
        }
    }

    #[test]
    fn every_line_end_counts_wherever_the_stream_is_split() {
        let stream = "\u{feff}data: a\r\ndata:b\r\n\r\n: note\n\ndata\n\ndata: é\r\revent: x\ndata: cut";
        for at in 0..stream.len() {
            let mut decoder = Decoder::up_to(LIMIT);
            let (head, tail) = stream.as_bytes().split_at(at);
            let found = [decoder.push(head), decoder.push(tail)].concat();
            assert_eq!(found, ["a\nb", "", "é"].map(|text| Ok(data(text))), "cut at {at}");
        }
    }

    #[test]
    fn an_empty_data_line_counts_wherever_it_stands() {
        for (stream, text) in
            [("data\ndata: x", "\nx"), ("data: x\ndata", "x\n"), ("data\ndata", "\n"), ("data", ""), ("data:", "")]
        {
            assert_eq!(finished(&format!("{stream}\n\n")), [data(text)], "{stream:?}");
        }
    }

    #[test]
    fn an_event_beyond_the_limit_is_the_last_item() {
        let comment = format!(": {}\n", "c".repeat(500));
        let stream = format!("data: y\n{comment}data: z\n\ndata: {}\ndata: y\n\ndata: z\n\n", "x".repeat(LIMIT));
        for piece in [1, 7, 1000] {
            let expected = [Ok(data("y\nz")), Err(EventTooLarge { limit: LIMIT })];
            assert_eq!(decoded(stream.as_bytes(), piece), expected, "{piece}");
        }
        let lines = "data: 0123456789\n".repeat(LIMIT / 16 + 1);
        assert_eq!(decoded(lines.as_bytes(), 5), [Err(EventTooLarge { limit: LIMIT })], "lines count together");
    }

    #[test]
    fn an_event_at_the_end_needs_no_empty_line() {
        assert_eq!(finished("data: a\n\ndata: b"), [data("a"), data("b")]);
    }

    #[test]
    fn an_unfinished_line_is_no_id() {
        assert_eq!(finished("data: a\nid: 7"), [data("a")]);
        assert_eq!(finished("id: 7\ndata: a"), [Event { id: Some("7".into()), ..data("a") }]);
    }

    #[test]
    fn a_number_that_is_too_large_is_no_delay() {
        let stream = format!("retry: 5\nretry: {}0\n\n", u64::MAX);
        assert_eq!(finished(&stream), [Event { retry: Some(5), ..Event::default() }]);
    }

    /// The data of the events, read line by line as the standard says it.
    fn data_by_the_standard(stream: &str) -> Vec<String> {
        let stream = stream.strip_prefix('\u{feff}').unwrap_or(stream).replace("\r\n", "\n").replace('\r', "\n");
        // The text after the last line end is unfinished.
        let lines = stream.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let (mut found, mut buffer) = (Vec::new(), String::new());
        for line in lines.split('\n') {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            if line.is_empty() && !buffer.is_empty() {
                buffer.pop();
                found.push(std::mem::take(&mut buffer));
            } else if name == "data" {
                buffer.push_str(value.strip_prefix(' ').unwrap_or(value));
                buffer.push('\n');
            }
        }
        found
    }

    proptest! {
        /// The data is that of the standard, and the size of the pieces changes nothing.
        #[test]
        fn streams_are_decoded_by_the_standard(
            stream in "\u{feff}?(data: {0,2}[a-z]{0,3}|data\n|id: ?[0-9]?|: c|event|x|\r\n|\n|\r|\n\n){0,14}",
            piece in 1usize..9,
        ) {
            let mut decoder = Decoder::up_to(1000);
            let pushed: Vec<_> = stream.as_bytes().chunks(piece).flat_map(|bytes| decoder.push(bytes)).collect();
            let mut at_once = Decoder::up_to(1000);
            prop_assert_eq!(&pushed, &at_once.push(stream.as_bytes()));
            prop_assert_eq!(decoder.finish(), at_once.finish());
            let texts = pushed.into_iter().flatten().filter_map(|event| event.data);
            let texts: Vec<String> = texts.map(|data| String::from_utf8(data).unwrap()).collect();
            prop_assert_eq!(texts, data_by_the_standard(&stream));
        }
    }
}
