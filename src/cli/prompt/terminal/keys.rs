//! Key decoder: turns the bytes that a terminal sends into keys and pastes. Pure.
//!
//! A terminal in bracketed paste mode marks a paste with `ESC [ 200 ~` and `ESC [ 201 ~`. Everything between the marks is
//! content, control characters and line breaks included, so that no pasted byte acts as a key. Escape sequences that have
//! no meaning here are dropped.

use rustix::termios::{SpecialCodeIndex, Termios};

/// The largest paste that is kept, in bytes.
const MOST: usize = 16 * 1024 * 1024;
/// The longest escape sequence. A longer one is no sequence, and its remainder is typed text.
const LONGEST_SEQUENCE: usize = 32;
const PASTE_END: &[u8] = b"\x1b[201~";

/// A key that was pressed, or text that was pasted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Enter,
    /// Deletes the character before the cursor.
    Erase,
    EraseWord,
    EraseLine,
    /// Ctrl-K: deletes from the cursor to the end.
    EraseRest,
    /// Ctrl-Y: inserts what was erased last.
    InsertErased,
    /// Deletes the character under the cursor.
    Delete,
    Left,
    Right,
    /// Alt-B and Alt-F, or Ctrl with an arrow key.
    WordLeft,
    WordRight,
    /// Up and Down: the line, or else the message, before and after.
    Earlier,
    Later,
    /// Ctrl-R: the message before that contains a text.
    Search,
    /// Alt-Enter: a line break in the text.
    Break,
    /// Shift-Tab.
    BackTab,
    Home,
    End,
    EndOfInput,
    /// Esc alone, which no byte of a sequence followed.
    Escape,
    Interrupt,
    Quit,
    Suspend,
    /// A marked paste, with line breaks as `\n`.
    Paste(String),
    /// A dropped paste of more than [`MOST`] bytes.
    OversizedPaste,
}

/// The control characters of the terminal and their keys, read from its settings.
#[derive(Clone, Debug)]
pub(super) struct Bindings(Vec<(u8, Key)>);

impl Bindings {
    pub(super) fn new(terminal: &Termios) -> Self {
        let named = [
            (SpecialCodeIndex::VINTR, Key::Interrupt),
            (SpecialCodeIndex::VQUIT, Key::Quit),
            (SpecialCodeIndex::VSUSP, Key::Suspend),
            (SpecialCodeIndex::VEOF, Key::EndOfInput),
            (SpecialCodeIndex::VERASE, Key::Erase),
            (SpecialCodeIndex::VWERASE, Key::EraseWord),
            (SpecialCodeIndex::VKILL, Key::EraseLine),
        ];
        let named = named.into_iter().map(|(index, key)| (terminal.special_codes[index], key));
        // 0 and 255 mean that the key is disabled.
        let named = named.filter(|(byte, _)| !matches!(byte, 0 | 0xff));
        Self(named.chain(Self::usual().0).collect())
    }

    /// The default bindings.
    pub(super) fn usual() -> Self {
        Self(vec![
            (b'\r', Key::Enter),
            (b'\n', Key::Enter),
            (0x03, Key::Interrupt),
            (0x1a, Key::Suspend),
            (0x04, Key::EndOfInput),
            (0x08, Key::Erase),
            (0x7f, Key::Erase),
            (0x12, Key::Search),
            (0x0b, Key::EraseRest),
            (0x19, Key::InsertErased),
            (0x17, Key::EraseWord),
            (0x15, Key::EraseLine),
            (0x01, Key::Home),
            (0x05, Key::End),
            (0x02, Key::Left),
            (0x06, Key::Right),
            (0x10, Key::Earlier),
            (0x0e, Key::Later),
        ])
    }

    fn key(&self, byte: u8) -> Option<Key> {
        self.0.iter().find(|(bound, _)| *bound == byte).map(|(_, key)| key.clone())
    }
}

/// Decoder state after the bytes so far.
#[derive(Debug)]
enum State {
    /// The first bytes of a character.
    Text(Vec<u8>),
    /// After ESC.
    Escape,
    /// After `ESC [`, with the bytes after it.
    Sequence(Vec<u8>),
    /// After `ESC O`.
    Shifted,
    /// Between the marks of a paste. Bytes beyond the limit set `is_oversized` and are dropped.
    Paste { content: Vec<u8>, is_oversized: bool },
}

/// Decoder state machine: bytes in, keys out. Sequences may be split over any number of reads.
#[derive(Debug)]
pub(super) struct Decoder {
    bindings: Bindings,
    state: State,
}

impl Decoder {
    pub(super) fn new(bindings: Bindings) -> Self {
        Self { bindings, state: State::Text(Vec::new()) }
    }

