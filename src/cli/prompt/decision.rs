//! Approval prompt: one key decides about a call that requires approval, or about all that remain.

use std::io;

use super::console::Console;
use super::grant_choice::LikelyGrant;
use super::{AskedItem, CallRecord, Prompt, Reply, changed_before};
use crate::cli::answers::{approval, denial};
use crate::cli::argument_lines::EarlierChange;
use crate::cli::text::{COMPACT, arguments_line, count};
use crate::cli::view;
use crate::cli::wrap::visible_width;
use crate::core::id::CallId;
use crate::core::run::{Answer, Channel, Coverage, Decision, DecisionKind, PendingCall, PendingItem, Scope};
use crate::core::tool::escape_untrusted;
use crate::core::tool::file_change::changed_file;

/// Help text for the keys that are offered.
fn keys(asked: &AskedItem, likely: Option<&LikelyGrant>) -> String {
    let is_wide = !may_be_denied(&asked.item);
    let texts = [
        (true, "    a  this call runs, once (as does y)"),
        (
            !asked.further.is_empty(),
            "    r  so do this call and those after it that require approval; you see all of them before",
        ),
        (true, "    d  it does not run; the model reads why (as with n)"),
        (
            true,
            "    x  it does not run, and the run is cancelled: what is done is kept, and no further call is sent, approved \
             or not",
        ),
        (true, "    e  it runs with other arguments, which you type"),
        (asked.place.has_previous, "    b  the item before it is asked about again"),
        (
            true,
            "    q  it is left as it is, and `toolgate resume` asks again; so does Esc. Ctrl-C leaves all that are left, \
             and starts nothing",
        ),
        (true, "  This call and, from now on:"),
        (likely.is_some(), "    g  in this session, commands like it, as the line says"),
        (true, "    o  the same call, with these very arguments"),
        (
            is_wide,
            "    l  calls that meet a condition, which you choose: the same value, a folder, the first words of a command",
        ),
        (is_wide, "    s  every call of this tool in this session, with any arguments"),
        (is_wide, "    w  every call of this tool by this agent, with any arguments, in any session"),
    ];
    let offered: Vec<&str> = texts.into_iter().filter(|(is_offered, _)| *is_offered).map(|(_, text)| text).collect();
    offered.join("\n")
}

/// The number of rows of arguments after which the heading is repeated below them.
const LONG: usize = 12;
const USUAL_COLUMNS: usize = 80;

/// The notice before a changed file is shown again.
pub(super) const FILE_CHANGED: &str = "\n  A file changed after it was shown, so nothing was decided. Look again:";

/// The choices at a call that requires approval. A grant for other arguments would not cover a call that a rule may deny.
fn choices(asked: &AskedItem, likely: Option<&LikelyGrant>) -> String {
    let later = match may_be_denied(&asked.item) {
        true => "from now on [o] the same call, as a rule may deny calls like it, [?]",
        false => "from now on [o] the same call, [l]ike it, any in this [s]ession, al[w]ays, [?]",
    };
    let likely = likely.map(|likely| format!("  [g] allow in this session: {}\n", likely.words)).unwrap_or_default();
    let remaining = match asked.further.len() {
        0 => String::new(),
        further => format!(" [r]emaining {},", further + 1),
    };
    let back = if asked.place.has_previous { " [b]ack," } else { "" };
    format!(
        "{likely}  {later}
  [a]pprove once,{remaining} [d]eny, [x] stop, [e]dit,{back} [q] later: "
    )
}

impl<C: Console> Prompt<C> {
    pub(super) fn decision(
        &mut self,
        asked: &AskedItem,
        call: &PendingCall<'_>,
        record: CallRecord<'_>,
    ) -> io::Result<Reply> {
        let of = asked.place.of;
        let place = if of > 1 { format!(" {}, calls start after the last", asked.place) } else { String::new() };
        let may_be_denied = may_be_denied(&asked.item);
        let likely = LikelyGrant::of(&call.arguments).filter(|_| !may_be_denied);
        let heading = self.console.paint().bold(format!("May {} run?", call.name));
        self.say(&format!("\n{heading}{place}"))?;
        let earlier = &asked.changed_before;
        let mut shown = self.say_approval(&asked.item, call, earlier)?;
        if let Some(withdrawn) = &asked.withdrawn {
            self.say(&format!("  your decision before, taken back: {}", view::decided(withdrawn)))?;
        }
        if shown.iter().map(|line| 1 + visible_width(line) / USUAL_COLUMNS).sum::<usize>() > LONG {
            // The heading and the name of the file may have left the screen.
            let file = call.arguments.as_object().and_then(changed_file);
            let file = file.map(|file| format!("  {}", escape_untrusted(file))).unwrap_or_default();
            self.say(&format!("{heading}{place}{file}"))?;
        }
        self.console.discard_typed_ahead()?;
        loop {
            let answer = self.key(&choices(asked, likely.as_ref()))?;
            let decision = match answer.as_deref().map(str::trim) {
                None | Some("q" | "quit") => {
                    self.say("  left for later")?;
                    return Ok(Reply::LeftPending);
                }
                Some("b" | "back") if asked.place.has_previous => return Ok(Reply::Back),
                Some("a" | "y" | "yes" | "approve") => Some(approval(Scope::Once, None, None)),
                Some("r" | "remain") if !asked.further.is_empty() => match self.remaining(asked)? {
                    Some(answers) => return Ok(Reply::Answered(answers)),
                    None => {
                        // The last call above the keys is another one now.
                        self.say(&format!("\n{heading}{place}"))?;
                        shown = self.say_approval(&asked.item, call, earlier)?;
                        None
                    }
                },
                Some("g") if likely.is_some() => {
                    likely.as_ref().map(|likely| approval(Scope::Session, Some(likely.coverage()), None))
                }
                Some("s" | "session") if !may_be_denied => self.any_arguments(asked, call, Scope::Session)?,
                Some("w" | "always") if !may_be_denied => self.any_arguments(asked, call, Scope::Always)?,
                Some("l" | "like") if !may_be_denied => self
                    .condition(&call.arguments, record)?
                    .map(|(condition, scope)| approval(scope, Some(Coverage::When(condition)), None)),
                Some("o" | "only") => {
                    self.reach("the same call")?.map(|scope| approval(scope, Some(Coverage::Arguments), None))
                }
                Some("d" | "n" | "no" | "deny") => {
                    self.text("  why (the model reads it): ")?.map(|reason| denial(Some(reason)))
                }
                Some("x" | "stop") => match self.text("  why (the journal keeps it; the run is cancelled): ")? {
                    Some(reason) => return Ok(Reply::Stopped(call.id.clone(), by_terminal(denial(Some(reason))))),
                    None => None,
                },
                Some("e" | "edit") => {
                    self.edited(call, earlier)?.map(|edited| approval(Scope::Once, None, Some(edited)))
                }
                Some("?" | "h" | "help") => {
                    self.say(&keys(asked, likely.as_ref()))?;
                    None
                }
                Some(_) => {
                    self.say("  that key is not offered for this call; ? explains the keys")?;
                    None
                }
            };
            // Without a decision, the person came back from a further question.
            if let Some(decision) = decision {
                let is_approval = decision.answer == DecisionKind::Approve && decision.edited_arguments.is_none();
                if is_approval && self.argument_lines(&call.arguments, earlier) != shown {
                    self.say(FILE_CHANGED)?;
                    shown = self.say_approval(&asked.item, call, earlier)?;
                    continue;
                }
                return Ok(Reply::Answered(vec![(call.id.clone(), by_terminal(decision))]));
            }
        }
    }

