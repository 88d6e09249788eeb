//! The messages among what a child writes to stdout. Lines that are no JSON-RPC are noted and left out: the SDK would
//! skip some of them in silence, and answer others with errors that the child never asked for.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use super::envelope::{self, Line};
use super::noise::Noise;

const CHUNK: usize = 16 * 1024;
/// How much of a line is looked at. What is longer and begins like an object is taken for a message.
const LOOKED_AT: usize = 64 * 1024;

/// A stream of the messages alone.
#[derive(Debug)]
pub(in crate::mcp) struct Messages<R> {
    inner: R,
    chunk: Box<[u8]>,
    sorter: Sorter,
    handed_on: usize,
    ended: bool,
}

impl<R> Messages<R> {
    /// Of this stream; what is none goes to `noise`.
    pub(super) fn among(inner: R, noise: Noise) -> Self {
        let sorter = Sorter { noise, kind: Kind::Undecided, line: Vec::new(), messages: Vec::new() };
        Self { inner, chunk: vec![0; CHUNK].into(), sorter, handed_on: 0, ended: false }
    }

    fn hand_on(&mut self, buf: &mut ReadBuf<'_>) {
        let left = self.sorter.messages.get(self.handed_on..).unwrap_or_default();
        let fits = left.len().min(buf.remaining());
        buf.put_slice(left.get(..fits).unwrap_or_default());
        self.handed_on += fits;
        if self.handed_on == self.sorter.messages.len() {
            self.sorter.messages.clear();
            self.handed_on = 0;
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Messages<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.sorter.messages.is_empty() && !this.ended {
            let mut chunk = ReadBuf::new(&mut this.chunk);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut chunk))?;
            if chunk.filled().is_empty() {
                this.ended = true;
                this.sorter.finish();
            } else {
                this.sorter.sort(chunk.filled());
            }
        }
        this.hand_on(buf);
        Poll::Ready(Ok(()))
    }
}

/// Tells messages and noise apart, line by line.
#[derive(Debug)]
struct Sorter {
    noise: Noise,
    /// What the line is that is being read.
    kind: Kind,
    /// Its beginning, while that is not known.
    line: Vec<u8>,
    /// What is to be handed on.
    messages: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Undecided,
    Message,
    Noise,
}

impl Sorter {
    fn sort(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let is_end = piece.ends_with(b"\n");
            match self.kind {
                Kind::Undecided => {
                    self.line.extend_from_slice(piece);
                    if is_end {
                        self.decide(envelope::read);
                    } else if self.line.len() > LOOKED_AT {
                        self.decide(|line| match envelope::begins_like_one(line) {
                            true => Line::Message,
                            false => Line::Noise,
                        });
                    }
                }
                Kind::Message => self.messages.extend_from_slice(piece),
                Kind::Noise => {}
            }
            if is_end {
                self.kind = Kind::Undecided;
            }
        }
    }

    /// The stream is over. What began like a message and was never finished cannot be read by anybody.
    fn finish(&mut self) {
        self.decide(|_| Line::Noise);
    }

    fn decide(&mut self, read: fn(&[u8]) -> Line) {
        let line = self.line.trim_ascii();
        self.kind = match read(line) {
            Line::Message => {
                self.messages.extend_from_slice(&self.line);
                Kind::Message
            }
            Line::Mended(mended) => {
                self.messages.extend_from_slice(mended.as_bytes());
                Kind::Message
            }
            Line::Noise => {
                if !line.is_empty() {
                    self.noise.note(line);
                }
                Kind::Noise
            }
        };
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokio::io::AsyncReadExt;

    use super::*;

    const PING: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";

    /// What is handed on and what is noted of a stream that arrives in pieces of this size.
    async fn sorted(bytes: &[u8], piece: usize) -> (String, Vec<String>, u64) {
        let noise = Noise::default();
        let (mut writer, reader) = tokio::io::duplex(piece);
        let mut messages = Messages::among(reader, noise.clone());
        let write = async {
            tokio::io::AsyncWriteExt::write_all(&mut writer, bytes).await.expect("written");
            drop(writer);
        };
        let mut passed = String::new();
        let (read, ()) = tokio::join!(messages.read_to_string(&mut passed), write);
        read.expect("read");
        let heard = noise.heard();
        (passed, heard.first, heard.lines)
    }

    #[tokio::test]
    async fn messages_pass_and_everything_else_is_noted() {
        let logged = r#"{"level":"info","msg":"\"jsonrpc\""}"#;
        let stream =
            format!("Listening on 3000\r\n{PING}\n  \n{logged}\n[]\n{{\n{PING}{{\"jsonrpc\":\"2.0\",\"id\":2,");
        for piece in [1, 7, 4096] {
            let (passed, noise, lines) = sorted(stream.as_bytes(), piece).await;
            assert_eq!(passed, format!("{PING}{PING}"));
            let unfinished = r#"{"jsonrpc":"2.0","id":2,"#;
            assert_eq!(noise, ["Listening on 3000", logged, "[]", "{", unfinished]);
            assert_eq!(lines, 5);
        }
    }

    #[tokio::test]
    async fn a_large_message_passes_whole_and_endless_noise_is_not_kept() {
        let large = format!("{{\"result\":\"{}\",\"id\":1,\"jsonrpc\":\"2.0\"}}\n", "x".repeat(3 * LOOKED_AT));
        let stream = format!("{large}{}\n{PING}", "y".repeat(3 * LOOKED_AT));
        let (passed, noise, lines) = sorted(stream.as_bytes(), 10_000).await;
        assert_eq!(passed, format!("{large}{PING}"));
        assert_eq!((noise, lines), (vec![format!("{}...", "y".repeat(200))], 1));
    }

    proptest! {
        /// However a stream is cut into pieces, the same comes out of it.
        #[test]
        fn cuts_do_not_matter(lines in proptest::collection::vec("(\\{\"jsonrpc\":1\\}|[a-z\\{\" é]{0,9})", 0..8), cut in 1usize..40) {
            let stream = lines.join("\n");
            let sort = |piece: usize| {
                let mut sorter =
                    Sorter { noise: Noise::default(), kind: Kind::Undecided, line: Vec::new(), messages: Vec::new() };
                stream.as_bytes().chunks(piece).for_each(|chunk| sorter.sort(chunk));
                sorter.finish();
                (sorter.messages, sorter.noise.heard())
            };
            prop_assert_eq!(sort(cut), sort(usize::MAX));
        }
    }
}
