//! Compatibility of an agent's tools with a model's tool schema.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::app::{self, Models};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::mcp::{ConfiguredServers, visit_all};
use crate::cli::output::Output;
use crate::cli::paint::Paint;
use crate::cli::setup;
use crate::cli::text::{block, count, list};
use crate::cli::view::left_out_lines;
use crate::config::{Api, ServerSettings, StdioSettings, TransportSettings};
use crate::core::error::ErrorCode;
use crate::core::id::{ModelName, ServerId};
use crate::core::tool::{Tool, ToolName, Toolset};
use crate::ports::{Model, ToolFit};
use crate::runner::ToolLimit;

/// Finds the model with that name, or any model of that kind.
pub(super) fn model(models: &Models, name: &str) -> Result<Arc<dyn Model>, CliError> {
    if let Some(model) = models.get(&ModelName::from(name)) {
        return Ok(Arc::clone(model));
    }
    match app::model_of_kind(name) {
        Some(opened) => opened.map_err(|why| CliError::new(ErrorCode::Configuration, format!("{name}: {why}"))),
        None => {
            let message = format!("`{name}` is neither a model nor a kind of model");
            let known = if models.is_empty() {
                format!("kinds are: {}", list(Api::ALL.map(Api::key)))
            } else {
                format!("configured are: {}", list(models.keys()))
            };
            Err(CliError::not_found(message).with_remedy(known))
        }
    }
}

/// The tools of a command, which needs no configuration, for any model of a kind.
pub(super) async fn of_command(name: &str, words: &[String], json: bool, out: &mut Output) -> Result<Exit, CliError> {
    let kind = if name == "openai" { Api::OpenAiChat.key() } else { name };
    let model = model(&Models::new(), kind)?;
    let (command, arguments) = words.split_first().ok_or_else(|| CliError::usage("the command is empty"))?;
    let mut transport = TransportSettings::Stdio(StdioSettings::new(command, arguments));
    setup::meaning_this_program(&mut transport);
    let servers = [(ServerId::from("server"), ServerSettings::new(transport))].into();
    let wanted = ConfiguredServers { servers, credentials: PathBuf::new() };
    let Some(visits) = visit_all(&wanted, out).await? else { return Ok(Exit::Cancelled) };
    let Some(visit) = visits.first().filter(|visit| visit.is_ready()) else {
        let reason = visits.first().and_then(|visit| visit.fault()).unwrap_or("the server is not ready");
        out.note(format!("{} {}", out.note_paint().red("error:"), block(reason)));
        return Ok(Exit::ServerFailed);
    };
    print(name, model.as_ref(), &visit.tools, json, out);
    if !json {
        let paint = out.note_paint();
        left_out_lines(visit.tools.left_out()).iter().for_each(|line| out.note(paint.yellow(line)));
    }
    Ok(Exit::Done)
}

/// Reports for each tool how it fits.
pub(super) fn print(name: &str, model: &dyn Model, tools: &Toolset, json: bool, out: &mut Output) {
    let limit = ToolLimit::new(&ModelName::from(name), model, tools);
    let fit = |tool: &Tool| limit.refusal(tool).map_or_else(|| model.fit(tool), ToolFit::Refused);
    let fits: Vec<(&ToolName, ToolFit)> = tools.iter().map(|tool| (&tool.name, fit(tool))).collect();
    if json {
        let rows: Vec<Value> = fits.iter().map(|(tool, fit)| row(tool, fit)).collect();
        out.pretty(&json!({ "for": name, "tools": rows, "skipped": tools.left_out() }));
    } else {
        let paint = out.paint();
        lines(&fits, paint).iter().for_each(|line| out.line(line));
    }
}

/// A tool of `--json`. `reasons` lists the losses, or why the tool is left out.
fn row(tool: &ToolName, fit: &ToolFit) -> Value {
    let (word, reasons) = match fit {
        ToolFit::Whole => ("whole", Vec::new()),
        ToolFit::Lossy(lost) => ("lossy", lost.clone()),
        ToolFit::Refused(why) => ("refused", vec![why.clone()]),
    };
    json!({ "name": tool, "fit": word, "reasons": reasons })
}

fn lines(fits: &[(&ToolName, ToolFit)], paint: Paint) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut whole, mut lossy, mut refused) = (0, 0, 0);
    for (tool, fit) in fits {
        match fit {
            ToolFit::Whole => {
                whole += 1;
                lines.push(format!("{} {tool}", paint.green("✓")));
            }
            ToolFit::Lossy(lost) => {
                lossy += 1;
                lines.push(format!("{} {tool}", paint.yellow("~")));
                lines.extend(lost.iter().map(|lost| format!("    lost: {lost}")));
            }
            ToolFit::Refused(why) => {
                refused += 1;
                lines.push(format!("{} {tool}", paint.red("✗")));
                lines.push(format!("    left out: {why}"));
            }
        }
    }
    let all = count(fits.len(), "tool");
    lines.push(format!("{all}: {whole} as they are, {lossy} with losses, {refused} left out"));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_and_omitted_tools_are_reported_with_reasons() {
        let [find, plan, draw] = ["find", "plan", "draw"].map(|name| ToolName::parse(name).unwrap());
        let fits = [
            (&find, ToolFit::Whole),
            (&plan, ToolFit::Lossy(vec!["/steps: `not` is not understood".into(), "/when: `format`".into()])),
            (&draw, ToolFit::Refused("its schema refers to itself".into())),
        ];
        let expected = [
            "✓ find",
            "~ plan",
            "    lost: /steps: `not` is not understood",
            "    lost: /when: `format`",
            "✗ draw",
            "    left out: its schema refers to itself",
            "3 tools: 1 as they are, 1 with losses, 1 left out",
        ];
        assert_eq!(lines(&fits, Paint::Plain), expected);
        let rows: Vec<Value> = fits.iter().map(|(tool, fit)| row(tool, fit)).collect();
        assert_eq!(rows[0], json!({ "name": "find", "fit": "whole", "reasons": [] }));
        assert_eq!(rows[2]["reasons"], json!(["its schema refers to itself"]));
    }
}
