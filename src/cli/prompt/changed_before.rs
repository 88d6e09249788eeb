//! Calls of a round that change the same file as a later one.

use std::path::{Component, PathBuf};

use crate::core::run::{PendingCall, PendingItem};
use crate::core::tool::file_change::{changed_file, changes_file};

/// The numbers of the items before this position, from 1, that change its file.
pub(in crate::cli) fn changed_before<'a>(items: impl Iterator<Item = &'a PendingItem>, at: usize) -> Vec<usize> {
    let mut files: Vec<_> = items.take(at + 1).map(|item| changed_path(&item.call()?)).collect();
    let Some(own) = files.pop().flatten() else { return Vec::new() };
    files.iter().enumerate().filter(|(_, file)| file.as_ref() == Some(&own)).map(|(at, _)| at + 1).collect()
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
