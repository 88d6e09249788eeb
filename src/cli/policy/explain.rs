//! `toolgate policy explain`: the verdict on a call, the rule that decides, and why the other rules do not.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json};

use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::text::{list, one_line};
use crate::config::{self, Settings};
use crate::core::id::{AgentName, Principal, ServerId};
use crate::core::policy::{Example, Finding, Judgement, OnTimeout, Policy, Rule, Subject, Verdict};
use crate::core::similar::{did_you_mean, similar};
use crate::core::tool::{Annotations, Arguments, Builtin, Origin, Tool, ToolRef, escape_untrusted};
use crate::ports::{Grant, GrantFilter};

const EXAMPLES: &str = "\
Examples:
  toolgate policy explain mcp_shop_refund '{\"amount\": 250}'       a tool that the agent has now
  toolgate policy explain refund '{\"amount\": 250}' --server shop  a hypothetical tool, no server is contacted
  toolgate policy explain get_order --external --file strict.yaml
  toolgate policy explain mcp_shop_refund --principal kim --json

Without arguments it explains the verdict before any call is known. For a tool that the agent has now it names
the grants that cover the call; of a hypothetical tool, `ask` means that it requires approval unless a grant
covers it.";

/// Explain which rule decides about a call, and why
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Explain {
    /// The name the model sees; with --server or --external, the tool's name at its origin
    tool: String,

    /// The arguments, a JSON object
    #[arg(value_parser = object)]
    arguments: Option<Map<String, Value>>,

    #[command(flatten)]
    config: ConfigFlag,

    /// The agent [default: the only one, or else `assistant`]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// The principal of the run
    #[arg(long, value_name = "WHO")]
    principal: Option<String>,

    /// The policy: default, accept-reads, accept-edits, dont-ask, delegate, plan, bypass, or a configured one [default: the agent's]
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    policy: Option<String>,

    /// A policy file, instead of the agent's policy
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,

    #[command(flatten)]
    made_up: HypotheticalTool,

    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// Flags of a hypothetical tool, which no server has to provide.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "A hypothetical tool")]
struct HypotheticalTool {
    /// An MCP tool of this server, whether or not it is configured
    #[arg(long, value_name = "ID", conflicts_with = "external")]
    server: Option<String>,

    /// A tool that the calling application runs itself
    #[arg(long)]
    external: bool,

    /// Its server is trusted [default: as configured]
    #[arg(long, requires = "server")]
    server_trusted: bool,

    /// Its hint readOnlyHint
    #[arg(long, value_name = "BOOL", requires = "server")]
    read_only: Option<bool>,

    /// Its hint destructiveHint
    #[arg(long, value_name = "BOOL", requires = "server")]
    destructive: Option<bool>,

    /// Its hint idempotentHint
    #[arg(long, value_name = "BOOL", requires = "server")]
    idempotent: Option<bool>,

    /// Its hint openWorldHint
    #[arg(long, value_name = "BOOL", requires = "server")]
    open_world: Option<bool>,
}

fn object(text: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(text).map_err(|error| format!("not a JSON object: {error}"))
}

impl Explain {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let settings = setup::settings(&self.config)?;
        let agent = setup::agent(&settings, self.agent.as_deref())?;
        let policy = self.chosen_policy(&settings, &agent)?;
        let unknown = self.made_up.unknown_server(&settings);
        let (tool, grants) = match self.made_up.tool(&self.tool, &settings) {
            Some(tool) => (Arc::new(tool), Vec::new()),
            None => self.offered(settings, &agent, out).await?,
        };
        if let Some(unknown) = unknown {
            out.warning(unknown);
        }
        let principal = self.principal.as_deref().map(Principal::from);
        let subject = Subject {
            tool: &tool,
            agent: Some(&agent),
            principal: principal.as_ref(),
            arguments: self.arguments.as_ref(),
        };
        let (judgement, findings) = (policy.judge(&subject), policy.explain(&subject));
        let is_asked = judgement.verdict == Verdict::Ask;
        let covering: Vec<&Grant> =
            grants.iter().filter(|grant| is_asked && covers(grant, &subject, &judgement)).collect();
        if self.json {
            out.pretty(&as_json(&policy, &subject, &judgement, &findings, &covering));
        } else {
            print_explanation(&policy, &subject, &judgement, &findings, &covering, out);
        }
        Ok(Exit::Done)
    }

    fn chosen_policy(&self, settings: &Settings, agent: &AgentName) -> Result<Arc<Policy>, CliError> {
        if let Some(file) = &self.file {
            return Ok(Arc::new(config::policy_file(file)?));
        }
        let of_agent = || settings.agents.get(agent).map(|agent| agent.policy.clone()).unwrap_or_default();
        self.policy.as_deref().map_or_else(|| Ok(of_agent()), |name| setup::policy(settings, name))
    }

    /// The tool as it is available to the agent now, and the grants for it.
    async fn offered(
        &self,
        settings: Settings,
        agent: &AgentName,
        out: &mut Output,
    ) -> Result<(Arc<Tool>, Vec<Grant>), CliError> {
        let app = setup::open(settings).await?;
        let tools = app.runner.tools(agent, None).await;
        let filter =
            GrantFilter { agent: Some(agent.clone()), tool: Some(self.tool.clone()), ..GrantFilter::default() };
        let grants = app.runner.grants(&filter).await;
        setup::close(app, out).await;
        let (tools, grants) = (tools?, grants?);
        if let Some(tool) = tools.get(&self.tool) {
            return Ok((tool.clone(), grants));
        }
        let names = || tools.iter().map(|tool| tool.name.as_str());
        let known = did_you_mean(similar(&self.tool, names()));
        let known = known.unwrap_or_else(|| format!("available are: {}.", list(names())));
        let remedy = format!("{known} `--server ID` or `--external` explains any other tool");
        Err(CliError::not_found(format!("agent {agent} has no tool `{}`", self.tool)).with_remedy(remedy))
    }
}

