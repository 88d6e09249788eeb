//! Trace waterfall of a run: one line per span, a separate time axis per execution, and the waiting time between
//! executions. Time spent waiting for people and applications belongs to no span.

use jiff::Timestamp;

use super::{DisplaySettings, clock};
use crate::cli::paint::Paint;
use crate::cli::text::{count, duration, one_line};
use crate::core::trace::TraceId;
use crate::telemetry::spans::{Span, Status, names};

/// The columns of a span's duration.
const TOOK: usize = 12;

/// The columns of the remark, if the terminal is wide enough.
const REMARK: usize = 22;

/// The minimum columns of the time axis.
const LEAST_BAR: usize = 24;

/// The spans of a run, by execution.
#[derive(Debug)]
pub(in crate::cli) struct Waterfall {
    executions: Vec<Execution>,
    /// Whether the last execution is still running according to its journal.
    goes_on: bool,
}

/// A trace: its root span and the other spans, sorted by start time.
#[derive(Debug)]
struct Execution {
    root: Span,
    below: Vec<Span>,
}

/// The widths of the columns.
#[derive(Clone, Copy)]
struct Columns {
    label: usize,
    bar: usize,
    remark: usize,
}

/// The painting of spans.
#[derive(Clone, Copy)]
struct SpanColors {
    paint: Paint,
    /// Whether unfinished spans are still running.
    goes_on: bool,
}

/// The time range of the bar columns.
#[derive(Clone, Copy)]
struct Axis {
    start: Timestamp,
    micros: u128,
}

impl Waterfall {
    /// Groups spans into executions, sorted by start time.
    pub(in crate::cli) fn new(spans: Vec<Span>) -> Self {
        let is_root = |span: &Span| span.parent.is_none_or(|parent| parent.remote);
        let (roots, mut children): (Vec<Span>, Vec<Span>) = spans.into_iter().partition(is_root);
        children.sort_by_key(|span| (span.start, span.end));
        let mut executions: Vec<Execution> =
            roots.into_iter().map(|root| Execution { root, below: Vec::new() }).collect();
        executions.sort_by_key(|execution| execution.root.start);
        for child in children {
            let of = |trace: TraceId| move |execution: &&mut Execution| execution.root.trace == trace;
            if let Some(execution) = executions.iter_mut().find(of(child.trace)) {
                execution.below.push(child);
            }
        }
        Self { executions, goes_on: false }
    }

    /// Marks the run as running, not pending or ended: unfinished spans are shown as under way.
    pub(in crate::cli) fn unfinished(self) -> Self {
        Self { goes_on: true, ..self }
    }

    /// The lines of the waterfall, one per span.
    pub(in crate::cli) fn draw(&self, look: DisplaySettings) -> Vec<String> {
        let columns = self.columns(look.width);
        let mut lines = Vec::new();
        for (index, execution) in self.executions.iter().enumerate() {
            if let Some(before) = index.checked_sub(1).and_then(|before| self.executions.get(before)) {
                lines.push(between(&before.root, &execution.root, look.paint));
            }
            let goes_on = self.goes_on && index + 1 == self.executions.len();
            lines.extend(execution.draw(
                columns,
                (index + 1, self.executions.len()),
                SpanColors { paint: look.paint, goes_on },
            ));
        }
        lines
    }

    fn columns(&self, width: usize) -> Columns {
        let spans =
            || self.executions.iter().flat_map(|execution| std::iter::once(&execution.root).chain(&execution.below));
        let has_remarks =
            spans().any(|span| remark(span, SpanColors { paint: Paint::Plain, goes_on: false }).is_some());
        let remark = if has_remarks && width >= 80 { REMARK } else { 0 };
        let room = width.saturating_sub(1 + TOOK + remark);
        let longest = spans().map(|span| name(span).chars().count() + 2).max().unwrap_or_default();
        let label = longest.clamp(12, room.saturating_sub(LEAST_BAR).max(12));
        Columns { label, bar: room.saturating_sub(label).max(8), remark }
    }
}

