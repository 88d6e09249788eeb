//! Calls of a round that change the same file as a later one.

use std::path::{Component, PathBuf};

use crate::cli::argument_lines::EarlierChange;
use crate::core::run::{PendingCall, PendingItem};
use crate::core::tool::Arguments;
use crate::core::tool::file_change::{changed_file, changes_file};

/// The items before this position that change its file.
pub(in crate::cli) fn changed_before<'a>(
    items: impl Iterator<Item = &'a PendingItem>,
    at: usize,
) -> Vec<EarlierChange> {
    let changed = |item: &'a PendingItem| item.call().map(|call| (changed_path(&call), call.arguments.into_owned()));
    let mut calls: Vec<_> = items.take(at + 1).map(changed).collect();
    let Some((Some(own), _)) = calls.pop().flatten() else { return Vec::new() };
    let earlier = |(at, call): (usize, Option<(Option<PathBuf>, Arguments)>)| {
        let (file, arguments) = call?;
        (file.as_ref() == Some(&own)).then_some(EarlierChange { number: at + 1, arguments })
    };
    calls.into_iter().enumerate().filter_map(earlier).collect()
}

/// The path of the file that a call changes, from the root and without `.` and `..`. Links are not followed.
fn changed_path(call: &PendingCall<'_>) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    let arguments = call.arguments.as_object().filter(|arguments| changes_file(arguments))?;
    for component in std::path::absolute(changed_file(arguments)?).ok()?.components() {
        if component == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(component);
        }
    }
    Some(plain)
}
