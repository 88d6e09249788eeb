//! Table of faults: their names, values, requirements and one-line descriptions. A fault that is not in the table does
//! not exist. The files that use the variants of [`Fault`] implement the faults.

use std::time::Duration;

use toolgate::lab::message_flaws::Flaw;

use crate::options::{Era, Options, Transport};

/// A requested fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Fault {
    Hang(Moment),
    Slow(Moment, Duration),
    HangAtDiscover,
    HangAtInitialize,
    DiscoverBreaks(u64),
    DieAtDiscover,
    DieAtStart,
    NodeStack,
    UnknownVersion,
    AsksRoots,
    AsksInAList,
    EndlessCursor,
    GrowingCursor,
    PageSize(u64),
    MalformedTool,
    DuplicateTool,
    TaskOnlyTool,
    ManyTools(u64),
    ToolsChange,
    ToolsChangeSilently,
    ListFailsOtherwise,
    HangAtListen,
    ListenEnds,
    ListenBreaks,
    ProgressEvery(Duration),
    DieInCall,
    DieInAnswer,
    LateReply,
    WrongIds,
    StrayAnswers,
    ErrorWithoutMessage,
    ResultNull,
    IsError,
    BadOutput,
    BrokenContent,
    HugeResult(u64),
    HugeLineStructured(u64),
    Flawed(Flaw, Moment),
    PingFlood,
    RequestFlood,
    UnknownFlood,
    LogFlood,
    ProgressFlood,
    ChangeFlood,
    FloodAnswers(u64),
    FloodUnasked,
    StdoutGarbage,
    StdoutJsonNoise,
    StdoutBannerWithoutNewline,
    DuplicateReplies,
    ConnectionReset,
    LostSession(u64),
    LostSessionAtList,
    LostSessionWith200(u64),
    InitializedRefused(u64),
    RestartsInside(u64),
    StreamEnds,
    ResumeRefused(u64),
    ResumedAsJson,
    AnswersOnOneStream,
    Forks,
    NoToolsCapability,
    EmptyCursor,
    ProgressTokenAsText,
    LostStreams(u64),
    SessionsEndWith400,
    HttpError,
    ErrorIdNull,
    ErrorIdMissing,
    ErrorIdText,
    Http202(Moment),
    Http204(Moment),
    AnswersAsEvents,
    OddEvents,
    OddContentTypes,
    Http500(Moment),
    Http503RetryAfter(Moment),
    HttpHtml(Moment),
    NotJsonContentType(Moment),
    IgnoresStdin,
    IgnoresSigterm,
    SpawnsGrandchild,
    StderrFlood(u64),
    SecretsOnStderr,
    Elicits,
    ElicitsForever,
    ElicitsLate,
    ElicitsAndWithdraws(Duration),
    AsksSampling,
    AsksNothing,
    Task(u64),
    TaskInput,
    TaskFails,
    TaskForgotten,
    TaskApproval(u64),
    TaskDenied,
}

/// The moment of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// At the handshake: `initialize` or `server/discover`.
    Start,
    /// At `tools/list`.
    List,
    /// At `tools/call`, except for the witness `count`.
    Call,
}

/// All faults of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

/// A row of the table.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    only: Only,
    make: Make,
}

/// The requirements of a fault.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Only {
    Anywhere,
    Stdio,
    Http,
    LegacyHttp,
    Modern,
    ModernHttp,
}

/// How a fault is built from its value.
#[derive(Clone, Copy)]
enum Make {
    Plain(Fault),
    Seconds(fn(Duration) -> Fault, f64),
    Milliseconds(fn(Duration) -> Fault, u64),
    Number(&'static str, fn(u64) -> Fault, u64),
    At(fn(Moment) -> Fault),
    Flawed(Flaw),
}

impl Faults {
    /// Whether this fault was requested.
    pub(crate) fn has(&self, fault: &Fault) -> bool {
        self.0.contains(fault)
    }

    /// The first result of `say` over all faults.
    pub(crate) fn find<T>(&self, say: impl Fn(Fault) -> Option<T>) -> Option<T> {
        self.0.iter().copied().find_map(say)
    }