impl Execution {
    fn draw(&self, columns: Columns, (number, all): (usize, usize), inks: SpanColors) -> Vec<String> {
        let Span { trace, start, .. } = &self.root;
        let which = if all > 1 { format!("execution {number} of {all} · ") } else { String::new() };
        let spans = count(self.below.len() + 1, "span");
        let mut lines = vec![format!("{which}{} · {spans} · trace {trace}", clock(*start))];
        let axis = Axis::new(&self.root);
        lines.push(line("", &self.root, axis, columns, inks));
        for (index, span) in self.below.iter().enumerate() {
            let branch = if index + 1 == self.below.len() { "└ " } else { "├ " };
            lines.push(line(branch, span, axis, columns, inks));
        }
        lines
    }
}

impl SpanColors {
    fn is_under_way(self, span: &Span) -> bool {
        self.goes_on && span.text(names::ERROR_TYPE) == Some("interrupted")
    }

    fn has_failed(self, span: &Span) -> bool {
        matches!(span.status, Status::Error(_)) && !self.is_under_way(span)
    }
}

impl Axis {
    fn new(root: &Span) -> Self {
        Self { start: root.start, micros: micros(root.start, root.end).max(1) }
    }

    /// The offset and width of a span's bar: at least one column, within `width`.
    fn place(self, span: &Span, width: usize) -> (usize, usize) {
        let column = |at: Timestamp| {
            let share = micros(self.start, at).min(self.micros) * width as u128 / self.micros;
            usize::try_from(share).unwrap_or(width)
        };
        let from = column(span.start).min(width.saturating_sub(1));
        (from, column(span.end).max(from + 1) - from)
    }
}

fn line(branch: &str, span: &Span, axis: Axis, columns: Columns, inks: SpanColors) -> String {
    // Without room for remarks, the label marks a failure.
    let mark = if columns.remark == 0 && inks.has_failed(span) { "✗ " } else { "" };
    let name = one_line(&format!("{mark}{}", name(span)), columns.label - branch.chars().count());
    let label = format!("{:columns$}", format!("{branch}{name}"), columns = columns.label);
    let (before, long) = axis.place(span, columns.bar);
    let bar = painted(span, inks, &"█".repeat(long));
    let took = duration(u64::try_from(micros(span.start, span.end) / 1000).unwrap_or(u64::MAX));
    let after = columns.bar - before - long;
    let line = format!("{label} {}{bar}{}{took:>TOOK$}", " ".repeat(before), " ".repeat(after));
    match remark(span, inks).filter(|_| columns.remark > 0) {
        Some(remark) => format!("{line}  {remark}"),
        None => line,
    }
}

/// The label of a span. The prefix `execute_tool` is omitted to leave room for the tool name.
fn name(span: &Span) -> &str {
    span.name.strip_prefix("execute_tool ").unwrap_or(&span.name)
}

/// A bar in the color of the span kind; failed spans are red.
fn painted(span: &Span, inks: SpanColors, bar: &str) -> String {
    let paint = inks.paint;
    if inks.has_failed(span) {
        return paint.red(bar);
    }
    match span.text(names::SPAN_KIND) {
        Some("LLM") => paint.cyan(bar),
        Some("TOOL") => paint.green(bar),
        Some("GUARDRAIL") => paint.yellow(bar),
        Some(_) | None => paint.dim(bar),
    }
}

