//! Criteria for the paths of a Claude Code rule, whose patterns are those of `.gitignore` with four anchors: `//` the file
//! system, `~/` the home folder, `/` and `./` the project, and a name alone at any depth below the project.

use std::path::Path;

use toolgate_core::policy::Verdict;

/// The paths of a rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PathCriteria {
    /// Every path.
    Any,
    /// The folder and everything in it.
    Within(String),
    /// The file, or the folder with everything in it.
    Equals(String),
    /// The files below the folder that a pattern matches.
    Files { folder: String, pattern: String },
    /// Paths that nothing describes; those in this folder are more.
    Inexpressible(String),
}

/// Reads the text in the parentheses of a rule. Fails if the place of the pattern is not known.
///
/// A name alone matches at any depth. `./name` may mean one file or the same: a rule that asks or denies is about every
/// depth.
pub(super) fn read(text: &str, root: &Path, home: Option<&Path>, verdict: Verdict) -> Result<PathCriteria, String> {
    let text = text.trim();
    if matches!(text, "" | "*") {
        return Ok(PathCriteria::Any);
    }
    let (base, rest) = anchored(text, root, home)?;
    let name = match verdict {
        Verdict::Allow => text,
        Verdict::Ask | Verdict::Deny => text.strip_prefix("./").unwrap_or(text),
    };
    let is_name = !name.trim_end_matches('/').contains('/');
    let (rest, is_folder) = match rest.strip_suffix("/**") {
        Some(folder) => (folder, true),
        None if rest == "**" => ("", true),
        None => (rest, false),
    };
    if rest.split('/').any(|part| matches!(part, "." | "..")) {
        return Err("a path with `.` or `..` inside is not translated".to_owned());
    }
    if rest.contains(INEXPRESSIBLE) {
        return Ok(PathCriteria::Inexpressible(joined(&base, literal_folder(rest))));
    }
    let rest = rest.trim_end_matches('/');
    Ok(match (is_folder, is_name) {
        (true, _) if rest.is_empty() => PathCriteria::Within(joined(&base, "")),
        (false, true) => PathCriteria::Files { folder: joined(&base, ""), pattern: rest.to_owned() },
        _ if rest.contains(['*', '?']) => {
            PathCriteria::Files { folder: joined(&base, ""), pattern: format!("/{rest}") }
        }
        (true, _) => PathCriteria::Within(joined(&base, rest)),
        (false, false) => PathCriteria::Equals(joined(&base, rest)),
    })
}

/// The characters of patterns that a condition does not have.
const INEXPRESSIBLE: [char; 6] = ['[', ']', '{', '}', '!', '\\'];

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
    let is_wild = |sign: char| matches!(sign, '*' | '?') || INEXPRESSIBLE.contains(&sign);
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
