//! Lists in pages.

use serde::Serialize;
use utoipa::ToSchema;

use super::problem::Problem;
use crate::core::error::ErrorCode;

const USUAL: usize = 20;
const MOST: usize = 100;

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Page<T> {
    /// `list`.
    object: &'static str,
    /// What is on it.
    data: Vec<T>,
    /// Whether there is more behind it.
    has_more: bool,
    /// What the first one is called.
    first_id: Option<String>,
    /// What the last one is called; give it as `after` to read on.
    last_id: Option<String>,
}

impl<T> Page<T> {
    /// Of what was found by asking for one more than is wanted.
    pub(super) fn of<R>(mut found: Vec<R>, limit: usize, id: impl Fn(&R) -> String, view: impl Fn(R) -> T) -> Self {
        let has_more = found.len() > limit;
        found.truncate(limit);
        let (first_id, last_id) = (found.first().map(&id), found.last().map(&id));
        Self { object: "list", data: found.into_iter().map(view).collect(), has_more, first_id, last_id }
    }
}

/// How many are wanted.
pub(super) fn limit(asked: Option<usize>) -> Result<usize, Problem> {
    match asked {
        None => Ok(USUAL),
        Some(limit) if (1..=MOST).contains(&limit) => Ok(limit),
        Some(_) => Err(Problem::new(ErrorCode::InvalidRequest, format!("`limit` is from 1 to {MOST}"))),
    }
}
