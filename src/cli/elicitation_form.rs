//! Form of an elicitation request (MCP `requestedSchema`): the fields, their constraints, and a parser for typed
//! values. It has no terminal access. The user enters a field with an unsupported schema as JSON.

use serde_json::{Number, Value};

use super::text::{COMPACT, compact, list};
use crate::app;
use crate::core::tool::{Problem, escape_untrusted};
use crate::ports::InputFindings;

/// One field.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    /// The name of the member in the answer.
    pub(super) name: String,
    /// The server's description, if there is one.
    pub(super) about: Option<String>,
    /// Whether the field is mandatory.
    pub(super) required: bool,
    /// The value of a field that the user leaves empty.
    pub(super) default: Option<Value>,
    kind: Kind,
    schema: Value,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    Choice(Vec<Choice>),
    Choices(Vec<Choice>),
    Other,
}

/// An option with its title.
#[derive(Clone, Debug, PartialEq)]
struct Choice {
    value: Value,
    title: String,
}

impl Field {
    /// The fields of a form, in its order.
    pub(super) fn from_form(form: &Value) -> Vec<Self> {
        let required: Vec<&str> =
            form.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let properties = form.get("properties").and_then(Value::as_object);
        let field = |(name, schema): (&String, &Value)| Self {
            name: name.clone(),
            about: about(schema),
            required: required.contains(&name.as_str()),
            default: schema.get("default").cloned(),
            kind: Kind::from_schema(schema),
            schema: schema.clone(),
        };
        properties.into_iter().flatten().map(field).collect()
    }

    /// The constraints in one line: `seats: integer, 1 to 8, required [2]`.
    pub(super) fn describe(&self) -> String {
        let mut words = vec![self.kind.word().to_owned()];
        words.extend(self.bounds());
        words.extend(self.required.then(|| "required".to_owned()));
        let default = self.default.as_ref().map(|value| format!(" [{}]", display_value(value))).unwrap_or_default();
        format!("{}: {}{default}", escape_untrusted(&self.name), words.join(", "))
    }

    /// The options, numbered from 1; empty for a free-form field.
    pub(super) fn choices(&self) -> Vec<String> {
        let numbered = |(index, choice): (usize, &Choice)| format!("{} {}", index + 1, choice.title);
        match &self.kind {
            Kind::Choice(choices) | Kind::Choices(choices) => choices.iter().enumerate().map(numbered).collect(),
            Kind::Text | Kind::Integer | Kind::Number | Kind::Boolean | Kind::Other => Vec::new(),
        }
    }

    /// Whether the field is a boolean.
    pub(super) fn is_yes_or_no(&self) -> bool {
        self.kind == Kind::Boolean
    }

    /// A valid example value for the user to replace.
    pub(super) fn example(&self) -> Value {
        if let Some(default) = &self.default {
            return default.clone();
        }
        match &self.kind {
            Kind::Text | Kind::Other => Value::from("VALUE"),
            Kind::Integer | Kind::Number => self.schema.get("minimum").cloned().unwrap_or_else(|| Value::from(0)),
            Kind::Boolean => Value::from(true),
            Kind::Choice(choices) => choices.first().map_or(Value::Null, |choice| choice.value.clone()),
            Kind::Choices(choices) => choices.iter().take(1).map(|choice| choice.value.clone()).collect(),
        }
    }

    /// Parses a typed value, and checks it as the whole form will be. The error names the valid values.
    pub(super) fn read(&self, typed: &str) -> Result<Value, String> {
        let value = self.parsed(typed.trim())?;
        match app::check_field(&self.schema, &value) {
            InputFindings::Valid => Ok(value),
            InputFindings::Invalid(problems) => Err(self.refusal(&problems)),
        }
    }

    fn refusal(&self, problems: &[Problem]) -> String {
        match self.schema.get("format").and_then(Value::as_str) {
            Some("date") => "type a date, such as 2026-12-24".to_owned(),
            Some("date-time") => "type a date and a time, such as 2026-12-24T18:00:00Z".to_owned(),
            Some("email") => "type an e-mail address".to_owned(),
            Some("uri") => "type an address, such as https://example.com".to_owned(),
            _ => list(problems.iter().map(|problem| escape_untrusted(&problem.message))),
        }
    }