impl HypotheticalTool {
    /// A note that the server is not configured, which may be intended or a typo.
    fn unknown_server(&self, settings: &Settings) -> Option<String> {
        let id = self.server.as_deref().filter(|id| !settings.servers.contains_key(&ServerId::from(*id)))?;
        let known = match settings.servers.is_empty() {
            true => "there are none".to_owned(),
            false => format!("there are: {}", list(settings.servers.keys())),
        };
        Some(format!("no server `{}` is configured; {known}", escape_untrusted(id)))
    }

    /// The tool, if it is hypothetical or built in; no server has to be asked about it.
    fn tool(&self, name: &str, settings: &Settings) -> Option<Tool> {
        let builtin = Builtin::ALL.iter().any(|builtin| builtin.name() == name);
        if self.server.is_none() && !self.external && !builtin {
            return None;
        }
        let configured = self.server.as_deref().and_then(|id| settings.servers.get(&ServerId::from(id)));
        let example = Example {
            server: self.server.clone(),
            builtin: self.server.is_none() && !self.external,
            tool: name.to_owned(),
            annotations: Annotations {
                title: None,
                read_only_hint: self.read_only,
                destructive_hint: self.destructive,
                idempotent_hint: self.idempotent,
                open_world_hint: self.open_world,
            },
            trusted: self.server_trusted || configured.is_some_and(|server| server.trusted),
            ..Example::default()
        };
        Some(example.tool())
    }
}

/// Whether a grant covers the call. Without arguments, only one for any arguments does.
fn covers(grant: &Grant, subject: &Subject<'_>, judged: &Judgement) -> bool {
    let is_for_any = grant.arguments.is_none() && grant.when.is_none();
    let granted = grant.granted(&subject.tool.name);
    let arguments = Arguments::Object(subject.arguments.cloned().unwrap_or_default());
    let covers_arguments = (is_for_any || subject.arguments.is_some())
        && granted.covers(subject, &arguments, Some(jiff::Timestamp::now()), judged);
    grant.origin == subject.tool.origin
        && grant.definition == subject.tool.hash
        && grant.principal.as_ref() == subject.principal
        && covers_arguments
}

fn covered(grant: &Grant) -> String {
    let scope = match &grant.session {
        Some(session) => format!("in session {}", escape_untrusted(session.as_str())),
        None => "in any session".to_owned(),
    };
    format!("  no approval is required {scope}: grant {} by {} covers it", grant.id, escape_untrusted(&grant.by))
}

