//! Expansion of scenarios into cases: a case for each row of a table and each model, with its variables filled in.

use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::file::{Answers, Case, Live, ModelChoice, Scenario, ScenarioFile, ServerChoice};

/// A text in a script that the model fills in. It is not a variable of a case.
const OF_SCRIPTS: &str = "last_result";

/// A scenario with one row of its table and one model.
#[derive(Clone, Debug)]
pub struct TestCase {
    /// The scenario with its variables filled in, and with the keys of the file that it does not set itself.
    pub scenario: Scenario,
    /// The name of the row.
    pub case: Option<String>,
    /// The name of the model in the matrix.
    pub model_name: Option<String>,
    pub model: ModelChoice,
    pub server: Option<ServerChoice>,
    pub answers: Answers,
    pub live: Live,
}

impl TestCase {
    /// The name for reports, such as `late orders [Ada] (main)`.
    pub fn title(&self) -> String {
        let case = self.case.as_ref().map(|case| format!(" [{case}]")).unwrap_or_default();
        let model = self.model_name.as_ref().map(|model| format!(" ({model})")).unwrap_or_default();
        format!("{}{case}{model}", self.scenario.name)
    }
}

/// The cases of a file, which is given as JSON. The error names the scenario and the remedy.
pub fn expand(written: &Value) -> Result<Vec<TestCase>, String> {
    let file = ScenarioFile::<Value>::deserialize(written).map_err(|error| error.to_string())?;
    let mut cases = Vec::new();
    for scenario in &file.scenarios {
        let name = scenario.get("name").and_then(Value::as_str).unwrap_or_default();
        let wrong = |error: String| format!("scenario `{name}`: {error}");
        let table = scenario.get("cases").map(Vec::<Case>::deserialize).transpose();
        let table = table.map_err(|error| wrong(format!("cases: {error}")))?.unwrap_or_default();
        let rows: Vec<Option<&Case>> = match table.as_slice() {
            [] => vec![None],
            rows => rows.iter().map(Some).collect(),
        };
        for row in rows {
            let filled = match row {
                Some(row) => filled_scenario(scenario, row),
                None => Scenario::deserialize(scenario).map_err(|error| error.to_string()),
            };
            let merged = with_defaults(filled.map_err(wrong)?, &file);
            for (name, model) in models(&merged).map_err(wrong)? {
                cases.push(TestCase {
                    case: row.map(|row| row.name.clone()),
                    model_name: name,
                    model,
                    server: merged.server.clone(),
                    answers: merged.answers.clone().unwrap_or_default(),
                    live: merged.live.unwrap_or_default(),
                    scenario: merged.clone(),
                });
            }
        }
    }
    let repeated =
        |(index, case): &(usize, &TestCase)| cases.iter().take(*index).any(|other| other.title() == case.title());
    match cases.iter().enumerate().find(repeated) {
        Some((_, case)) => {
            Err(format!("two cases are called `{}`; give each scenario and each row a name of its own", case.title()))
        }
        None => Ok(cases),
    }
}

fn with_defaults(scenario: Scenario, file: &ScenarioFile<Value>) -> Scenario {
    let sets_model = scenario.model.is_some() || !scenario.models.is_empty();
    let (model, models) = match sets_model {
        true => (scenario.model, scenario.models),
        false => (file.model.clone(), file.models.clone()),
    };
    let external = if scenario.external_tools.is_empty() { &file.external_tools } else { &scenario.external_tools };
    Scenario {
        model,
        models,
        external_tools: external.clone(),
        server: scenario.server.or_else(|| file.server.clone()),
        agent: scenario.agent.or_else(|| file.agent.clone()),
        instructions: scenario.instructions.or_else(|| file.instructions.clone()),
        policy: scenario.policy.or_else(|| file.policy.clone()),
        answers: scenario.answers.or_else(|| file.answers.clone()),
        live: scenario.live.or(file.live),
        ..scenario
    }
}

/// The models of a scenario, with their names in a matrix.
fn models(scenario: &Scenario) -> Result<Vec<(Option<String>, ModelChoice)>, String> {
    match (&scenario.model, scenario.models.is_empty()) {
        (Some(_), false) => Err("it has both `model` and `models`; remove one of the two".to_owned()),
        (Some(model), true) => Ok(vec![(None, model.clone())]),
        (None, false) => Ok(scenario.models.iter().map(|(name, model)| (Some(name.clone()), model.clone())).collect()),
        (None, true) => Err("it has no model; add `model: { scripted: [turns] }`, `{ recorded: FILE }` or \
                             `{ configured: NAME }`"
            .to_owned()),
    }
}

/// The scenario of a row. Its error names a variable that the row does not have.
fn filled_scenario(written: &Value, row: &Case) -> Result<Scenario, String> {
    let mut scenario = written.clone();
    if let Some(members) = scenario.as_object_mut() {
        members.remove("cases");
    }
    let filled = filled(&scenario, &row.with).map_err(|error| format!("case `{}`: {error}", row.name))?;
    Scenario::deserialize(filled).map_err(|error| format!("case `{}`: {error}", row.name))
}

/// Whether a file has a variable. Its typed form cannot be read before the variables are filled in.
pub fn has_variables(written: &Value) -> bool {
    match written {
        Value::String(text) => text.replace("{{last_result}}", "").contains("{{"),
        Value::Array(items) => items.iter().any(has_variables),
        Value::Object(members) => members.values().any(has_variables),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The value with its variables replaced. A text that is one variable takes the type of its value.
fn filled(value: &Value, variables: &Map<String, Value>) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => filled_text(text, variables)?,
        Value::Array(items) => items.iter().map(|item| filled(item, variables)).collect::<Result<_, _>>()?,
        Value::Object(members) => {
            let filled_member = |(name, member): (&String, &Value)| Ok((name.clone(), filled(member, variables)?));
            Value::Object(members.iter().map(filled_member).collect::<Result<_, String>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

fn filled_text(text: &str, variables: &Map<String, Value>) -> Result<Value, String> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once("{{") {
        let Some((name, after)) = behind.split_once("}}") else { break };
        filled.push_str(before);
        match (name.trim(), variables.get(name.trim())) {
            (OF_SCRIPTS, None) => filled.push_str("{{last_result}}"),
            (_, Some(value)) if before.is_empty() && after.is_empty() && filled.is_empty() => return Ok(value.clone()),
            (_, Some(Value::String(value))) => filled.push_str(value),
            (_, Some(value)) => filled.push_str(&value.to_string()),
            (name, None) => {
                let known = variables.keys().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                return Err(format!("it has no variable `{name}`; its `with` has {}", or_none(&known)));
            }
        }
        rest = after;
    }
    Ok(Value::String(filled + rest))
}

fn or_none(list: &str) -> &str {
    if list.is_empty() { "none" } else { list }
}