    fn parsed(&self, typed: &str) -> Result<Value, String> {
        match &self.kind {
            Kind::Text => self.text(typed),
            Kind::Integer => {
                typed.parse::<i64>().map_err(|_| "type a whole number".into()).and_then(|n| self.within(n.into()))
            }
            Kind::Number => typed.parse::<Number>().map_err(|_| "type a number".into()).and_then(|n| self.within(n)),
            Kind::Boolean => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(true.into()),
                "n" | "no" | "false" => Ok(false.into()),
                _ => Err("type yes or no".into()),
            },
            Kind::Choice(choices) => chosen(choices, typed),
            Kind::Choices(choices) => typed.split(',').map(|one| chosen(choices, one.trim())).collect(),
            Kind::Other => super::answers::json_or_text(typed),
        }
    }

    fn text(&self, typed: &str) -> Result<Value, String> {
        let bound = |name: &str| self.schema.get(name).and_then(Value::as_u64);
        let length = typed.chars().count() as u64;
        match (bound("minLength"), bound("maxLength")) {
            (Some(least), _) if length < least => Err(format!("type at least {least} characters")),
            (_, Some(most)) if length > most => Err(format!("type at most {most} characters")),
            _ => Ok(typed.into()),
        }
    }

    fn within(&self, number: Number) -> Result<Value, String> {
        let bound = |name: &str| self.schema.get(name).and_then(Value::as_f64);
        let value = number.as_f64().unwrap_or_default();
        match (bound("minimum"), bound("maximum")) {
            (Some(least), _) if value < least => Err(format!("type a number of at least {least}")),
            (_, Some(most)) if value > most => Err(format!("type a number of at most {most}")),
            _ => Ok(Value::Number(number)),
        }
    }

    fn bounds(&self) -> Option<String> {
        let get = |name: &str| self.schema.get(name);
        let format = get("format").and_then(Value::as_str).map(str::to_owned);
        let of_one = |bound: Option<&Value>| bound.and_then(Value::as_u64) == Some(1);
        let (least, most, unit) = match self.kind {
            Kind::Text if of_one(get("maxLength").or(get("minLength"))) => {
                (get("minLength"), get("maxLength"), " character")
            }
            Kind::Text => (get("minLength"), get("maxLength"), " characters"),
            Kind::Integer | Kind::Number => (get("minimum"), get("maximum"), ""),
            Kind::Choices(_) => (get("minItems"), get("maxItems"), " of them"),
            Kind::Boolean | Kind::Choice(_) | Kind::Other => (None, None, ""),
        };
        let bounds = match (least, most) {
            (Some(least), Some(most)) => Some(format!("{least} to {most}{unit}")),
            (Some(least), None) => Some(format!("at least {least}{unit}")),
            (None, Some(most)) => Some(format!("at most {most}{unit}")),
            (None, None) => None,
        };
        let rules: Vec<String> = format.into_iter().chain(bounds).collect();
        (!rules.is_empty()).then(|| escape_untrusted(&rules.join(", ")))
    }
}

impl Kind {
    fn from_schema(schema: &Value) -> Self {
        if let Some(choices) = choices(schema) {
            return Self::Choice(choices);
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("string") => Self::Text,
            Some("integer") => Self::Integer,
            Some("number") => Self::Number,
            Some("boolean") => Self::Boolean,
            Some("array") => schema.get("items").and_then(choices).map_or(Self::Other, Self::Choices),
            Some(_) | None => Self::Other,
        }
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "yes or no",
            Self::Choice(_) => "one of these",
            Self::Choices(_) => "any of these, separated by commas",
            Self::Other => "JSON",
        }
    }
}

/// The options: an `enum`, with `enumNames` or without, or a list of `const` and `title`.
fn choices(schema: &Value) -> Option<Vec<Choice>> {
    let titled = |choice: &Value| {
        let value = choice.get("const")?.clone();
        let title = choice.get("title").and_then(Value::as_str).map_or_else(|| display_value(&value), escape_untrusted);
        Some(Choice { value, title })
    };
    if let Some(listed) = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array) {
        return listed.iter().map(titled).collect();
    }
    let names: Vec<&Value> = schema.get("enumNames").and_then(Value::as_array).into_iter().flatten().collect();
    let values = schema.get("enum").and_then(Value::as_array)?;
    let named = |(index, value): (usize, &Value)| {
        let name = names.get(index).and_then(|name| name.as_str());
        Choice { value: value.clone(), title: name.map_or_else(|| display_value(value), escape_untrusted) }
    };
    Some(values.iter().enumerate().map(named).collect())
}

