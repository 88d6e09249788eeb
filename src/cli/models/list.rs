//! `toolgate models`: lists the configured models with kind, endpoint, price and agents.

use clap::Args;
use serde::Serialize;

use super::endpoint::{kind, place};
use crate::app::{self, Pricing};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::table;
use crate::cli::text::{count, list};
use crate::config::{ModelSettings, Settings};
use crate::core::chat::{self, Rates, Usd};
use crate::core::id::{AgentName, ModelName};
use crate::ports::ModelIdentity;

#[derive(Args, Debug)]
pub(super) struct List {
    #[command(flatten)]
    config: ConfigFlag,

    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// One model as `--json` prints it.
#[derive(Serialize)]
struct Row {
    name: ModelName,
    kind: &'static str,
    provider: String,
    model: String,
    r#where: Option<String>,
    /// `null` if the price is unknown.
    price: Option<Price>,
    agents: Vec<AgentName>,
}

/// US dollars per million tokens, and the source of the price.
#[derive(Serialize)]
struct Price {
    from: &'static str,
    /// `null` if the provider reports the cost of each reply.
    input: Option<Usd>,
    output: Option<Usd>,
    cache_read: Option<Usd>,
    cache_write: Option<Usd>,
    reasoning: Option<Usd>,
    /// US dollars per image, in addition to its tokens.
    image: Option<Usd>,
}

impl List {
    pub(super) fn execute(&self, out: &mut Output) -> Result<Exit, CliError> {
        let settings = setup::settings(&self.config)?;
        let models = app::open_models(&settings)?;
        let rows = settings.models.iter().filter_map(|(name, model)| {
            let identity = models.get(name)?.identity();
            Some(Row::new(&settings, name, model, identity))
        });
        let rows: Vec<Row> = rows.collect();
        if self.json {
            out.pretty(&serde_json::json!({ "models": rows }));
        } else {
            print(&rows, out);
        }
        Ok(Exit::Done)
    }
}

impl Row {
    fn new(settings: &Settings, name: &ModelName, model: &ModelSettings, identity: &ModelIdentity) -> Self {
        let uses = settings.agents.values().filter(|agent| agent.models().any(|used| used == name));
        Self {
            name: name.clone(),
            kind: kind(model),
            provider: identity.provider.clone(),
            model: identity.model.clone(),
            r#where: place(model),
            price: Price::from_pricing(Pricing::new(settings, name, identity)),
            agents: uses.map(|agent| agent.name.clone()).collect(),
        }
    }

    fn cells(&self) -> [String; 7] {
        [
            self.name.to_string(),
            self.kind.to_owned(),
            self.provider.clone(),
            self.model.clone(),
            self.price.as_ref().map_or_else(|| "unknown".into(), Price::describe),
            list(&self.agents),
            self.r#where.clone().unwrap_or_else(|| "nowhere".into()),
        ]
    }
}

impl Price {
    fn from_pricing(pricing: Pricing) -> Option<Self> {
        match pricing {
            Pricing::Configured(price) => Some(Self::at("configuration", price)),
            Pricing::Listed(price) => Some(Self::at("list", price)),
            Pricing::Reported => Some(Self {
                from: "replies",
                input: None,
                output: None,
                cache_read: None,
                cache_write: None,
                reasoning: None,
                image: None,
            }),
            Pricing::Unknown => None,
        }
    }

    fn at(from: &'static str, price: chat::Price) -> Self {
        let Rates { input, output, cache_read, cache_write, reasoning } = price.rates;
        Self { from, input: Some(input), output: Some(output), cache_read, cache_write, reasoning, image: price.image }
    }

    fn describe(&self) -> String {
        match self.input.zip(self.output) {
            Some((input, output)) => {
                let image = self.image.map(|image| format!(", ${image} an image")).unwrap_or_default();
                format!("${input} / ${output}{image} ({})", self.from)
            }
            None => "reported by provider".into(),
        }
    }
}

fn print(rows: &[Row], out: &mut Output) {
    let headings = ["NAME", "KIND", "PROVIDER", "MODEL", "PRICE", "AGENTS", "ENDPOINT"];
    table::print(&headings, rows.iter().map(Row::cells), out);
    out.line(format!("{}; prices are US dollars per million tokens, read / written", count(rows.len(), "model")));
}
