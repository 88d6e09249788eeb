//! Paths of files: whether one lies within a folder, by its text and by where its links lead (decision 0015).
//!
//! A path is parsed by POSIX rules. A path that a server could read differently (`~`, addresses, escapes, backslashes)
//! is refused, so that a condition about it is neither true nor false, and so is a relative path that is compared with an
//! absolute folder, and the reverse.

use std::collections::BTreeMap;

use super::file_pattern::FilePattern;
use crate::tool::escape_untrusted;

/// Resolved links of paths: the facts of the file system that conditions need besides the text of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Links {
    /// Only texts are compared. For examples, and for calls that are not about to run.
    Ignored,
    /// They cannot be resolved. Contains the reason.
    Unresolvable(String),
    /// Each path with its resolved path, or the reason why that is not known.
    Resolved(BTreeMap<String, Result<String, String>>),
}

/// A path as a list of names, without `.` and `..`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names(Vec<String>);

impl Names {
    /// Parses an absolute path; `..` removes the name before it.
    pub(super) fn parse(path: &str) -> Result<Self, String> {
        if let Some(reason) = refusal(path) {
            return Err(reason.to_owned());
        }
        // The folder above the root is the root.
        Ok(Self::of(path, false).unwrap_or_default())
    }

    /// Parses a relative path that does not leave the folder that it begins in.
    pub(super) fn parse_relative(path: &str) -> Result<Self, String> {
        if path.is_empty() {
            return Err("a path is empty".to_owned());
        }
        if path.starts_with('/') {
            return Err("a path is absolute, and the folder is not".to_owned());
        }
        if path.starts_with('~') || path.contains(':') {
            return Err("a path has a `~` or `:` in it, which some programs replace".to_owned());
        }
        if let Some(reason) = refusal(&format!("/{path}")) {
            return Err(reason.to_owned());
        }
        Self::of(path, true).ok_or_else(|| "a relative path leaves its folder with `..`".to_owned())
    }

    /// Whether conditions about a folder compare relative paths.
    fn parser_for(folder: &str) -> fn(&str) -> Result<Self, String> {
        if folder.starts_with('/') { Self::parse } else { Self::parse_relative }
    }

    /// The names of a path; `..` removes the name before it. `None` if there is none before it, and one is needed.
    fn of(path: &str, needs_one: bool) -> Option<Self> {
        let mut names = Vec::new();
        for name in path.split('/') {
            match name {
                "" | "." => {}
                ".." if names.pop().is_none() && needs_one => return None,
                ".." => {}
                name => names.push(name.to_owned()),
            }
        }
        Some(Self(names))
    }
}

/// Whether a path lies within a folder; an error where its text and its links disagree, or cannot be known.
pub(super) fn is_within(path: &str, folder: &str, links: &Links) -> Result<bool, String> {
    let lies_within = |path: &Names, folder: &Names| path.0.starts_with(&folder.0);
    let ComparedPath { by_text, by_target } = compare(path, folder, links, lies_within)?;
    match by_target {
        Some((found, leads_to)) if found != by_text => Err(leads_elsewhere(path, leads_to)),
        Some(_) | None => Ok(by_text),
    }
}

/// Whether a path leads to a file of this pattern below a folder. A link to such a file is one; an error where the path is
/// such a file by its text alone, or its links cannot be known.
pub(super) fn is_file(path: &str, folder: &str, pattern: &FilePattern, links: &Links) -> Result<bool, String> {
    let matches =
        |path: &Names, folder: &Names| path.0.strip_prefix(&*folder.0).is_some_and(|names| pattern.matches(names));
    let ComparedPath { by_text, by_target } = compare(path, folder, links, matches)?;
    match by_target {
        Some((false, leads_to)) if by_text => Err(leads_elsewhere(path, leads_to)),
        Some((found, _)) => Ok(found),
        None => Ok(by_text),
    }
}

/// The results of a comparison of a path with a folder.
struct ComparedPath<'a> {
    by_text: bool,
    /// The result for their targets, and the target of the path; `None` where only texts are compared.
    by_target: Option<(bool, &'a str)>,
}

fn compare<'a>(
    path: &str,
    folder: &str,
    links: &'a Links,
    comparison: impl Fn(&Names, &Names) -> bool,
) -> Result<ComparedPath<'a>, String> {
    let names = Names::parser_for(folder);
    let by_text = comparison(&names(path)?, &names(folder)?);
    let resolved = match links {
        Links::Ignored => return Ok(ComparedPath { by_text, by_target: None }),
        Links::Unresolvable(reason) => return Err(format!("links of paths cannot be resolved: {reason}")),
        Links::Resolved(resolved) => |path: &str| match resolved.get(path) {
            Some(Ok(resolved)) => Ok(resolved),
            Some(Err(reason)) => Err(format!("links of a path cannot be resolved: {reason}")),
            None => Err("links of a path were not resolved".to_owned()),
        },
    };
    let (leads_to, folder) = (resolved(path)?, resolved(folder)?);
    let found = comparison(&Names::parse(leads_to)?, &Names::parse(folder)?);
    Ok(ComparedPath { by_text, by_target: Some((found, leads_to)) })
}

/// The target is part of the reason: an approval is for this target, not for a later one.
fn leads_elsewhere(path: &str, leads_to: &str) -> String {
    let (path, leads_to) = (escape_untrusted(path), escape_untrusted(leads_to));
    format!("a link on the path leads elsewhere than its text says: `{path}` leads to `{leads_to}`")
}