fn chosen(choices: &[Choice], typed: &str) -> Result<Value, String> {
    let by_number = typed.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
    let by_name = choices.iter().find(|choice| choice.title == typed || choice.value.as_str() == Some(typed));
    // An option that is a number itself is matched by name first.
    let choice = by_name.or(by_number).map(|choice| choice.value.clone());
    choice.ok_or_else(|| format!("choose one of: {}", list(choices.iter().map(|choice| &choice.title))))
}

fn about(schema: &Value) -> Option<String> {
    let text = |name: &str| schema.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let texts: Vec<String> = [text("title"), text("description")].into_iter().flatten().map(str::to_owned).collect();
    (!texts.is_empty()).then(|| texts.join(": "))
}

fn display_value(value: &Value) -> String {
    value.as_str().map_or_else(|| compact(value, COMPACT), escape_untrusted)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields() -> Vec<Field> {
        Field::from_form(&json!({
            "type": "object",
            "required": ["seats", "meal"],
            "properties": {
                "name": {"type": "string", "title": "Your name", "description": "as in the passport", "maxLength": 5},
                "seats": {"type": "integer", "minimum": 1, "maximum": 8, "default": 2},
                "price": {"type": "number"},
                "insured": {"type": "boolean"},
                "meal": {"type": "string", "enum": ["b", "f"], "enumNames": ["Beef", "Fish"]},
                "class": {"oneOf": [{"const": "c1", "title": "First"}, {"const": "c2", "title": "Second"}]},
                "extras": {"type": "array", "items": {"type": "string", "enum": ["bag", "dog"]}, "maxItems": 2},
                "odd": {"type": "object"},
            },
        }))
    }

    #[test]
    fn a_field_describes_its_constraints() {
        let descriptions: Vec<String> = fields().iter().map(Field::describe).collect();
        let expected = [
            "name: text, at most 5 characters",
            "seats: integer, 1 to 8, required [2]",
            "price: number",
            "insured: yes or no",
            "meal: one of these, required",
            "class: one of these",
            "extras: any of these, separated by commas, at most 2 of them",
            "odd: JSON",
        ];
        assert_eq!(descriptions, expected);
        assert_eq!(fields()[0].about.as_deref(), Some("Your name: as in the passport"));
        assert_eq!(fields()[5].choices(), ["1 First", "2 Second"]);
    }

    #[test]
    fn typed_text_becomes_a_value_of_the_field() {
        let fields = fields();
        let read = |index: usize, typed: &str| fields[index].read(typed);
        for (index, typed, value) in [
            (0, " Ada ", json!("Ada")),
            (1, "3", json!(3)),
            (2, "1.5", json!(1.5)),
            (3, "Y", json!(true)),
            (3, "no", json!(false)),
            (4, "2", json!("f")),
            (4, "Beef", json!("b")),
            (5, "c2", json!("c2")),
            (6, "bag, 2", json!(["bag", "dog"])),
            (7, "{\"a\":1}", json!({"a": 1})),
        ] {
            assert_eq!(read(index, typed), Ok(value), "{typed}");
        }
    }

    #[test]
    fn an_invalid_value_is_reported_with_the_valid_ones() {
        let fields = fields();
        let refused = |index: usize, typed: &str| fields[index].read(typed).expect_err(typed);
        assert_eq!(refused(0, "Adelheid"), "type at most 5 characters");
        assert_eq!(refused(1, "9"), "type a number of at most 8");
        assert_eq!(refused(1, "1.5"), "type a whole number");
        assert_eq!(refused(3, "maybe"), "type yes or no");
        assert_eq!(refused(4, "3"), "choose one of: Beef, Fish");
        assert_eq!(refused(6, "bag, cat"), "choose one of: bag, dog");
    }

    #[test]
    fn an_example_fits_its_field() {
        let examples: Vec<Value> = fields().iter().map(Field::example).collect();
        let expected =
            json!(["VALUE", 2, 0, true, "b", "c1", ["bag"], "VALUE"]).as_array().cloned().unwrap_or_default();
        assert_eq!(examples, expected);
    }
}
