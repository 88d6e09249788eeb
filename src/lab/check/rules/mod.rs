//! Rule table: every mistake that the check names, in one place. Each rule is a page of `docs/rules`, which a test
//! compares with the table and writes with `TOOLGATE_BLESS=1`.

mod rule;

pub use rule::{Group, Rule, Severity};

/// Declares the rules of a group as constants of a file, and the list of them.
macro_rules! rules {
    ($group:ident; $($name:ident = $id:literal, $severity:ident, $title:literal, $places:expr,
       why: $why:literal, fix: $fix:literal;)*) => {
        use super::rule::*;

        $(#[doc = $title]
        pub(in crate::check) static $name: Rule = Rule {
            id: $id, group: Group::$group, severity: Severity::$severity, title: $title, why: $why, fix: $fix,
            places: $places,
        };)*

        /// The rules of this file.
        pub(super) static ALL: &[&Rule] = &[$(&$name),*];
    };
}

pub(in crate::check) mod calls;
pub(in crate::check) mod changes;
pub(in crate::check) mod http;
pub mod pages;
pub(in crate::check) mod protocol;
pub(in crate::check) mod tasks;
pub(in crate::check) mod tools;
pub(in crate::check) mod wire;

/// All rules, in the order of the report.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [wire::ALL, protocol::ALL, http::ALL, tools::ALL, calls::ALL, tasks::ALL, changes::ALL]
        .into_iter()
        .flatten()
        .copied()
}

/// The rule with this id.
pub fn by_id(id: &str) -> Option<&'static Rule> {
    all().find(|rule| rule.id == id)
}
