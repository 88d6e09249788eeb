//! The configuration: reads files and returns validated settings.
//!
//! Written and resolved configuration have different types: [`load`] reads YAML, fills in defaults, expands variables,
//! checks every reference, and reports all errors with file, line and remedy. It opens no connection, starts no program
//! and does not read the environment of the process: variables come from the function that the caller passes.

mod access;
mod agent;
mod entries;
mod error;
mod expand;
mod external;
mod gateway;
mod jsonc;
mod markdown;
mod mask;
mod mcp_file;
mod mcp_import;
mod mcp_inputs;
mod mcp_values;
mod parse_fault;
mod places;
mod policy;
mod policy_import;
mod resolve;
mod resolver;
mod rule_limit;
mod schema;
mod secrets;
mod server_edits;
mod settings;
mod spanned;
mod suggest;
mod template;
mod written;
mod yaml;

use std::path::{Path, PathBuf};

pub use access::{AuthSettings, ClientSettings};
pub use agent::AgentSettings;
pub use error::{ConfigError, Fault};
pub use external::external_tools_file;
pub use gateway::{
    FileSettings, GatewayLimits, GatewaySettings, MediaHostSettings, OidcSettings, Quota, QuotaSettings,
    RetentionSettings, RunsSettings, WebhookEgressSettings, WebhookSettings,
};
pub use mcp_file::mcp_servers_file;
pub use mcp_import::{ImportableServer, ServerDefinition, importable_servers};
pub use mcp_values::has_secret;
pub use places::{AdapterSetting, Places};
pub use policy::{policy_file, policy_text};
pub use policy_import::{ImportSettings, PermissionSource, PolicyImport, ToolMapping, UntranslatedRule, import_policy};
pub use resolve::{PROVIDERS, Provider};
pub use schema::json_schema;
pub use server_edits::{with_server, with_server_of_agent, without_server};
pub use settings::{
    Api, ContentMode, Durability, EnvelopeKeySettings, EnvelopeSettings, HttpModelSettings, KeyMaterial, ModelSettings,
    OtlpProtocol, RedactSettings, ServerSettings, Settings, StoreSettings, TelemetrySettings, TraceContext,
    TransportSettings,
};
pub use template::{DEMO_MESSAGE, Starter, StarterModel, TemplateFile, USUAL_MESSAGE};
pub use toolgate_settings::mcp::{PinnedValue, ProtocolVersionChoice, StdioSettings};

use error::Source;
use resolver::Resolver;
use written::ConfigFile;

/// The default file name, in the current folder.
pub const FILE_NAME: &str = "toolgate.yaml";
/// A name that users expect to be read as well. A file of this name would otherwise be ignored silently.
const OTHER_FILE_NAME: &str = "toolgate.yml";

/// Reads the configuration: the file at `path`, or else the file that `TOOLGATE_CONFIG` names, or else `toolgate.yaml`
/// in the current folder. Without a file the defaults apply: SQLite in `.toolgate/`, one agent `assistant` with the
/// model that the environment names, and the `default` policy, which asks.
pub fn load(path: Option<&Path>, env: &dyn Fn(&str) -> Option<String>) -> Result<Settings, ConfigError> {
    let named = env("TOOLGATE_CONFIG").filter(|name| !name.is_empty()).map(PathBuf::from);
    let here = || Some(PathBuf::from(FILE_NAME)).filter(|path| path.exists());
    let Some(path) = path.map(Path::to_owned).or(named).or_else(here) else {
        if Path::new(OTHER_FILE_NAME).exists() {
            let fault = Fault::new("a configuration of this name is not read by default");
            let fault = fault.with_remedy("rename it to `toolgate.yaml`, or name it with `--config`");
            return Err(fault.at(&Source::new(OTHER_FILE_NAME, ""), None).into());
        }
        let scope = Resolver::new(Source::new("(defaults)", ""), Path::new(""), env);
        return resolve::settings(&ConfigFile::default(), None, scope);
    };
    let source = yaml::read(&path)?;
    let reading = yaml::read_sections(&source);
    let scope = Resolver::new(source, path.parent().unwrap_or(Path::new("")), env);
    let scope = scope.after_faults(reading.faults, reading.faulty);
    match reading.value {
        Some(written) => resolve::settings(&written, Some(&path), scope),
        None => scope.finish(()).and_then(|()| Err(Fault::new("the file cannot be read").into())),
    }
}

/// Reads any YAML or JSON file into a type, with the same errors as the configuration, for example a conversation file.
/// Does not expand variables.
pub fn read_file<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    yaml::parse(&yaml::read(path)?)
}

/// Reads a YAML or JSON file of data, in which `null` is a value, with the same errors as the configuration.
pub fn read_data_file<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    Ok(yaml::parse_foreign(&yaml::read(path)?)?)
}

/// Reads a text of YAML or JSON data, with the same errors; `name` stands for the file in them.
pub fn read_data<T: serde::de::DeserializeOwned>(name: &str, text: &str) -> Result<T, ConfigError> {
    Ok(yaml::parse_foreign(&Source::new(name, text))?)
}

/// Expands `${NAME}` and `${NAME:-default}` in text from another source, as in the configuration.
pub fn expanded(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Result<String, Fault> {
    expand::expand(text, env).map_err(|error| Fault::new(error.to_string()).with_remedy(error.remedy()))
}
