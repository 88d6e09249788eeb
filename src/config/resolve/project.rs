//! Parts of a system prompt beside an agent's own instructions: presets, and the instruction files of the folder that the
//! operator names as the agent's working directory.
//!
//! Only the named folder is read, never its parents or the folder of the process, and no file outside it.

use std::path::{Path, PathBuf};

use crate::agent::AgentSettings;
use crate::error::Fault;
use crate::resolver::Resolver;
use crate::spanned::{Located, Location, Text};
use crate::written::{Agent, SettingSource};
use crate::{suggest, yaml};

/// The instruction files of a project, in this order.
const FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// The most text of all instruction files of a project.
const MAX_BYTES: usize = 64 * 1024;

/// The presets, by name.
const PRESETS: [(&str, &str); 2] = [
    ("coding", include_str!("../../../instructions/coding.md")),
    ("research", include_str!("../../../instructions/research.md")),
];

/// The instructions of the preset with that name.
pub(super) fn preset(written: &Text, scope: &mut Resolver<'_>) -> String {
    let name = scope.text(written);
    let found = PRESETS.iter().find(|(preset, _)| *preset == name);
    if found.is_none() {
        let remedy = suggest::remedy(&name, PRESETS.iter().map(|(preset, _)| *preset), "presets");
        scope.fault(Fault::new(format!("there are no instructions `{name}`")).with_remedy(remedy), written.place());
    }
    found.map(|(_, text)| text.trim_end().to_owned()).unwrap_or_default()
}

/// The working directory of an agent, and the instructions of the project in it.
pub(super) fn of_agent(base: &AgentSettings, written: &Agent, scope: &mut Resolver<'_>) -> (Option<PathBuf>, String) {
    let own = written.working_directory.as_ref();
    let folder = own.map_or_else(|| base.working_directory.clone(), |text| working_directory(text, scope));
    let sources = written.setting_sources.as_ref();
    let reads = |source: &Located<SettingSource>| match source.value() {
        SettingSource::Project => true,
    };
    let asked = sources.and_then(|sources| sources.iter().find(|source| reads(source)));
    if let Some(source) = asked.filter(|_| folder.is_none() && own.is_none()) {
        let fault = Fault::new("`setting_sources: [project]` needs a `working_directory`");
        scope.fault(fault.with_remedy("add `working_directory:` with the folder of the project"), source.place());
    }
    let place = asked.and_then(Located::place).or_else(|| own.and_then(Located::place));
    let project = match (&folder, sources, own) {
        (None, _, _) => String::new(),
        (Some(_), Some(_), _) if asked.is_none() => String::new(),
        (Some(_), None, None) => base.project.clone(),
        (Some(folder), _, _) => instructions(folder, place, scope),
    };
    (folder, project)
}

/// The absolute path of a working directory.
fn working_directory(written: &Text, scope: &mut Resolver<'_>) -> Option<PathBuf> {
    let path = scope.path(written);
    match std::fs::canonicalize(&path) {
        Ok(folder) if folder.is_dir() => Some(folder),
        Ok(_) | Err(_) => {
            let fault =
                Fault::new(format!("the working directory `{}` is not a folder that can be read", path.display()));
            scope.fault(fault.with_remedy("name an existing folder"), written.place());
            None
        }
    }
}

/// The texts of the instruction files in a working directory.
fn instructions(folder: &Path, place: Option<Location>, scope: &mut Resolver<'_>) -> String {
    let mut texts: Vec<(&str, String)> = Vec::new();
    for name in FILES {
        let path = folder.join(name);
        if !path.exists() {
            continue;
        }
        match read_inside(folder, &path) {
            // One of the files is often a copy of the other.
            Ok(text) if text.is_empty() || texts.iter().any(|(_, known)| *known == text) => {}
            Ok(text) => texts.push((name, text)),
            Err(fault) => scope.unreadable(fault, place),
        }
    }
    let bytes: usize = texts.iter().map(|(_, text)| text.len()).sum();
    if bytes > MAX_BYTES {
        let most = MAX_BYTES / 1024;
        let fault = Fault::new(format!("the instruction files in `{}` have more than {most} KiB", folder.display()));
        scope.fault(fault.with_remedy("shorten them, or write `setting_sources: []`"), place);
        return String::new();
    }
    let sections = texts.iter().map(|(name, text)| format!("# Instructions of the project ({name})\n\n{text}"));
    sections.collect::<Vec<_>>().join("\n\n")
}

/// A link to a file elsewhere would send that file to the model's provider.
fn read_inside(folder: &Path, path: &Path) -> Result<String, Fault> {
    let is_inside = std::fs::canonicalize(path).is_ok_and(|leads_to| leads_to.starts_with(folder));
    if !is_inside {
        let fault = Fault::new(format!("`{}` leads to a file outside its folder", path.display()));
        return Err(fault.with_remedy("replace the link by the file, or write `setting_sources: []`"));
    }
    Ok(yaml::read(path)?.text().trim().to_owned())
}
