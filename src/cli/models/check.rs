//! `toolgate models check`: tests a model with a few small calls.

use clap::Args;
use serde::Serialize;

use super::endpoint::{kind, place};
use super::examiner::Examiner;
use super::finding::{Capability, Finding};
use crate::app;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::view::UsageJson;
use crate::config::{Api, ModelSettings};
use crate::core::error::ErrorCode;
use crate::core::id::ModelName;

/// The most tokens of a reply, besides the configured reasoning: a broken model may never end one.
const MAX_TOKENS: u64 = 2048;

/// Test a model with a few small calls, including a tool call
#[derive(Args, Debug)]
pub(super) struct Check {
    /// The model, as the configuration names it
    name: String,

    #[command(flatten)]
    config: ConfigFlag,

    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// The findings as `--json` prints them.
#[derive(Serialize)]
struct Findings {
    model: ModelName,
    kind: &'static str,
    provider: String,
    asked_for: String,
    r#where: Option<String>,
    /// Whether agents can use it.
    usable: bool,
    checks: Vec<Finding>,
    usage: UsageJson,
}

impl Check {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let mut settings = setup::settings(&self.config)?;
        let name = setup::model(&settings, &self.name)?;
        if let Some(ModelSettings::Http(http)) = settings.models.get_mut(&name)
            && http.api != Api::OpenAiImages
        {
            let most = MAX_TOKENS + http.settings.reasoning.budget_tokens.unwrap_or(0);
            http.settings.max_tokens = Some(http.settings.max_tokens.map_or(most, |own| own.min(most)));
        }
        let models = app::open_models(&settings)?;
        let Some((configured, model)) = settings.models.get(&name).zip(models.get(&name)) else {
            return Err(CliError::not_found(format!("there is no model `{name}`")));
        };
        if let ModelSettings::Missing { remedy } = configured {
            return Err(CliError::new(ErrorCode::Configuration, "no model is configured").with_remedy(remedy));
        }
        if let ModelSettings::Http(http) = configured
            && http.api == Api::OpenAiImages
        {
            let message =
                format!("model `{name}` makes images: `check` does not test it, because each image costs money");
            return Err(
                CliError::usage(message).with_remedy("try it with `toolgate run` and an agent that has this model")
            );
        }
        let identity = model.identity();
        let place = place(configured);
        let mut results = CheckReport { checks: Vec::new(), json: self.json };
        if !self.json {
            let at = place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
            let about = format!("{}: {} of {}{at}", name, identity.model, identity.provider);
            out.line(out.paint().bold(about));
        }
        let mut examiner = Examiner::new(model.clone());
        results.note("asking for a text", out);
        results.report(examiner.text().await, out);
        if results.is_hopeless() {
            results.report(
                Capability::WITHOUT_AN_ANSWER.map(|ability| Finding::untried(ability, "the model does not answer")),
                out,
            );
        } else {
            results.note("asking for a tool call, and answering it", out);
            results.report(examiner.call().await, out);
            results.note("asking for two calls at once", out);
            results.report([examiner.calls().await], out);
            results.note("asking for JSON of a schema", out);
            results.report([examiner.json().await], out);
        }
        results.report([examiner.counts(), examiner.cost(name.as_str())], out);

        let usable = results.shows(Capability::Answers) && results.shows(Capability::ToolCall);
        if self.json {
            out.pretty(&Findings {
                kind: kind(configured),
                provider: identity.provider.clone(),
                asked_for: identity.model.clone(),
                r#where: place,
                usable,
                checks: results.checks,
                usage: examiner.usage().into(),
                model: name,
            });
        } else {
            out.line(verdict(usable, out));
        }
        Ok(if usable { Exit::Done } else { Exit::Failed })
    }
}

/// The findings printed so far.
struct CheckReport {
    checks: Vec<Finding>,
    json: bool,
}

impl CheckReport {
    /// Prints the current step.
    fn note(&self, what: &str, out: &mut Output) {
        let line = out.note_paint().dim(format!("  … {what}"));
        out.note(line);
    }

    fn report(&mut self, findings: impl IntoIterator<Item = Finding>, out: &mut Output) {
        for finding in findings {
            if !self.json {
                let paint = out.paint();
                finding.lines(&self.checks, paint).iter().for_each(|line| out.line(line));
            }
            self.checks.push(finding);
        }
    }

    /// Whether the first finding makes further calls pointless: the provider is unreachable or rejects the credentials.
    fn is_hopeless(&self) -> bool {
        let failed = self.checks.iter().find_map(|finding| finding.error.as_ref());
        let hopeless = [
            ErrorCode::ProviderAuth,
            ErrorCode::ProviderBilling,
            ErrorCode::ProviderTimeout,
            ErrorCode::ProviderUnavailable,
            ErrorCode::Configuration,
        ];
        failed.is_some_and(|failure| hopeless.contains(&failure.code))
    }

    fn shows(&self, ability: Capability) -> bool {
        self.checks.iter().any(|finding| finding.check == ability && finding.works == Some(true))
    }
}

fn verdict(usable: bool, out: &Output) -> String {
    let paint = out.paint();
    match usable {
        true => paint.green("agents can use it"),
        false => paint.red("agents cannot use it: they need a model that answers and calls tools"),
    }
}
