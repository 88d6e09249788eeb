//! Choices of `toolgate init`: by flags, or by the answers of a person.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use super::offers::{self, OfferedServer};
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::cli::preset_policies::{PRESETS, trusted_effect};
use crate::cli::prompt::{Console, Prompt};
use crate::cli::surroundings;
use crate::cli::text::list;
use crate::config::{PROVIDERS, ServerDefinition, Starter, StarterModel};
use crate::core::id::ServerId;

/// The choices as flags.
#[derive(Args, Debug)]
#[command(next_help_heading = "Choices")]
pub(super) struct Choices {
    /// Takes the first model that it finds, and the servers of editors' files whose variables are set
    #[arg(long, short)]
    yes: bool,

    /// `openai`, `anthropic` or `gemini`, perhaps with a model (`openai/gpt-5-mini`), or `auto`: as the environment
    /// names it. With --model-url, the name of a model there
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// The base address of a server with the Chat Completions API that needs no key
    #[arg(long, value_name = "URL", requires = "model")]
    model_url: Option<String>,

    /// Writes the MCP servers of this file, in the format of Claude Desktop, Cursor or VS Code (repeatable)
    #[arg(long, value_name = "FILE")]
    mcp_config: Vec<PathBuf>,

    /// Writes only this server of those files, or else of the files that it finds (repeatable)
    #[arg(long, value_name = "ID")]
    server: Vec<String>,

    /// The approval policy: default, accept-reads, accept-edits, dont-ask, delegate, plan or bypass
    #[arg(long, value_name = "NAME", value_parser = PRESETS.map(|(name, _)| name))]
    policy: Option<String>,

    /// Writes `trusted: true` for this server: policies believe what it says of its tools, such as that one only reads
    /// (repeatable)
    #[arg(long, value_name = "ID")]
    trust: Vec<String>,
}

impl Choices {
    /// Whether a person may be asked: no flag chooses anything.
    pub(super) fn are_open(&self) -> bool {
        let Self { yes, model, model_url, mcp_config, server, policy, trust } = self;
        let chooses_servers = !mcp_config.is_empty() || !server.is_empty() || !trust.is_empty();
        !yes && model.is_none() && model_url.is_none() && !chooses_servers && policy.is_none()
    }

    /// The choices without a question.
    pub(super) async fn starter(&self, out: &mut Output) -> Result<Starter, CliError> {
        let found = if self.yes { Some(surroundings::look().await) } else { None };
        let model = match (&self.model, &found) {
            (Some(model), _) => self.model(model)?,
            (None, Some(found)) => {
                let first = offers::models(found).into_iter().next();
                first.map(|offered| offered.model).unwrap_or_default()
            }
            (None, None) => StarterModel::Environment,
        };
        let files = match (self.mcp_config.is_empty(), &found) {
            (false, _) => surroundings::files(self.mcp_config.clone()),
            (true, Some(_)) => surroundings::mcp_files(),
            (true, None) if !self.server.is_empty() => surroundings::mcp_files(),
            (true, None) => Vec::new(),
        };
        if let Some(error) =
            files.iter().filter(|_| !self.mcp_config.is_empty()).find_map(|file| file.servers.as_ref().err())
        {
            return Err(error.clone().into());
        }
        let (offered, left_out) = offers::servers(&files);
        left_out.iter().for_each(|reason| out.note(reason));
        let known = list(offered.iter().map(|server| &server.id));
        if let Some(unknown) = self.server.iter().find(|id| !offered.iter().any(|server| server.id == **id)) {
            return Err(CliError::not_found(format!("there is no usable server `{unknown}`; the files have: {known}")));
        }
        let is_named = |server: &OfferedServer| match (self.server.is_empty(), self.mcp_config.is_empty()) {
            (false, _) => self.server.contains(&server.id),
            (true, false) => true,
            // Found, and not named: only what works at once.
            (true, true) => server.is_startable(),
        };
        let (servers, others): (Vec<_>, Vec<_>) = offered.into_iter().partition(is_named);
        if self.server.is_empty() {
            others
                .iter()
                .for_each(|server| out.note(format!("left out, choose it with --server: {}", server.describe())));
        }
        let servers = servers.into_iter().map(definition).collect();
        let (has_model, policy) = (offers::names_model(), self.policy.clone());
        self.with_trust(Starter { model, has_model, servers, policy, ..Starter::default() })
    }

    /// The starter with the servers of `--trust` as trusted ones. The demo server is trusted in any case.
    fn with_trust(&self, starter: Starter) -> Result<Starter, CliError> {
        let demo = starter.has_demo_server().then_some("demo").into_iter();
        let written: Vec<&str> = demo.chain(starter.servers.iter().map(|(id, _)| id.as_str())).collect();
        if let Some(unknown) = self.trust.iter().find(|id| !written.contains(&id.as_str())) {
            let message =
                format!("--trust does not know the server `{unknown}`; the configuration has: {}", list(written));
            return Err(
                CliError::not_found(message).with_remedy("choose its file with --mcp-config, or it with --server")
            );
        }
        Ok(Starter { trusted: self.trust.iter().map(|id| id.as_str().into()).collect(), ..starter })
    }