    /// Shows what the person decides about. Returns the lines of the arguments, which depend on the present files.
    fn say_approval(
        &mut self,
        item: &PendingItem,
        call: &PendingCall<'_>,
        earlier: &[EarlierChange],
    ) -> io::Result<Vec<String>> {
        let lines = self.say_arguments(&call.arguments, earlier)?;
        let circumstances = view::circumstances(item, jiff::Timestamp::now());
        let paint = self.console.paint();
        for line in circumstances {
            let line = if line.starts_with('!') { line } else { paint.dim(line) };
            self.say(&format!("  {line}"))?;
        }
        Ok(lines)
    }

    /// Approves the item and all further ones, after the person has seen them.
    fn remaining(&mut self, asked: &AskedItem) -> io::Result<Option<Vec<(CallId, Answer)>>> {
        let items = || [&asked.item].into_iter().chain(&asked.further);
        let earlier = |index: usize| match index {
            0 => asked.changed_before.clone(),
            _ => changed_before(items(), index),
        };
        let calls = count(asked.further.len() + 1, "call");
        let is_approved = loop {
            let mut shown = Vec::new();
            for (index, item) in items().enumerate() {
                let Some(call) = item.call() else { continue };
                let heading = self.console.paint().bold(format!("{}. {}", index + 1, call.name));
                self.say(&format!("\n{heading}"))?;
                shown.push(self.say_approval(item, &call, &earlier(index))?);
            }
            self.console.discard_typed_ahead()?;
            let is_approved = self.confirmed(&format!("  approve these {calls}, once each: [y]es, [n]o: "))?;
            let lines = |(index, item): (usize, &PendingItem)| {
                Some(self.argument_lines(&item.call()?.arguments, &earlier(index)))
            };
            let present = items().enumerate().filter_map(lines);
            if !is_approved || present.eq(shown) {
                break is_approved;
            }
            self.say(FILE_CHANGED)?;
        };
        let answers = items().filter_map(PendingItem::call_id);
        let answers = answers.map(|call| (call.clone(), by_terminal(approval(Scope::Once, None, None))));
        Ok(is_approved.then(|| answers.collect()))
    }

    /// An approval of all further calls of the tool. Where an argument says what runs, or which file
    /// changes, it takes a second key.
    fn any_arguments(
        &mut self,
        asked: &AskedItem,
        call: &PendingCall<'_>,
        scope: Scope,
    ) -> io::Result<Option<Decision>> {
        let wide = || approval(scope, Some(Coverage::Tool), None);
        let Some(warning) = view::any_arguments_warning(call, scope) else { return Ok(Some(wide())) };
        self.say(&format!("  {warning}"))?;
        for waiting in asked.further.iter().filter_map(PendingItem::call).filter(|further| further.name == call.name) {
            let arguments = arguments_line(&waiting.arguments.to_value(), COMPACT);
            self.say(&format!("  it also covers the call that waits after this one: {arguments}"))?;
        }
        Ok(self.confirmed("  allow any arguments: [y]es, [n]o: ")?.then(wide))
    }

    /// Whether the person says yes.
    pub(super) fn confirmed(&mut self, question: &str) -> io::Result<bool> {
        loop {
            match self.key(question)?.as_deref().map(str::trim) {
                Some("y" | "yes") => return Ok(true),
                None | Some("" | "n" | "no") => return Ok(false),
                Some(_) => self.say("  y does it; n, Enter and Esc go back to the choices, and nothing is decided")?,
            }
        }
    }
}

fn may_be_denied(item: &PendingItem) -> bool {
    if let PendingItem::Approval(approval) = item { approval.may_be_denied } else { false }
}

fn by_terminal(decision: Decision) -> Answer {
    Decision { via: Channel::Terminal, ..decision }.into()
}
