//! Mentions of files in a message, as `@path`: the files to attach, and the paths that complete the last one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::output::Output;
use crate::core::tool::escape_untrusted;

/// What may follow a path in a sentence.
const PUNCTUATION: [char; 8] = ['.', ',', ';', ':', '?', '!', ')', '"'];

/// The files that the message names, each once. Another word that begins with `@` is text.
pub(super) fn mentioned_files(message: &str) -> BTreeSet<&Path> {
    mentioned_names(message).filter_map(existing_file).collect()
}

/// Names the words after an `@` that look like a path, and name no file.
pub(super) fn note_missing_files(message: &str, out: &mut Output) {
    for missing in missing_files(message) {
        out.note(format!("there is no file {}, so its name stays text", escape_untrusted(missing)));
    }
}

fn missing_files(message: &str) -> BTreeSet<&str> {
    let missing = mentioned_names(message).filter(|name| existing_file(name).is_none() && !Path::new(name).is_dir());
    missing.map(|name| name.trim_end_matches(PUNCTUATION)).filter(|name| name.contains(['/', '.'])).collect()
}

fn mentioned_names(message: &str) -> impl Iterator<Item = &str> {
    message.split_whitespace().filter_map(|word| word.strip_prefix('@'))
}

fn existing_file(name: &str) -> Option<&Path> {
    let spellings = [name, name.trim_end_matches(PUNCTUATION)].map(Path::new);
    spellings.into_iter().find(|path| path.is_file())
}

/// The message with each path that can stand in place of its last word, if that begins with `@`. Hidden files are left out
/// unless the dot is typed, and so are names with a space, which end the word.
pub(super) fn completed_mentions(message: &str) -> Vec<String> {
    let path = message.split(char::is_whitespace).next_back().and_then(|word| word.strip_prefix('@'));
    let Some(path) = path else { return Vec::new() };
    let typed = path.rsplit_once('/').map_or(path, |(_, name)| name);
    let (before, folder) = (message.strip_suffix(typed), path.strip_suffix(typed).filter(|folder| !folder.is_empty()));
    let found = fs::read_dir(folder.unwrap_or(".")).into_iter().flatten().flatten();
    let completed = found.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let is_word = !name.contains(char::is_whitespace);
        let is_meant = is_word && name.starts_with(typed) && (typed.starts_with('.') || !name.starts_with('.'));
        let end = if entry.path().is_dir() { "/" } else { "" };
        is_meant.then(|| format!("{}{name}{end}", before.unwrap_or_default()))
    });
    completed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_existing_file_is_mentioned() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
        fs::write(path("a.txt"), "a").expect("written");
        let (file, at) = (path("a.txt"), folder.path().display());
        let message =
            format!("Compare @{file}, (@{file}) and @{file}. Ask @ada, a@{file} and @{at}/. Not @b.txt, @ada.");
        assert_eq!(mentioned_files(&message), BTreeSet::from([Path::new(&file)]));
        assert_eq!(missing_files(&message), BTreeSet::from(["b.txt"]));
    }

    #[test]
    fn the_path_at_the_end_is_completed() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path().display();
        for name in ["notes.md", "notes.txt", "notes of May", ".hidden"] {
            fs::write(folder.path().join(name), "").expect("written");
        }
        fs::create_dir(folder.path().join("src")).expect("made");
        let completed = |typed: &str| {
            let mut completed = completed_mentions(&format!("Read @{at}/{typed}"));
            completed.sort();
            completed
        };
        let whole = |names: &[&str]| names.iter().map(|name| format!("Read @{at}/{name}")).collect::<Vec<_>>();
        assert_eq!(completed("no"), whole(&["notes.md", "notes.txt"]));
        assert_eq!(completed(""), whole(&["notes.md", "notes.txt", "src/"]));
        assert_eq!(completed(".h"), whole(&[".hidden"]));
        assert_eq!(completed_mentions(&format!("Read {at}/no")), [] as [&str; 0]);
    }
}