    fn model(&self, text: &str) -> Result<StarterModel, CliError> {
        if let Some(url) = &self.model_url {
            return Ok(offers::at(url, text));
        }
        let (name, model) = text.split_once('/').map_or((text, None), |(name, model)| (name, Some(model)));
        match PROVIDERS.into_iter().find(|provider| provider.name == name) {
            Some(provider) => Ok(offers::of_provider(provider, model)),
            None if text == "auto" => Ok(StarterModel::Environment),
            None => {
                let known = list(PROVIDERS.map(|provider| provider.name));
                Err(CliError::usage(format!("--model does not know `{text}`; it takes {known} or auto"))
                    .with_remedy("for a model on another server, give its address with --model-url"))
            }
        }
    }
}

fn definition(server: OfferedServer) -> (ServerId, ServerDefinition) {
    (server.id.as_str().into(), server.definition)
}

/// Whether the file may be replaced.
pub(super) fn may_replace(prompt: &mut Prompt<impl Console>, path: &Path) -> io::Result<bool> {
    let options = ["keep it, and write nothing", "replace it"].map(str::to_owned);
    Ok(prompt.choose(&format!("`{}` already exists.", path.display()), &options, 0)? == Some(1))
}

/// The choices of a person; `None` if the input ends before the last answer.
pub(super) async fn asked(prompt: &mut Prompt<impl Console>, out: &mut Output) -> Result<Option<Starter>, CliError> {
    out.passing(&["looking for models and servers…".to_owned()]);
    let found = surroundings::look().await;
    out.passed();
    let models = offers::models(&found);
    let (servers, left_out) = offers::servers(&found.mcp_files);
    answers(prompt, models, servers, &left_out).map_err(|error| CliError::terminal(&error))
}

fn answers(
    prompt: &mut Prompt<impl Console>,
    models: Vec<offers::OfferedModel>,
    servers: Vec<OfferedServer>,
    left_out: &[String],
) -> io::Result<Option<Starter>> {
    let about: Vec<String> = models.iter().map(|model| model.about.clone()).collect();
    let model = match &about[..] {
        [only] => {
            prompt.heading(&format!("Model: {only}"))?;
            0
        }
        _ => {
            let Some(model) = prompt.choose("Which model?", &about, 0)? else { return Ok(None) };
            model
        }
    };
    let model = models.into_iter().nth(model).map(|offered| offered.model).unwrap_or_default();
    for reason in left_out {
        prompt.heading(reason)?;
    }
    let mut chosen = Vec::new();
    if !servers.is_empty() {
        let about: Vec<String> = servers.iter().map(OfferedServer::describe).collect();
        let works = |(index, server): (usize, &OfferedServer)| server.is_startable().then_some(index);
        let usual: Vec<usize> = servers.iter().enumerate().filter_map(works).collect();
        let Some(picked) = prompt.choose_several("Which MCP servers of your editors?", &about, &usual)? else {
            return Ok(None);
        };
        let picked = servers.into_iter().enumerate().filter(|(index, _)| picked.contains(index));
        chosen = picked.map(|(_, server)| definition(server)).collect();
    }
    let policies: Vec<String> = PRESETS.iter().map(|(name, meaning)| format!("{name}: {meaning}")).collect();
    let Some(policy) = prompt.choose("Which calls need your approval?", &policies, 0)? else { return Ok(None) };
    let policy = PRESETS.get(policy).map(|(name, _)| (*name).to_owned());
    let mut trusted = BTreeSet::new();
    let effect = policy.as_deref().and_then(|policy| Some((policy, trusted_effect(policy)?)));
    if let Some((policy, effect)) = effect.filter(|_| !chosen.is_empty()) {
        prompt.heading(&format!(
            "{policy} believes what a trusted server says of its tools (readOnlyHint, …), and lets them {effect} \
             without approval."
        ))?;
        let about: Vec<String> = chosen.iter().map(|(id, server)| format!("{id}: {}", server.summary)).collect();
        let is_own = |(index, (_, server)): (usize, &(ServerId, ServerDefinition))| server.is_demo().then_some(index);
        let usual: Vec<usize> = chosen.iter().enumerate().filter_map(is_own).collect();
        let Some(picked) = prompt.choose_several("Which of these servers do you trust?", &about, &usual)? else {
            return Ok(None);
        };
        trusted = picked.iter().filter_map(|index| chosen.get(*index)).map(|(id, _)| id.clone()).collect();
    }
    Ok(Some(Starter { model, has_model: offers::names_model(), servers: chosen, trusted, policy }))
}