    /// The delay of answers at that moment.
    pub(crate) fn delay(&self, moment: Moment) -> Option<Duration> {
        self.find(|fault| if let Fault::Slow(when, time) = fault { (when == moment).then_some(time) } else { None })
    }

    /// How long after its question the server withdraws it.
    pub(crate) fn withdraws_after(&self) -> Option<Duration> {
        self.find(|fault| if let Fault::ElicitsAndWithdraws(time) = fault { Some(time) } else { None })
    }

    /// Adds the fault that is written `name` or `name=value`.
    pub(crate) fn add(&mut self, written: &str) -> Result<(), String> {
        let (name, value) = match written.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (written, None),
        };
        let Some(kind) = TABLE.iter().find(|kind| kind.name == name) else {
            return Err(format!("there is no fault `{name}`; --help lists them"));
        };
        self.0.push(kind.make.make(value).map_err(|expected| format!("`{written}`: {expected}"))?);
        Ok(())
    }

    /// The error if a fault does not work with these options.
    pub(crate) fn misplaced(options: &Options) -> Option<String> {
        let kinds = TABLE.iter().filter(|kind| options.faults.0.iter().any(|fault| kind.makes(fault)));
        let mut wrong = kinds.filter_map(|kind| Some((kind.name, kind.only.misses(options)?)));
        wrong.next().map(|(name, needs)| format!("`{name}` needs {needs}"))
    }
}

impl Kind {
    /// The name with its value.
    pub(crate) fn usage(&self) -> String {
        match self.make {
            Make::Plain(_) => self.name.to_owned(),
            Make::Seconds(..) => format!("{}[=SECONDS]", self.name),
            Make::Milliseconds(..) => format!("{}[=MS]", self.name),
            Make::Number(unit, ..) => format!("{}[={unit}]", self.name),
            Make::At(_) | Make::Flawed(_) => format!("{}[=start|list|call]", self.name),
        }
    }

    /// Whether the fault is of this kind, with any value.
    fn makes(&self, fault: &Fault) -> bool {
        let same = |own: Fault| std::mem::discriminant(&own) == std::mem::discriminant(fault);
        match (self.make, fault) {
            (Make::Plain(own), _) => own == *fault,
            (Make::Seconds(make, _), Fault::Slow(_, time)) => make(*time) == *fault,
            (Make::Seconds(make, _) | Make::Milliseconds(make, _), _) => same(make(Duration::ZERO)),
            (Make::Number(_, make, _), _) => same(make(0)),
            (Make::Flawed(own), fault) => matches!(fault, Fault::Flawed(flaw, _) if *flaw == own),
            (Make::At(make), _) => {
                [Moment::Start, Moment::List, Moment::Call].into_iter().any(|moment| make(moment) == *fault)
            }
        }
    }
}

impl Only {
    /// The missing requirement.
    fn misses(self, options: &Options) -> Option<&'static str> {
        let is_http = matches!(options.transport, Transport::Http { .. });
        match self {
            Self::Anywhere => None,
            Self::Stdio => is_http.then_some("stdio: leave out --http"),
            Self::Http => (!is_http).then_some("HTTP: add --http PORT"),
            Self::LegacyHttp => (!is_http || options.era == Era::Modern)
                .then_some("HTTP sessions: add --http PORT and --protocol-version 2025-11-25"),
            Self::Modern => (options.era == Era::Legacy).then_some("--protocol-version 2026-07-28 or both"),
            Self::ModernHttp => (!is_http || options.era == Era::Legacy)
                .then_some("HTTP: add --http PORT and --protocol-version 2026-07-28 or both"),
        }
    }
}

