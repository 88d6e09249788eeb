//! Streamed text of the live view: fragments of the model's text and reasoning, and the progress of calls.

use super::{AnswerPlacement, GUTTER, LiveOutput, LiveView, Stream};
use crate::cli::view::words::in_words;
use crate::core::lifecycle::Delta;

impl LiveView {
    /// Whether the last line is unfinished.
    fn is_mid_line(&self) -> bool {
        self.streaming.is_some()
    }

    /// The temporary lines of the streamed text; `None` if its last line cannot be replaced.
    pub(in crate::cli) fn unfinished(&self) -> Option<&[String]> {
        (self.typesetter.is_some() || !self.is_mid_line()).then_some(self.unfinished.as_slice())
    }

    /// Ends an unfinished line, if there is one.
    pub(in crate::cli) fn end_of_stream(&mut self) -> Vec<LiveOutput> {
        let Some(ended) = self.streaming.take() else { return Vec::new() };
        self.unfinished.clear();
        let Some(typesetter) = &mut self.typesetter else { return vec![LiveOutput::Line(String::new())] };
        let lines = match ended {
            Stream::Text => typesetter.end(),
            Stream::Reasoning => vec![typesetter.end_reasoning()],
        };
        lines.into_iter().map(in_gutter).collect()
    }

    /// The output for a fragment.
    pub(super) fn fragment(&mut self, delta: &Delta) -> Vec<LiveOutput> {
        if self.answer == AnswerPlacement::Apart {
            return Vec::new();
        }
        match delta {
            Delta::Text { text } => self.stream(Stream::Text, text),
            Delta::Reasoning { text } => self.stream(Stream::Reasoning, text),
            Delta::Progress { call, progress } => {
                let mut shown = self.end_of_stream();
                let name = self.executing.get(call).map(|call| format!("{}: ", call.tool_name)).unwrap_or_default();
                shown.push(LiveOutput::Line(self.look.paint.dim(format!("    … {name}{}", in_words(progress)))));
                shown
            }
        }
    }

    fn stream(&mut self, stream: Stream, text: &str) -> Vec<LiveOutput> {
        let mut shown = if self.streaming == Some(stream) { Vec::new() } else { self.end_of_stream() };
        let mark = if self.streaming.is_none() { GUTTER } else { "" };
        self.streaming = Some(stream);
        if let Some(typesetter) = &mut self.typesetter {
            let unfinished = match stream {
                Stream::Text => {
                    self.streamed = true;
                    shown.extend(typesetter.push(text).into_iter().map(in_gutter));
                    typesetter.unfinished()
                }
                Stream::Reasoning => vec![typesetter.push_reasoning(text)],
            };
            self.unfinished = unfinished.into_iter().map(|line| format!("{GUTTER}{line}")).collect();
            return shown;
        }
        let text = format!("{mark}{}", text.replace('\n', &format!("\n{GUTTER}")));
        shown.push(LiveOutput::Fragment(match stream {
            Stream::Text => {
                self.streamed = true;
                text
            }
            Stream::Reasoning => self.look.paint.dim(text),
        }));
        shown
    }
}

fn in_gutter(line: String) -> LiveOutput {
    LiveOutput::Line(format!("{GUTTER}{line}"))
}
