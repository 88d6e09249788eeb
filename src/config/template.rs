//! Starter configuration of `toolgate init`: it works at once, and explains itself. Without choices it needs no key.

use std::collections::BTreeSet;

use toolgate_core::id::ServerId;

use super::mcp_import::{ServerDefinition, quoted};
use super::settings::Api;

/// A file of the starter configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateFile {
    /// The file name, relative to the configuration's folder.
    pub name: &'static str,
    pub text: String,
}

/// The choices of a starter configuration.
#[derive(Clone, Debug, Default)]
pub struct Starter {
    pub model: StarterModel,
    /// Whether the environment names the model now, so that no script stands in for it.
    pub has_model: bool,
    /// The MCP servers. The demo server of toolgate is added if there are none, or a script stands in for the model.
    pub servers: Vec<(ServerId, ServerDefinition)>,
    /// Those of them whose hints are trusted.
    pub trusted: BTreeSet<ServerId>,
    /// The policy of the agent; `default` if there is none.
    pub policy: Option<String>,
}

/// The model of a starter configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StarterModel {
    /// The one that the environment names, or a script as long as it names none.
    #[default]
    Environment,
    /// A model on a server.
    Server {
        api: Api,
        /// `None` for the provider's own address.
        base_url: Option<String>,
        model: String,
        /// The environment variable with the key.
        key_variable: Option<&'static str>,
    },
}

/// The message with which the demo server's tools can be tried.
pub const DEMO_MESSAGE: &str = "Who is Ada Lindqvist?";

/// The same for other tools.
pub const USUAL_MESSAGE: &str = "What can you do with your tools?";

const TEXT: &str = include_str!("../../examples/config/starter/toolgate.yaml");

impl Starter {
    /// Whether the demo server is among the servers.
    pub fn has_demo_server(&self) -> bool {
        let has_own = self.servers.iter().any(|(id, _)| id.as_str() == "demo");
        let is_played = self.model == StarterModel::Environment && !self.has_model;
        !has_own && (self.servers.is_empty() || is_played)
    }

    /// The files, `toolgate.yaml` first.
    pub fn files(&self) -> Vec<TemplateFile> {
        let mut text = TEXT.to_owned();
        let mut files = Vec::new();
        if let StarterModel::Server { api, base_url, model, key_variable } = &self.model {
            let base_url = base_url.as_ref().map(|url| format!("base_url: {}, ", in_quotes(url)));
            let key = key_variable.map(|variable| format!(", api_key: \"${{{variable}}}\""));
            let (base_url, key) = (base_url.unwrap_or_default(), key.unwrap_or_default());
            let model = in_quotes(model);
            let models = format!("  main:\n    {}: {{ {base_url}model: {model}{key} }}\n\n", api.key());
            text = with_section(&text, "models:\n", "# MCP servers.", &models).replace("model: auto", "model: main");
        } else {
            let conversation = include_str!("../../examples/config/starter/conversation.yaml").to_owned();
            files.push(TemplateFile { name: "conversation.yaml", text: conversation });
        }
        let needs_nothing = !files.is_empty() && self.servers.is_empty();
        if !needs_nothing {
            text = text.replace(" It works without changes and without a key. Try", " Try");
        }
        let yaml = |(id, definition): &(ServerId, ServerDefinition)| match self.trusted.contains(id) {
            true => definition.trusted_yaml(),
            false => definition.yaml.clone(),
        };
        let written: String = self.servers.iter().map(yaml).collect();
        if self.has_demo_server() {
            text = text.replace("  # git:\n", &format!("{written}  # git:\n"));
        } else {
            text = with_section(&text, "servers:\n", "agents:\n", &format!("{written}\n"));
            text = text.replace(DEMO_MESSAGE, USUAL_MESSAGE);
        }
        let demo = self.has_demo_server().then_some("demo").into_iter();
        let ids: Vec<String> = demo.chain(self.servers.iter().map(|(id, _)| id.as_str())).map(quoted).collect();
        text = text.replace("servers: [demo]", &format!("servers: [{}]", ids.join(", ")));
        if let Some(policy) = &self.policy {
            text = text.replace("policy: default\n", &format!("policy: {policy}\n"));
        }
        files.insert(0, TemplateFile { name: super::FILE_NAME, text });
        files
    }
}

/// The text with another content between the beginning of a section and the next one.
fn with_section(text: &str, begin: &str, end: &str, content: &str) -> String {
    let section = text.split_once(begin).and_then(|(before, rest)| Some((before, rest.find(end)?, rest)));
    match section {
        Some((before, end, rest)) => format!("{before}{begin}{content}{}", rest.get(end..).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn in_quotes(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_choices_the_starter_is_the_example() {
        let files = Starter::default().files();
        assert_eq!((files[0].name, files[0].text.as_str()), ("toolgate.yaml", TEXT));
        assert_eq!(files[1].name, "conversation.yaml");
    }

    #[test]
    fn each_choice_changes_its_part_of_the_file_and_no_other() {
        let definition = ServerDefinition {
            yaml: "  git:\n    stdio:\n      command: uvx\n".into(),
            summary: "uvx".into(),
            program: Some("uvx".into()),
            variables: Vec::new(),
            hidden: Vec::new(),
        };
        let model = StarterModel::Server {
            api: Api::Anthropic,
            base_url: None,
            model: "claude-haiku-4-5".into(),
            key_variable: Some("ANTHROPIC_API_KEY"),
        };
        let servers = vec![("git".into(), definition)];
        let starter = Starter { model, servers: servers.clone(), policy: Some("plan".into()), ..Starter::default() };
        let [file] = &starter.files()[..] else { panic!("a script beside a model") };
        for line in [
            "models:\n  main:\n    anthropic: { model: \"claude-haiku-4-5\", api_key: \"${ANTHROPIC_API_KEY}\" }\n\n# MCP",
            "servers:\n  git:\n    stdio:\n      command: uvx\n\nagents:",
            "    model: main\n",
            "    servers: [git]\n",
            "    policy: plan\n",
            "toolgate run \"What can you do",
        ] {
            assert!(file.text.contains(line), "{line}: {}", file.text);
        }
        assert!(!file.text.contains("without a key") && !file.text.contains("demo"), "{}", file.text);

        let trusted = Starter { trusted: ["git".into()].into(), ..starter };
        let text = &trusted.files()[0].text;
        assert!(text.contains("      command: uvx\n    trusted: true\n\nagents:"), "{text}");

        let scripted = Starter { servers, ..Starter::default() };
        let text = &scripted.files()[0].text;
        assert!(text.contains("servers: [demo, git]") && text.contains("  git:\n    stdio:\n"), "{text}");
    }
}