/// The reason why a text is not an unambiguous path.
fn refusal(path: &str) -> Option<&'static str> {
    if path.chars().any(char::is_control) {
        return Some("a path has a control character in it");
    }
    if path.contains('\\') {
        return Some("a path has a backslash in it, which separates names on some systems");
    }
    if !path.starts_with('/') {
        return Some("a path is not absolute: it does not begin with `/`");
    }
    if path.starts_with("//") {
        return Some("a path begins with `//`, which names another machine on some systems");
    }
    let hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    let mut bytes = path.as_bytes().windows(3);
    if bytes.any(|three| three.first() == Some(&b'%') && hex(three.get(1)) && hex(three.get(2))) {
        return Some("a path has an escape such as `%2e` in it, which some programs decode");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_within_a_folder_by_its_names() {
        for (path, expected) in [
            ("/srv", true),
            ("/srv/", true),
            ("/srv/a/b", true),
            ("/srv//a/./b", true),
            ("/srv/a/../b", true),
            ("/tmp/../srv/a", true),
            ("/../srv/a", true),
            ("/srv/..a", true),
            ("/srv/100%", true),
            ("/srv/a:b", true),
            ("/srvx", false),
            ("/srv/..", false),
            ("/srv/../etc/passwd", false),
            ("/srv/a/../../etc", false),
            ("/SRV/a", false),
            ("/", false),
        ] {
            assert_eq!(is_within(path, "/srv", &Links::Ignored), Ok(expected), "{path}");
        }
    }

    #[test]
    fn a_relative_path_is_within_a_relative_folder() {
        for (path, folder, expected) in [
            ("src/a", "src", true),
            ("./src/./a", "src", true),
            ("src", "src", true),
            ("lib/../src/a", "src", true),
            ("srcs/a", "src", false),
            ("src/../a", "src", false),
            ("a", ".", true),
            (".env", ".", true),
        ] {
            assert_eq!(is_within(path, folder, &Links::Ignored), Ok(expected), "{path} {folder}");
        }
        for path in ["", "/src/a", "../src/a", "src/../../src/a", "~/a", "C:/a", "file:a", "a\\b", "a%2fb", "a\0b"] {
            assert!(is_within(path, "src", &Links::Ignored).is_err(), "{path:?}");
        }
    }

    #[test]
    fn ambiguous_paths_are_refused() {
        for path in [
            "",
            "a",
            "./a",
            "../srv/a",
            "~/a",
            "~root/a",
            "file:///srv/a",
            "C:/srv",
            "C:\\srv",
            "\\\\host\\srv",
            "/srv\\..\\etc",
            "//host/srv",
            "/srv/%2e%2e/etc",
            "/srv/%2F",
            "/srv/a\0b",
            "/srv/a\nb",
            " /srv/a",
        ] {
            assert!(is_within(path, "/srv", &Links::Ignored).is_err(), "{path:?}");
        }
    }

    #[test]
    fn links_have_to_agree_with_the_text() {
        let resolved = |pairs: &[(&str, Result<&str, &str>)]| {
            let own = |(path, to): &(&str, Result<&str, &str>)| {
                ((*path).to_owned(), to.map(str::to_owned).map_err(str::to_owned))
            };
            Links::Resolved(pairs.iter().map(own).collect())
        };
        let root = ("/srv", Ok("/mnt/data"));
        let within = |path: &str, to: Result<&str, &str>| is_within(path, "/srv", &resolved(&[root, (path, to)]));
        assert_eq!(within("/srv/a", Ok("/mnt/data/a")), Ok(true));
        assert_eq!(within("/tmp/a", Ok("/tmp/a")), Ok(false));
        for (path, to) in [("/srv/a", Ok("/etc/passwd")), ("/tmp/a", Ok("/mnt/data/a")), ("/srv/a", Err("it loops"))] {
            assert!(within(path, to).is_err(), "{path} {to:?}");
        }
        assert!(is_within("/srv/a", "/srv", &resolved(&[root])).is_err());
        assert!(is_within("/srv/a", "/srv", &Links::Unresolvable("far away".into())).is_err());
    }

    #[test]
    fn a_link_to_a_file_of_a_pattern_is_such_a_file() {
        let pattern = FilePattern::parse(".env.*").unwrap();
        let is_env = |path: &str, to: Result<&str, &str>| {
            let own = |text: &str| text.to_owned();
            let links = [(own("/srv"), Ok(own("/mnt/data"))), (own(path), to.map(own).map_err(own))];
            is_file(path, "/srv", &pattern, &Links::Resolved(links.into_iter().collect()))
        };
        assert_eq!(is_env("/srv/a/.env.local", Ok("/mnt/data/a/.env.local")), Ok(true));
        assert_eq!(is_env("/srv/notes", Ok("/mnt/data/.env.local")), Ok(true));
        assert_eq!(is_env("/tmp/notes", Ok("/mnt/data/.env.local")), Ok(true));
        assert_eq!(is_env("/srv/notes", Ok("/mnt/data/notes")), Ok(false));
        assert_eq!(is_env("/tmp/.env.local", Ok("/tmp/.env.local")), Ok(false));
        assert!(is_env("/srv/.env.local", Ok("/etc/passwd")).unwrap_err().contains("leads to `/etc/passwd`"));
        assert!(is_env("/srv/notes", Err("it loops")).is_err());
        assert!(is_file("/srv/notes", "/srv", &pattern, &Links::Unresolvable("far away".into())).is_err());
        assert_eq!(is_file("/srv/.env.x", "/srv", &pattern, &Links::Ignored), Ok(true));
    }
}
