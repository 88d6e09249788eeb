//! Provider matrix: what OpenAI, OpenAI strict, Anthropic and Gemini accept of each tool, by the adapters that toolgate
//! itself sends tools with.

use std::sync::{Arc, LazyLock};

use serde_json::Value;
use toolgate_core::tool::ExternalTool;
use toolgate_models::{Settings, anthropic, gemini, openai_responses};
use toolgate_ports::{Model, ToolFit};

use super::row::{Fit, ProviderFit, Reason};
use super::tool_judge::ToolJudge;
use crate::check::finding::one_line;
use crate::check::rules::{Rule, tools as rules};

struct Provider {
    name: &'static str,
    model: Arc<dyn Model>,
    is_strict: bool,
}

/// The beginning of the sentence with which the adapter says that a tool cannot be strict.
const NOT_STRICT: &str = "It is not declared strict: ";

static PROVIDERS: LazyLock<Vec<Provider>> = LazyLock::new(|| {
    let settings = Settings::new("http://localhost", "any");
    let strict = Settings { strict_tools: true, ..settings.clone() };
    let opened = [
        ("OpenAI", openai_responses::model(&settings), false),
        ("OpenAI strict", openai_responses::model(&strict), true),
        ("Anthropic", anthropic::model(&settings), false),
        ("Gemini", gemini::model(&settings), false),
    ];
    let opened = opened.into_iter().filter_map(|(name, model, is_strict)| {
        Some(Provider { name, model: Arc::new(model.ok()?) as Arc<dyn Model>, is_strict })
    });
    opened.collect()
});

/// Judges how a tool fits each provider.
pub(super) fn judge(judge: &ToolJudge<'_>) -> Vec<ProviderFit> {
    let Some(schema) = judge.tool.get("inputSchema").filter(|schema| schema.is_object()) else { return Vec::new() };
    let description = judge.tool.get("description").and_then(Value::as_str).unwrap_or_default();
    let tool = ExternalTool::new(judge.name, description).input_schema(schema.clone()).to_tool();
    let row: Vec<ProviderFit> =
        PROVIDERS.iter().map(|provider| cell(provider, provider.model.fit(&tool), schema)).collect();
    report(judge, &row);
    row
}

fn cell(provider: &Provider, fit: ToolFit, schema: &Value) -> ProviderFit {
    let (fit, sentences) = match fit {
        ToolFit::Whole => (Fit::Whole, Vec::new()),
        ToolFit::Lossy(lost) => (Fit::Lossy, lost),
        ToolFit::Refused(why) => (Fit::Refused, vec![why]),
    };
    let sentences = sentences.into_iter();
    let reasons: Vec<Reason> = if provider.is_strict {
        sentences
            .filter_map(|text| {
                Some(Reason { pointer: strict_place(&text, schema), text: text.strip_prefix(NOT_STRICT)?.to_owned() })
            })
            .collect()
    } else {
        sentences.map(|text| Reason { pointer: place(&text, schema), text }).collect()
    };
    // What a lossy declaration loses is the same for both forms of OpenAI.
    let fit = if provider.is_strict && fit == Fit::Lossy && reasons.is_empty() { Fit::Whole } else { fit };
    ProviderFit { provider: provider.name, fit, reasons }
}

/// The place that a sentence names, as a pointer into the definition.
fn place(text: &str, schema: &Value) -> String {
    if let Some(rest) = text.strip_prefix('#') {
        return format!("/inputSchema{}", rest.split(' ').next().unwrap_or_default());
    }
    let named = text.split('`').nth(1).filter(|word| schema.get(*word).is_some());
    named.map_or("/inputSchema".to_owned(), |word| format!("/inputSchema/{word}"))
}

/// The place that a sentence about strictness names: the first property with that name.
fn strict_place(text: &str, schema: &Value) -> String {
    let names = text.split('`').skip(1).step_by(2);
    let mut found = None;
    for name in names {
        super::walk::each_schema(schema, "/inputSchema", &mut |inner| {
            let is_property =
                inner.pointer.rsplit('/').nth(1) == Some("properties") && inner.pointer.ends_with(&format!("/{name}"));
            if is_property && found.is_none() {
                found = Some(inner.pointer.clone());
            }
        });
    }
    found.unwrap_or_else(|| "/inputSchema".to_owned())
}

/// One finding for each kind of misfit, which names the providers that have it.
fn report(judge: &ToolJudge<'_>, row: &[ProviderFit]) {
    for rule in [&rules::PROVIDER_REFUSES, &rules::PROVIDER_LOSES, &rules::PROVIDER_NOT_STRICT] {
        let cells: Vec<&ProviderFit> = row.iter().filter(|cell| rule_of(cell) == Some(rule)).collect();
        let Some(first) = cells.first().and_then(|cell| cell.reasons.first()) else { continue };
        let texts = cells.iter().filter_map(|cell| {
            let reason = cell.reasons.first()?;
            let rest = cell.reasons.len() - 1;
            let more = if rest > 0 { format!(" (and {rest} more)") } else { String::new() };
            Some(format!("{}: {}{more}", cell.provider, one_line(&reason.text, 240)))
        });
        judge.report(rule, first.pointer.clone(), texts.collect::<Vec<_>>().join("; "));
    }
}

fn rule_of(cell: &ProviderFit) -> Option<&'static Rule> {
    match cell.fit {
        Fit::Refused => Some(&rules::PROVIDER_REFUSES),
        Fit::Lossy if cell.provider == "OpenAI strict" => Some(&rules::PROVIDER_NOT_STRICT),
        Fit::Lossy => Some(&rules::PROVIDER_LOSES),
        Fit::Whole => None,
    }
}
