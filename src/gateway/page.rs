//! Lists in pages.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

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

    /// All there is, of which nobody has so many that they would want them in pieces.
    pub(super) fn whole<R>(all: Vec<R>, id: impl Fn(&R) -> String, view: impl Fn(R) -> T) -> Self {
        Self::of(all, usize::MAX, id, view)
    }
}

/// Where a page begins, and how long it is.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Paging {
    /// How many: 1 to 100, and 20 unless something else is said.
    #[param(minimum = 1, maximum = 100)]
    pub(super) limit: Option<usize>,
    /// Those that come after this one: `last_id` of the page before.
    pub(super) after: Option<String>,
}

/// How many are wanted.
pub(super) fn limit(asked: Option<usize>) -> Result<usize, Problem> {
    match asked {
        None => Ok(USUAL),
        Some(limit) if (1..=MOST).contains(&limit) => Ok(limit),
        Some(_) => Err(Problem::new(ErrorCode::InvalidRequest, format!("`limit` is from 1 to {MOST}"))),
    }
}