/// The remark: the failure, the usage or the waiting time.
fn remark(span: &Span, inks: SpanColors) -> Option<String> {
    let (room, paint) = (REMARK - 2, inks.paint);
    if inks.is_under_way(span) {
        return Some(paint.yellow("… under way"));
    }
    if inks.has_failed(span) {
        let word = span.text(names::ERROR_TYPE).unwrap_or("failed");
        return Some(paint.red(one_line(&format!("✗ {word}"), room)));
    }
    if let Some(reason) = span.text(names::TOOL_SUSPENDED) {
        return Some(paint.yellow(one_line(reason, room)));
    }
    // The waiting time of the whole run is shown between the executions.
    if let Some(waited) = span.int(names::WAIT_MS).filter(|_| span.text(names::SPAN_KIND) != Some("AGENT")) {
        let waited = duration(u64::try_from(waited).unwrap_or_default());
        return Some(paint.yellow(one_line(&format!("waited {waited}"), room)));
    }
    if let Some(tools) = span.int(names::LISTED_TOOLS) {
        let tools = count(usize::try_from(tools).unwrap_or_default(), "tool");
        return Some(paint.dim(one_line(&tools, room)));
    }
    let tokens = (span.int(names::TOKENS_PROMPT), span.int(names::TOKENS_COMPLETION));
    let (Some(prompt), Some(completion)) = tokens else { return None };
    Some(paint.dim(one_line(&format!("{prompt} → {completion} tokens"), room)))
}

/// The line between two executions.
fn between(before: &Span, next: &Span, paint: Paint) -> String {
    let gap = duration(u64::try_from(micros(before.end, next.start) / 1000).unwrap_or(u64::MAX));
    let is_paused = next.events.iter().any(|event| event.name == "execution.unpaused");
    let what = match before.text(names::RUN_OUTCOME) {
        Some("pending") if is_paused => format!("· paused for {gap}"),
        Some("pending") => format!("· waited {gap} for an answer"),
        Some(_) | None => format!("· {gap} until it was resumed"),
    };
    paint.yellow(what)
}

