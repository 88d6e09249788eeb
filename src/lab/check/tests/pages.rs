//! Pages of the rules: each rule has the page that the rule table says, and no page is left over.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::check::rules::{Rule, all, pages};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

#[test]
fn every_rule_has_its_page() {
    let rules: Vec<&Rule> = all().collect();
    let mut expected: Vec<(PathBuf, String)> =
        rules.iter().map(|rule| (docs().join(format!("rules/{}.md", rule.id)), pages::page(rule))).collect();
    expected.push((docs().join("rules.md"), pages::index(&rules)));
    for (path, text) in expected {
        if std::env::var("TOOLGATE_BLESS").is_ok() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &text).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(written, text, "{}; TOOLGATE_BLESS=1 writes it", path.display());
    }
}

#[test]
fn every_page_belongs_to_a_rule() {
    let rules: BTreeSet<String> = all().map(|rule| format!("{}.md", rule.id)).collect();
    let pages = fs::read_dir(docs().join("rules")).unwrap();
    let pages: BTreeSet<String> = pages.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(pages, rules);
}

#[test]
fn ids_are_unique_and_in_kebab_case() {
    let ids: Vec<&str> = all().map(|rule| rule.id).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    assert!(
        ids.iter().all(|id| id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')),
        "{ids:?}"
    );
}