impl Make {
    fn make(self, value: Option<&str>) -> Result<Fault, &'static str> {
        const NUMBER: &str = "expected a whole number";
        let number = |default| value.map_or(Ok(default), |value| value.parse().map_err(|_| NUMBER));
        match self {
            Self::Plain(fault) => value.map_or(Ok(fault), |_| Err("it takes no value")),
            Self::Milliseconds(make, default) => Ok(make(Duration::from_millis(number(default)?))),
            Self::Number(_, make, default) => Ok(make(number(default)?)),
            Self::Seconds(make, default) => {
                let seconds: Result<f64, _> = value.map_or(Ok(default), str::parse);
                let time = seconds.ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                time.map(make).ok_or("expected seconds, such as 2 or 0.5")
            }
            Self::At(make) => moment(value).map(make),
            Self::Flawed(flaw) => Ok(Fault::Flawed(flaw, moment(value)?)),
        }
    }
}

fn moment(value: Option<&str>) -> Result<Moment, &'static str> {
    match value {
        Some("start") => Ok(Moment::Start),
        Some("list") => Ok(Moment::List),
        None | Some("call") => Ok(Moment::Call),
        Some(_) => Err("expected start, list or call"),
    }
}

/// A row: name, requirements, construction and description.
const fn kind(name: &'static str, only: Only, make: Make, help: &'static str) -> Kind {
    Kind { name, help, only, make }
}

/// The row of a flaw, which has its name and its description.
const fn flawed(flaw: Flaw, only: Only) -> Kind {
    kind(flaw.name(), only, Make::Flawed(flaw), flaw.effect())
}