fn print_explanation(
    policy: &Policy,
    subject: &Subject<'_>,
    judgement: &Judgement,
    findings: &[(&Rule, Finding)],
    covering: &[&Grant],
    out: &mut Output,
) {
    let paint = out.paint();
    let verdict = match judgement.verdict {
        Verdict::Allow => paint.green("allow"),
        Verdict::Ask => paint.yellow("ask"),
        Verdict::Deny => paint.red("deny"),
    };
    let by = judgement.rule.as_ref().map_or("no rule".to_owned(), |rule| format!("rule {rule}"));
    let unless = match covering {
        [] => "",
        grants if grants.iter().any(|grant| grant.session.is_none()) => ", and a grant approves it",
        _ => ", and a grant of one session approves it there",
    };
    out.line(format!("{}  {verdict}, by {by} of policy {}{unless}", paint.bold(&subject.tool.name), policy.name));
    covering.iter().for_each(|grant| out.line(covered(grant)));
    out.line(format!("  {}", one_line(&judgement.reason, 400)));
    if let (Verdict::Ask, Some(seconds)) = (judgement.verdict, judgement.answer_timeout_s) {
        let otherwise = match judgement.on_timeout {
            OnTimeout::Approve => ", then approved",
            OnTimeout::Deny => ", then denied",
            OnTimeout::Expire => "",
        };
        out.line(format!("  to be answered within {seconds} s{otherwise}"));
    }
    out.line(format!("  {}", paint.dim(known_of(subject))));
    for (rule, finding) in findings {
        let sign = match finding {
            Finding::Matches => paint.green("✓"),
            Finding::Unclear(_) => paint.red("!"),
            Finding::Depends => paint.yellow("?"),
            Finding::Misses(_) => paint.dim("·"),
        };
        let reason = one_line(&finding.in_words(rule, subject), 400);
        out.line(format!("{sign} {:<5} {}: {reason}", rule.verdict.as_str(), rule.id));
    }
    let default = match (&judgement.rule, &subject.tool.origin) {
        (Some(rule), _) => format!("does not decide, rule {rule} does"),
        (None, Origin::Builtin { .. }) => "does not decide, toolgate runs the tool itself".to_owned(),
        (None, Origin::Mcp { .. } | Origin::External { .. }) => "applies, no rule decides".to_owned(),
    };
    out.line(format!("{} {:<5} default: {default}", paint.dim("·"), policy.fallback.as_str()));
}

/// The properties of the call that rules can match.
fn known_of(subject: &Subject<'_>) -> String {
    let tool = subject.tool;
    let origin = match &tool.origin {
        Origin::Mcp { server, tool: name } => {
            format!("`{name}` of {} server {server}", if tool.trusted { "the trusted" } else { "the" })
        }
        Origin::External { tool } => format!("`{tool}` of the calling application"),
        Origin::Builtin { .. } => "toolgate's own".to_owned(),
    };
    let mut known = vec![origin];
    known.extend(subject.agent.map(|agent| format!("agent {agent}")));
    known.extend(subject.principal.map(|principal| format!("for {principal}")));
    known.push(if subject.arguments.is_some() { "arguments given" } else { "no arguments" }.to_owned());
    one_line(&known.join("; "), 400)
}

fn as_json(
    policy: &Policy,
    subject: &Subject<'_>,
    judgement: &Judgement,
    findings: &[(&Rule, Finding)],
    covering: &[&Grant],
) -> Value {
    let rules = findings.iter().map(|(rule, finding)| {
        json!({
            "id": rule.id, "verdict": rule.verdict, "finding": finding.as_str(),
            "reason": finding.in_words(rule, subject),
        })
    });
    let mut explained = json!({
        "tool": ToolRef::new(subject.tool), "tool_name": subject.tool.name, "trusted": subject.tool.trusted,
        "agent": subject.agent, "principal": subject.principal, "arguments": subject.arguments,
        "policy": policy.mark(), "verdict": judgement.verdict, "rule": judgement.rule, "reason": judgement.reason,
        "answer_timeout_s": judgement.answer_timeout_s, "default": policy.fallback, "rules": rules.collect::<Vec<Value>>(),
        "grants": covering.iter().map(|grant| &grant.id).collect::<Vec<_>>(),
    });
    if let Some(explained) = explained.as_object_mut().filter(|_| !judgement.on_timeout.is_expire()) {
        explained.insert("on_timeout".into(), json!(judgement.on_timeout));
    }
    explained
}