    /// The keys of one read.
    pub(super) fn decode(&mut self, bytes: &[u8]) -> Vec<Key> {
        // If the end of a paste got lost, Ctrl-C must still work: alone in a read, it is the key.
        if let [byte] = bytes
            && self.is_in_paste()
            && self.bindings.key(*byte) == Some(Key::Interrupt)
        {
            self.state = State::Text(Vec::new());
            return vec![Key::Interrupt];
        }
        bytes.iter().filter_map(|byte| self.next(*byte)).collect()
    }

    /// Takes an ESC that no other byte followed: the key itself was pressed.
    pub(super) fn take_escape(&mut self) -> Option<Key> {
        let is_pressed = self.is_after_escape();
        is_pressed.then(|| {
            self.state = State::Text(Vec::new());
            Key::Escape
        })
    }

    /// Whether ESC was the last byte: the key, or the beginning of a sequence.
    pub(super) fn is_after_escape(&self) -> bool {
        matches!(self.state, State::Escape)
    }

    /// Whether the end of a paste has not arrived yet.
    pub(super) fn is_in_paste(&self) -> bool {
        matches!(self.state, State::Paste { .. })
    }

    fn next(&mut self, byte: u8) -> Option<Key> {
        match &mut self.state {
            State::Text(partial) => {
                let is_continued = !partial.is_empty() && byte & 0xc0 == 0x80;
                if !is_continued {
                    partial.clear();
                    if byte == 0x1b {
                        self.state = State::Escape;
                        return None;
                    }
                    if let Some(key) = self.bindings.key(byte) {
                        return Some(key);
                    }
                }
                partial.push(byte);
                match std::str::from_utf8(partial) {
                    Ok(text) => {
                        let typed = text.chars().next().filter(|c| !c.is_control() || *c == '\t');
                        partial.clear();
                        typed.map(Key::Char)
                    }
                    Err(error) if error.error_len().is_none() => None,
                    Err(_) => {
                        partial.clear();
                        Some(Key::Char(char::REPLACEMENT_CHARACTER))
                    }
                }
            }
            State::Escape => {
                self.state = match byte {
                    b'[' => State::Sequence(Vec::new()),
                    b'O' => State::Shifted,
                    0x1b => State::Escape,
                    _ => State::Text(Vec::new()),
                };
                // Alt with any other key does nothing.
                match self.bindings.key(byte) {
                    _ if byte == b'b' => Some(Key::WordLeft),
                    _ if byte == b'f' => Some(Key::WordRight),
                    Some(Key::Erase) => Some(Key::EraseWord),
                    Some(Key::Enter) => Some(Key::Break),
                    Some(_) | None => self.signal(byte),
                }
            }
            State::Shifted => {
                self.state = State::Text(Vec::new());
                moved(byte)
            }
            State::Sequence(sequence) => {
                let is_end = (0x40..=0x7e).contains(&byte) && !(sequence.is_empty() && byte == b'[');
                if !is_end {
                    sequence.push(byte);
                    if sequence.len() > LONGEST_SEQUENCE || byte < 0x20 {
                        self.state = State::Text(Vec::new());
                        return self.signal(byte);
                    }
                    return None;
                }
                let sequence = std::mem::take(sequence);
                self.state = match (sequence.as_slice(), byte) {
                    (b"200", b'~') => State::Paste { content: Vec::new(), is_oversized: false },
                    _ => State::Text(Vec::new()),
                };
                match (sequence.as_slice(), byte) {
                    (b"1" | b"7", b'~') => Some(Key::Home),
                    (b"4" | b"8", b'~') => Some(Key::End),
                    (b"3", b'~') => Some(Key::Delete),
                    (b"1;5" | b"1;3", b'D') => Some(Key::WordLeft),
                    (b"1;5" | b"1;3", b'C') => Some(Key::WordRight),
                    (b"", _) => moved(byte),
                    _ => None,
                }
            }
            State::Paste { content, is_oversized } => {
                content.push(byte);
                if content.ends_with(PASTE_END) {
                    content.truncate(content.len() - PASTE_END.len());
                    let key = match *is_oversized {
                        true => Key::OversizedPaste,
                        false => Key::Paste(with_plain_breaks(&String::from_utf8_lossy(content))),
                    };
                    self.state = State::Text(Vec::new());
                    return Some(key);
                }
                if content.len() > MOST {
                    *is_oversized = true;
                    content.drain(..content.len() - PASTE_END.len());
                }
                None
            }
        }
    }

    /// The keys that act wherever they are pressed.
    fn signal(&self, byte: u8) -> Option<Key> {
        let key = self.bindings.key(byte)?;
        matches!(key, Key::Interrupt | Key::Quit | Key::Suspend).then_some(key)
    }
}

