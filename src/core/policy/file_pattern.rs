//! Patterns of files below a folder: `*.pem`, `.env.*`, `config/*.key`, `**/secrets`. They are a part of the patterns of
//! `.gitignore`, with the same meaning. What is not part of it is refused, so that no pattern silently misses.

use crate::pattern::Pattern;

const MAX_BYTES: usize = 200;

/// A pattern of files below a folder. It also matches everything in a folder that it matches.
#[derive(Clone, Debug)]
pub(super) struct FilePattern(Vec<PatternPart>);

#[derive(Clone, Debug)]
enum PatternPart {
    /// `**`: any number of folders.
    AnyFolders,
    /// One name, with `*` and `?`.
    Name(Pattern),
}

impl FilePattern {
    /// Parses a pattern. One without `/`, except at its end, matches at any depth.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("a pattern of files has at most {MAX_BYTES} bytes"));
        }
        if let Some(sign) = text.chars().find(|sign| sign.is_control() || "[]{}!\\".contains(*sign)) {
            let sign = sign.escape_debug();
            return Err(format!("a pattern of files has `*`, `**` and `?`, and no `{sign}`"));
        }
        let rest = text.strip_suffix("/**").unwrap_or(text).trim_end_matches('/');
        let parts: Vec<PatternPart> =
            rest.strip_prefix('/').unwrap_or(rest).split('/').map(PatternPart::parse).collect::<Result<_, _>>()?;
        let at_any_depth =
            (!rest.contains('/') && rest == text.trim_end_matches('/')).then_some(PatternPart::AnyFolders);
        Ok(Self(at_any_depth.into_iter().chain(parts).collect()))
    }

    /// Whether it matches a path, given by its names below the folder.
    pub(super) fn matches(&self, names: &[String]) -> bool {
        // The numbers of parts that the names so far may have used.
        let mut used = self.with_skipped_folders(vec![0]);
        names.iter().any(|name| {
            let next = used.iter().filter_map(|&at| match self.0.get(at)? {
                PatternPart::AnyFolders => Some(at),
                PatternPart::Name(pattern) => pattern.fits(name).then_some(at + 1),
            });
            used = self.with_skipped_folders(next.collect());
            used.contains(&self.0.len())
        })
    }

    /// The number of its parts, to which the cost of a comparison is proportional.
    pub(super) fn parts(&self) -> usize {
        self.0.len()
    }

    /// The same numbers, and those after a `**` that stands for no folder.
    fn with_skipped_folders(&self, mut used: Vec<usize>) -> Vec<usize> {
        let mut index = 0;
        while let Some(&at) = used.get(index) {
            if matches!(self.0.get(at), Some(PatternPart::AnyFolders)) {
                used.push(at + 1);
            }
            index += 1;
        }
        used.sort_unstable();
        used.dedup();
        used
    }
}

impl PatternPart {
    fn parse(part: &str) -> Result<Self, String> {
        match part {
            "" => Err("a pattern of files has an empty name in it".to_owned()),
            "." | ".." => Err("a pattern of files has `.` or `..` in it".to_owned()),
            "**" => Ok(Self::AnyFolders),
            part if part.contains("**") => {
                Err(format!("`**` stands between `/` in a pattern of files, unlike in `{part}`"))
            }
            part => Pattern::parse(part).map(Self::Name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_matches_as_in_gitignore() {
        for (pattern, path, expected) in [
            (".env", ".env", true),
            (".env", "a/b/.env", true),
            (".env", ".env/x", true),
            (".env", ".envrc", false),
            (".env", "a.env", false),
            (".env.*", ".env.local", true),
            (".env.*", "a/.env.local", true),
            (".env.*", ".env", false),
            ("/.env.*", ".env.local", true),
            ("/.env.*", "a/.env.local", false),
            ("*.pem", "a/key.pem", true),
            ("*.pem", "key.pem/x", true),
            ("*.pem", "key.pem.txt", false),
            ("?.c", "a.c", true),
            ("?.c", "ab.c", false),
            ("keys/", "a/keys/x", true),
            ("config/*.key", "config/a.key", true),
            ("config/*.key", "a/config/a.key", false),
            ("config/*.key", "config/sub/a.key", false),
            ("dir/**", "dir/a/b", true),
            ("dir/**", "a/dir/b", false),
            ("**/*.key", "a.key", true),
            ("**/*.key", "a/b/c.key", true),
            ("**/secrets/**", "a/secrets/b/c", true),
            ("**/secrets/**", "a/secret", false),
            ("a/**/b", "a/b", true),
            ("a/**/b", "a/x/y/b", true),
            ("a/**/b", "a/x/y/c", false),
            ("a*/**/*b*", "ax/y/zbz", true),
            ("**", "x", true),
        ] {
            let names: Vec<String> = path.split('/').map(str::to_owned).collect();
            let parsed = FilePattern::parse(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(parsed.matches(&names), expected, "{pattern} {path}");
        }
        assert!(!FilePattern::parse("**").unwrap().matches(&[]));
    }

    #[test]
    fn other_patterns_are_refused() {
        for pattern in
            ["", "/", "a//b", "./a", "../a", "[ab]", "{a,b}", "!a", "\\a", "a**", "a/b**/c", &"a".repeat(201)]
        {
            assert!(FilePattern::parse(pattern).is_err(), "{pattern}");
        }
    }
}
