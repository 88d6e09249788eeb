//! Configuration files: the settings of valid ones, and the errors of invalid ones.

mod agents;
mod answer_times;
mod defaults;
mod egress;
mod faults;
mod files;
mod good;
mod images;
mod import;
mod policies;
mod prices;
mod schema;
mod variants;

use std::path::Path;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use tempfile::TempDir;
use toolgate::config::{self, ConfigError, Settings};

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
    folder
}

/// The environment of these tests.
fn env(name: &str) -> Option<String> {
    let value = match name {
        "OPENAI_API_KEY" => "sk-very-secret",
        "GIT_TOKEN" => "git-very-secret",
        "WEB_TOKEN" => "web-very-secret",
        _ => return None,
    };
    Some(value.into())
}

fn no_env(_: &str) -> Option<String> {
    None
}

/// Loads `toolgate.yaml` with this text, alone in its folder.
fn load(text: &str) -> Result<Settings, ConfigError> {
    let folder = folder(&[("toolgate.yaml", text)]);
    config::load(Some(&folder.path().join("toolgate.yaml")), &no_env)
}

/// The error as a user sees it, without the folder.
fn rendered(error: &ConfigError, folder: &Path) -> String {
    let mut text = String::new();
    let handler = GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor()).with_width(400);
    handler.render_report(&mut text, error as &dyn Diagnostic).expect("rendered");
    without(folder, &text)
}

/// The text without the folder's own path.
fn without(folder: &Path, text: &str) -> String {
    text.replace(&format!("{}/", folder.display()), "").replace(&folder.display().to_string(), ".")
}

fn example(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/config").join(name)
}