/// Every fault, in the order of a connection.
#[rustfmt::skip]
pub(crate) const TABLE: &[Kind] = {
    use Make::{At, Milliseconds, Number, Plain, Seconds};
    use Only::{Anywhere, Http, LegacyHttp, Modern, ModernHttp, Stdio};
    &[
        kind("hang-at-start", Anywhere, Plain(Fault::Hang(Moment::Start)), "reads everything and never answers anything"),
        kind("slow-start", Anywhere, Seconds(|time| Fault::Slow(Moment::Start, time), 2.0), "reads nothing for that long (2)"),
        kind("die-at-start", Anywhere, Plain(Fault::DieAtStart), "gives a reason on stderr and exits with 3"),
        kind("hang-at-discover", Anywhere, Plain(Fault::HangAtDiscover), "is silent to server/discover, and to nothing else"),
        kind("discover-breaks", ModernHttp, Number("COUNT", Fault::DiscoverBreaks, 1), "breaks the connections of that many (1) server/discover"),
        kind("hang-at-initialize", Anywhere, Plain(Fault::HangAtInitialize), "is silent to initialize, and to nothing else"),
        kind("die-at-discover", Anywhere, Plain(Fault::DieAtDiscover), "exits with 1 when the first message is not initialize"),
        kind("node-stack", Anywhere, Plain(Fault::NodeStack), "exits with 1 as Node does: the reason, a long stack, its version"),
        kind("unknown-version", Anywhere, Plain(Fault::UnknownVersion), "agrees in initialize to a revision of 2099"),
        kind("forks", Stdio, Plain(Fault::Forks), "leaves a process behind that serves on its pipes, and exits with 0"),
        kind("initialized-refused", LegacyHttp, Number("STATUS", Fault::InitializedRefused, 404), "refuses its first notifications/initialized with that HTTP status (404) and forgets the session"),
        kind("asks-roots", Anywhere, Plain(Fault::AsksRoots), "asks for roots right after initialize (without sessions: in each call)"),
        kind("asks-in-a-list", Anywhere, Plain(Fault::AsksInAList), "sends a request whose params are a list right after initialize"),

        kind("no-tools-capability", Anywhere, Plain(Fault::NoToolsCapability), "has no tools, and no capability of that name"),
        kind("hang-at-list", Anywhere, Plain(Fault::Hang(Moment::List)), "never answers tools/list"),
        kind("slow-list", Anywhere, Seconds(|time| Fault::Slow(Moment::List, time), 2.0), "answers tools/list that late (2)"),
        kind("endless-cursor", Anywhere, Plain(Fault::EndlessCursor), "each page of tools has the same nextCursor"),
        kind("growing-cursor", Anywhere, Plain(Fault::GrowingCursor), "each page of tools has one more tool and a new nextCursor"),
        kind("page-size", Anywhere, Number("COUNT", Fault::PageSize, 50), "lists its tools in pages of that many (50); with 0 all pages are empty"),
        kind("empty-cursor", Anywhere, Plain(Fault::EmptyCursor), "the nextCursor of its first page is the empty text, under which it has one more tool"),
        kind("malformed-tool", Anywhere, Plain(Fault::MalformedTool), "three of its tools have no usable inputSchema"),
        kind("duplicate-tool", Anywhere, Plain(Fault::DuplicateTool), "lists echo twice, with different definitions"),
        kind("task-only-tool", Anywhere, Plain(Fault::TaskOnlyTool), "one more tool, whose execution.taskSupport is required"),
        kind("many-tools", Anywhere, Number("COUNT", Fault::ManyTools, 5000), "that many (5000) more tools, on one page"),
        kind("tools-change", Anywhere, Plain(Fault::ToolsChange), "after the first call mutant is another tool; 20 list_changed"),
        kind("tools-change-silently", Anywhere, Plain(Fault::ToolsChangeSilently), "the same, and nothing is announced"),
        kind("list-fails-otherwise", Anywhere, Plain(Fault::ListFailsOtherwise), "refuses tools/list, each time in other words"),
        kind("hang-at-listen", Modern, Plain(Fault::HangAtListen), "never acknowledges subscriptions/listen"),
        kind("listen-ends", Modern, Plain(Fault::ListenEnds), "ends each stream of changes as soon as it began"),
        kind("listen-breaks", ModernHttp, Plain(Fault::ListenBreaks), "breaks the connection of each stream of changes as soon"),

        kind("hang-at-call", Anywhere, Plain(Fault::Hang(Moment::Call)), "never answers tools/call"),
        kind("slow-call", Anywhere, Seconds(|time| Fault::Slow(Moment::Call, time), 2.0), "answers tools/call that late (2)"),
        kind("progress-every", Anywhere, Milliseconds(Fault::ProgressEvery, 100), "reports progress that often (100) in slow calls"),
        kind("progress-token-as-text", Anywhere, Plain(Fault::ProgressTokenAsText), "reports progress under its token as text"),
        kind("die-in-call", Anywhere, Plain(Fault::DieInCall), "gives a reason on stderr and exits with 4 in tools/call"),
        kind("die-in-answer", Stdio, Plain(Fault::DieInAnswer), "exits with 3 in the middle of the answer to a call"),
        kind("late-reply", Anywhere, Plain(Fault::LateReply), "answers a call only once it was cancelled"),
        kind("wrong-ids", Anywhere, Plain(Fault::WrongIds), "answers a call under ids that no request used"),
        kind("stray-answers", Stdio, Plain(Fault::StrayAnswers), "sends answers to no request and errors without an id before it answers a call"),
        kind("error-without-message", Anywhere, Plain(Fault::ErrorWithoutMessage), "answers a call with an error that is only a code"),
        kind("result-null", Anywhere, Plain(Fault::ResultNull), "answers a call with the result null"),
        kind("is-error", Anywhere, Plain(Fault::IsError), "answers a call with isError"),
        kind("bad-output", Anywhere, Plain(Fault::BadOutput), "add answers with what its outputSchema forbids"),
        kind("broken-content", Anywhere, Plain(Fault::BrokenContent), "adds content without text, without a type of media, without a type, and without base64 to the answer of a call"),
        kind("huge-result", Anywhere, Number("MIB", Fault::HugeResult, 20), "answers a call with that many MiB (20) of text"),
        kind("huge-line-structured", Anywhere, Number("MIB", Fault::HugeLineStructured, 20), "the same twice: as text and as structuredContent"),

        flawed(Flaw::LoneSurrogate, Anywhere),
        flawed(Flaw::Latin1, Anywhere),
        flawed(Flaw::Nan, Anywhere),
        flawed(Flaw::LargeNumber, Anywhere),
        flawed(Flaw::DeepNesting, Anywhere),
        flawed(Flaw::ResultAndError, Anywhere),
        flawed(Flaw::ByteOrderMark, Anywhere),
        flawed(Flaw::Indented, Anywhere),
        flawed(Flaw::Batch, Anywhere),
        flawed(Flaw::SecondMessage, Anywhere),
        flawed(Flaw::Truncated, Anywhere),
        flawed(Flaw::TextId, Anywhere),
        flawed(Flaw::NoVersion, Anywhere),
        flawed(Flaw::DuplicateKeys, Anywhere),
        flawed(Flaw::NoId, Anywhere),
        flawed(Flaw::IdOnly, Anywhere),
        flawed(Flaw::ErrorNull, Anywhere),
        flawed(Flaw::UnknownResultType, Modern),
        flawed(Flaw::Utf16, Anywhere),
        flawed(Flaw::BehindLogPrefix, Anywhere),
        flawed(Flaw::NoLineFeed, Stdio),
        kind("ping-flood", Anywhere, Plain(Fault::PingFlood), "a call sends pings without end and reads nothing any more"),
        kind("request-flood", Anywhere, Plain(Fault::RequestFlood), "the same with requests for roots"),
        kind("unknown-flood", Anywhere, Plain(Fault::UnknownFlood), "the same with requests that no client knows"),
        kind("log-flood", Anywhere, Plain(Fault::LogFlood), "the same with log messages"),
        kind("progress-flood", Anywhere, Plain(Fault::ProgressFlood), "the same with progress"),
        kind("change-flood", Anywhere, Plain(Fault::ChangeFlood), "the same with list_changed"),
        kind("flood-answers", Anywhere, Number("COUNT", Fault::FloodAnswers, 5000), "a flood leaves time to read; after that many (5000) messages the call is answered"),
        kind("flood-unasked", LegacyHttp, Plain(Fault::FloodUnasked), "a flood comes on the stream of the session instead of the call's"),

        kind("stdout-garbage", Stdio, Plain(Fault::StdoutGarbage), "logs to stdout: at start, when it receives a message and before it sends one"),
        kind("stdout-json-noise", Stdio, Plain(Fault::StdoutJsonNoise), "the same as JSON that is no JSON-RPC"),
        kind("stdout-banner-without-newline", Stdio, Plain(Fault::StdoutBannerWithoutNewline), "its first message stands behind a banner, on the same line"),
        kind("duplicate-replies", Anywhere, Plain(Fault::DuplicateReplies), "sends every answer twice"),
        kind("connection-reset", Anywhere, Plain(Fault::ConnectionReset), "breaks the connection in a call and keeps running"),

        kind("lost-session", LegacyHttp, Number("CALLS", Fault::LostSession, 2), "forgets its sessions once, after that many (2) calls"),
        kind("lost-session-at-list", LegacyHttp, Plain(Fault::LostSessionAtList), "forgets its sessions once, at the first tools/list"),
        kind("lost-streams", LegacyHttp, Number("CALLS", Fault::LostStreams, 2), "the same, and breaks off all answers under way, as a restart does"),
        kind("lost-session-with-200", LegacyHttp, Number("CALLS", Fault::LostSessionWith200, 2), "the same after that many (2) calls, and answers requests of unknown sessions with HTTP 200 and an event that is no message"),
        kind("restarts-inside", Anywhere, Number("CALLS", Fault::RestartsInside, 2), "after that many (2) calls it refuses everything but initialize, as a server that was restarted behind its command"),
        kind("answers-on-one-stream", Http, Plain(Fault::AnswersOnOneStream), "sends all answers on the response of the newest request, and ends no response while another one is open"),
        kind("stream-ends", LegacyHttp, Plain(Fault::StreamEnds), "ends the stream of a call behind an id and `retry: 0`, and each stream that resumes it"),
        kind("resume-refused", LegacyHttp, Number("STATUS", Fault::ResumeRefused, 401), "ends the stream of a call behind an id, and refuses to resume it with that HTTP status (401)"),
        kind("resumed-as-json", LegacyHttp, Plain(Fault::ResumedAsJson), "ends the stream of a call behind an id, and resumes it with JSON that is no message"),
        kind("sessions-end-with-400", LegacyHttp, Plain(Fault::SessionsEndWith400), "refuses unknown sessions with HTTP 400 instead of 404"),
        kind("http-error", Http, Plain(Fault::HttpError), "refuses a call with HTTP 400 and a JSON-RPC error"),
        kind("error-id-null", Http, Plain(Fault::ErrorIdNull), "the id of errors that go with an HTTP status is null"),
        kind("error-id-missing", Http, Plain(Fault::ErrorIdMissing), "the same without an id"),
        kind("error-id-text", Http, Plain(Fault::ErrorIdText), "the same with the id `server-error`"),
        kind("http-202", Http, At(Fault::Http202), "answers with HTTP 202 and nothing"),
        kind("http-204", Http, At(Fault::Http204), "answers with HTTP 204 and nothing"),
        kind("answers-as-events", Http, Plain(Fault::AnswersAsEvents), "answers with event streams only"),
        kind("odd-events", Http, Plain(Fault::OddEvents), "the same, with all that the standard of event streams allows"),
        kind("odd-content-types", Http, Plain(Fault::OddContentTypes), "content types in capitals and with parameters"),
        kind("http-500", Http, At(Fault::Http500), "answers with HTTP 500"),
        kind("http-503-retry-after", Http, At(Fault::Http503RetryAfter), "answers with HTTP 503 and Retry-After: 7"),
        kind("http-html", Http, At(Fault::HttpHtml), "answers with HTTP 200 and a web page"),
        kind("not-json-content-type", Http, At(Fault::NotJsonContentType), "answers with the right JSON, called text/plain"),

        kind("ignores-stdin", Stdio, Plain(Fault::IgnoresStdin), "keeps running when stdin ends, for ten minutes"),
        kind("ignores-sigterm", Anywhere, Plain(Fault::IgnoresSigterm), "ignores SIGTERM too; only SIGKILL ends it before that"),
        kind("spawns-grandchild", Anywhere, Plain(Fault::SpawnsGrandchild), "starts a process that ignores both and holds stderr open"),
        kind("stderr-flood", Anywhere, Number("MIB", Fault::StderrFlood, 8), "writes that many MiB (8) to stderr at start and in each call"),
        kind("secrets-on-stderr", Anywhere, Plain(Fault::SecretsOnStderr), "writes its environment to stderr at start"),

        kind("elicits", Anywhere, Plain(Fault::Elicits), "asks for a name in each call, and answers once it has one"),
        kind("elicits-forever", Anywhere, Plain(Fault::ElicitsForever), "asks again after every answer"),
        kind("elicits-late", Anywhere, Plain(Fault::ElicitsLate), "executes each call, then asks for a name before it answers"),
        kind("elicits-and-withdraws", Anywhere, Milliseconds(Fault::ElicitsAndWithdraws, 200), "asks for a name in each call, withdraws the question that much later (200), and answers 0.5 s after that"),
        kind("asks-sampling", Anywhere, Plain(Fault::AsksSampling), "asks for a completion in each call"),
        kind("asks-nothing", Modern, Plain(Fault::AsksNothing), "wants each call again and again, without a question"),

        kind("task", Modern, Number("POLLS", Fault::Task, 2), "a call becomes a task that works for that many (2) polls"),
        kind("task-input", Modern, Plain(Fault::TaskInput), "a call becomes a task that asks for a name"),
        kind("task-fails", Modern, Plain(Fault::TaskFails), "a call becomes a task that fails"),
        kind("task-forgotten", Modern, Plain(Fault::TaskForgotten), "a call becomes a task that is unknown later"),
        kind("task-approval", Modern, Number("POLLS", Fault::TaskApproval, 2), "a call becomes a task that waits that many (2) polls for an approval, and is then executed (SEP-2848)"),
        kind("task-denied", Modern, Plain(Fault::TaskDenied), "the same with an approval that is denied: the call is not executed"),
    ]
};