fn moved(byte: u8) -> Option<Key> {
    match byte {
        b'A' => Some(Key::Earlier),
        b'B' => Some(Key::Later),
        b'C' => Some(Key::Right),
        b'D' => Some(Key::Left),
        b'H' => Some(Key::Home),
        b'F' => Some(Key::End),
        b'Z' => Some(Key::BackTab),
        _ => None,
    }
}

/// Terminals send the line breaks of a paste as carriage returns.
fn with_plain_breaks(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoder() -> Decoder {
        Decoder::new(Bindings::usual())
    }

    fn typed(text: &str) -> Vec<Key> {
        text.chars().map(Key::Char).collect()
    }

    #[test]
    fn text_of_any_language_is_decoded_however_it_is_split() {
        for text in ["ok", "Grüße", "日本語 👩", "a\tb"] {
            let keys: Vec<Key> = {
                let mut decoder = decoder();
                text.bytes().flat_map(|byte| decoder.decode(&[byte])).collect()
            };
            assert_eq!(keys, typed(text));
            assert_eq!(decoder().decode(text.as_bytes()), typed(text));
        }
        assert_eq!(decoder().decode(b"a\xffb"), typed("a\u{fffd}b"));
    }

    #[test]
    fn a_paste_is_content_with_any_bytes_and_any_split() {
        let bytes = b"x\x1b[200~a\rb\r\nc\x03\x1b[A\x04d\n\x1b[201~\r";
        let expected = [typed("x"), vec![Key::Paste("a\nb\nc\u{3}\u{1b}[A\u{4}d\n".into()), Key::Enter]].concat();
        assert_eq!(decoder().decode(bytes), expected);
        for size in 2..7 {
            let mut decoder = decoder();
            let keys: Vec<Key> = bytes.chunks(size).flat_map(|chunk| decoder.decode(chunk)).collect();
            assert_eq!(keys, expected, "{size}");
        }
    }

    #[test]
    fn ctrl_c_alone_ends_a_paste_whose_end_was_lost() {
        let mut decoder = decoder();
        assert_eq!(decoder.decode(b"\x1b[200~ab"), []);
        assert!(decoder.is_in_paste());
        assert_eq!(decoder.decode(b"\x03"), [Key::Interrupt]);
        assert_eq!(decoder.decode(b"a"), typed("a"));
    }

    #[test]
    fn a_paste_that_is_too_large_is_dropped_to_its_end() {
        let mut decoder = decoder();
        decoder.decode(b"\x1b[200~");
        decoder.decode(&vec![b'x'; MOST + 7]);
        assert_eq!(decoder.decode(b"\x1b[201~a"), [vec![Key::OversizedPaste], typed("a")].concat());
    }

    #[test]
    fn keys_that_mean_nothing_here_are_dropped_whole() {
        assert_eq!(decoder().decode(b"a\x1b[Eb\x1bOPc\x1b[1;5Ad\x1b[[Ae\x1bxf\x1b[<0;1;2M\x00\x0cg"), typed("abcdefg"));
        assert_eq!(
            decoder().decode(b"\x1bb\x1b[1;5C\x0b\x19"),
            [Key::WordLeft, Key::WordRight, Key::EraseRest, Key::InsertErased]
        );
        assert_eq!(
            decoder().decode(b"\x1b[D\x1bOC\x1b[3~\x1b[H\x1b[F\x1b[A\x1bOB\x1b\r\x1b[Z"),
            [
                Key::Left,
                Key::Right,
                Key::Delete,
                Key::Home,
                Key::End,
                Key::Earlier,
                Key::Later,
                Key::Break,
                Key::BackTab
            ]
        );
    }

    #[test]
    fn escape_is_a_key_only_where_no_byte_follows() {
        let mut decoder = decoder();
        assert_eq!(decoder.take_escape(), None);
        assert_eq!(decoder.decode(b"\x1b"), []);
        assert_eq!([decoder.take_escape(), decoder.take_escape()], [Some(Key::Escape), None]);
        assert_eq!(decoder.decode(b"[A"), typed("[A"));
        assert_eq!(decoder.decode(b"\x1b[A"), [Key::Earlier]);
        assert_eq!(decoder.take_escape(), None);
    }

    #[test]
    fn ctrl_c_acts_in_the_middle_of_a_sequence() {
        assert_eq!(decoder().decode(b"\x1b\x03"), [Key::Interrupt]);
        assert_eq!(decoder().decode(b"\x1b[1\x03a"), [vec![Key::Interrupt], typed("a")].concat());
    }
}