fn micros(from: Timestamp, to: Timestamp) -> u128 {
    u128::try_from(to.duration_since(from).as_micros()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::trace::SpanId;
    use crate::telemetry::spans::{Kind, Parent, SpanEvent, Value};

    /// A span of `trace` with start and end in milliseconds; the root has number 0.
    fn span(trace: u8, number: u8, name: &str, (start, end): (i64, i64)) -> Span {
        let at = |ms: i64| Timestamp::from_millisecond(ms).unwrap();
        Span {
            trace: TraceId([trace; 16]),
            id: SpanId([number; 8]),
            parent: (number > 0).then_some(Parent { id: SpanId([0; 8]), remote: false }),
            state: None,
            links: Vec::new(),
            seq: 0,
            name: name.to_owned(),
            kind: Kind::Internal,
            start: at(start),
            end: at(end),
            status: Status::Ok,
            attributes: Vec::new(),
            events: Vec::new(),
        }
    }

    fn saying(span: Span, attributes: &[(&'static str, Value)]) -> Span {
        let attributes = attributes.iter().map(|(name, value)| ((*name).into(), value.clone())).collect();
        Span { attributes, ..span }
    }

    fn drawn(spans: Vec<Span>, width: usize) -> Vec<String> {
        Waterfall::new(spans).draw(DisplaySettings { paint: Paint::Plain, width })
    }

    #[test]
    fn each_execution_has_its_own_axis_and_gaps_are_shown_between() {
        let pending = [(names::RUN_OUTCOME, Value::Text("pending".into()))];
        let tokens = [(names::TOKENS_PROMPT, Value::Int(812)), (names::TOKENS_COMPLETION, Value::Int(34))];
        let failed = saying(
            span(2, 1, "execute_tool x", (61_000, 62_000)),
            &[(names::ERROR_TYPE, Value::Text("timeout".into()))],
        );
        let spans = vec![
            saying(span(1, 1, "chat m", (0, 500)), &tokens),
            saying(span(1, 0, "invoke_agent a", (0, 1_000)), &pending),
            Span { status: Status::Error("late".into()), ..failed },
            span(2, 0, "invoke_agent a", (61_000, 62_000)),
        ];
        assert_eq!(
            drawn(spans, 80),
            [
                "execution 1 of 2 · 1970-01-01 00:00:00 UTC · 2 spans · trace 01010101010101010101010101010101",
                "invoke_agent a   █████████████████████████████       1.0 s",
                "└ chat m         ██████████████                     500 ms  812 → 34 tokens",
                "· waited 1 min 0 s for an answer",
                "execution 2 of 2 · 1970-01-01 00:01:01 UTC · 2 spans · trace 02020202020202020202020202020202",
                "invoke_agent a   █████████████████████████████       1.0 s",
                "└ x              █████████████████████████████       1.0 s  ✗ timeout",
            ]
        );
    }

    #[test]
    fn the_gap_of_a_pause_is_not_called_a_wait_for_an_answer() {
        let pending = [(names::RUN_OUTCOME, Value::Text("pending".into()))];
        let unpaused = SpanEvent { name: "execution.unpaused", at: Timestamp::UNIX_EPOCH, attributes: Vec::new() };
        let spans = vec![
            saying(span(1, 0, "invoke_agent a", (0, 1_000)), &pending),
            Span { events: vec![unpaused], ..span(2, 0, "invoke_agent a", (61_000, 62_000)) },
        ];
        let lines = drawn(spans, 80);
        assert!(lines.contains(&"· paused for 1 min 0 s".to_owned()), "{lines:#?}");
    }

    #[test]
    fn waits_and_listings_are_shown_beside_the_bar() {
        let kind = |kind: &'static str| (names::SPAN_KIND, Value::Text(kind.into()));
        let listed = [kind("CHAIN"), (names::LISTED_TOOLS, Value::Int(2))];
        let asked = [kind("GUARDRAIL"), (names::WAIT_MS, Value::Int(61_000))];
        let spans = vec![
            saying(span(1, 0, "invoke_agent a", (0, 1_000)), &[kind("AGENT"), (names::WAIT_MS, Value::Int(61_000))]),
            saying(span(1, 1, "tools/list", (0, 500)), &listed),
            saying(span(1, 2, "approval", (600, 600)), &asked),
        ];
        let lines = drawn(spans, 80);
        assert!(lines[1].ends_with("1.0 s"), "the root's own wait is told between executions: {lines:#?}");
        assert!(lines[2].ends_with("500 ms  2 tools") && lines[3].ends_with("0 ms  waited 1 min 1 s"), "{lines:#?}");
    }

    #[test]
    fn narrow_bars_mark_failures_but_not_unfinished_spans() {
        let failing = |word: &'static str| {
            let root =
                saying(span(1, 0, "invoke_agent a", (0, 1_000)), &[(names::ERROR_TYPE, Value::Text(word.into()))]);
            Span { status: Status::Error("cut short".into()), ..root }
        };
        assert!(drawn(vec![failing("timeout")], 60)[1].starts_with("✗ invoke_agent"));
        let look = DisplaySettings { paint: Paint::Plain, width: 100 };
        let lines = Waterfall::new(vec![failing("interrupted")]).unfinished().draw(look);
        assert!(lines[1].ends_with("… under way"), "{lines:#?}");
        let lines = Waterfall::new(vec![failing("interrupted")]).draw(look);
        assert!(lines[1].ends_with("✗ interrupted"), "{lines:#?}");
    }

    #[test]
    fn short_spans_are_visible_and_no_line_exceeds_the_terminal() {
        for width in [40, 60, 79, 80, 200] {
            let spans = vec![
                span(1, 0, "invoke_agent with quite a long name indeed", (0, 1_000_000)),
                span(1, 1, "approval", (1_000_000, 1_000_000)),
                span(1, 2, "execute_tool mcp_server_with_a_long_name", (0, 1)),
            ];
            let lines = drawn(spans, width);
            assert!(lines[1..].iter().all(|line| line.chars().count() <= width), "{width}: {lines:#?}");
            assert!(lines[1..].iter().all(|line| line.contains('█')), "{width}: {lines:#?}");
        }
    }

    #[test]
    fn a_run_without_duration_is_drawn() {
        let lines = drawn(vec![span(1, 0, "invoke_agent a", (5, 5))], 60);
        assert!(lines[1].contains("█") && lines[1].ends_with("0 ms"), "{lines:#?}");
    }
}
