//! Criteria for the paths of a Claude Code rule, whose patterns are those of `.gitignore` with four anchors: `//` the file
//! system, `~/` the home folder, `/` and `./` the project, and a name alone at any depth below the project.

use std::path::Path;

/// The paths of a rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PathCriteria {
    /// Every path.
    Any,
    /// The folder and everything in it.
    Within(String),
    /// The file, or the folder with everything in it.
    Equals(String),
    /// Paths that no folder describes; those in this folder are more.
    Inexpressible(String),
}

/// Reads the text in the parentheses of a rule. Fails if the place of the pattern is not known.
pub(super) fn read(text: &str, root: &Path, home: Option<&Path>) -> Result<PathCriteria, String> {
    let text = text.trim();
    if matches!(text, "" | "*") {
        return Ok(PathCriteria::Any);
    }
    let (base, rest) = anchored(text, root, home)?;
    let is_name = !text.trim_end_matches('/').contains('/');
    let (rest, is_folder) = match rest.strip_suffix("/**") {
        Some(folder) => (folder, true),
        None if rest == "**" => ("", true),
        None => (rest, false),
    };
    if rest.split('/').any(|part| matches!(part, "." | "..")) {
        return Err("a path with `.` or `..` inside is not translated".to_owned());
    }
    let literal = literal_folder(rest);
    if literal.len() < rest.len() {
        return Ok(PathCriteria::Inexpressible(joined(&base, literal)));
    }
    let path = joined(&base, rest.trim_end_matches('/'));
    Ok(match (is_folder, is_name) {
        (true, _) => PathCriteria::Within(path),
        // A name matches at any depth.
        (false, true) => PathCriteria::Inexpressible(joined(&base, "")),
        (false, false) => PathCriteria::Equals(path),
    })
}

/// The folder that a pattern begins at, and the pattern below it.
fn anchored<'a>(text: &'a str, root: &Path, home: Option<&Path>) -> Result<(String, &'a str), String> {
    let written = |path: &Path| path.to_str().map(str::to_owned).ok_or("the path of the folder is not text".to_owned());
    if let Some(rest) = text.strip_prefix("//") {
        return Ok((String::new(), rest));
    }
    if let Some(rest) = text.strip_prefix("~/") {
        let home = home.ok_or("the home folder is not known".to_owned())?;
        return Ok((written(home)?, rest));
    }
    let rest = text.strip_prefix("./").or_else(|| text.strip_prefix('/')).unwrap_or(text);
    Ok((written(root)?, rest))
}

/// The folders of a pattern before its first part with a wildcard; all of it without one.
fn literal_folder(pattern: &str) -> &str {
    let is_wild = |sign: char| matches!(sign, '*' | '?' | '[' | ']' | '{' | '}' | '!' | '\\');
    let Some(at) = pattern.find(is_wild) else { return pattern };
    let before = pattern.get(..at).unwrap_or_default();
    before.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn joined(base: &str, rest: &str) -> String {
    let base = base.trim_end_matches('/');
    match (base, rest) {
        ("", "") => "/".to_owned(),
        (base, "") => base.to_owned(),
        (base, rest) => format!("{base}/{rest}"),
    }
}
