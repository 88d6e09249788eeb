//! Pagination of lists.

use axum::Json;
use serde::{Deserialize, Serialize};
use toolgate_core::error::ErrorCode;
use toolgate_service::ServiceError;
use utoipa::{IntoParams, ToSchema};

use super::problem::Problem;

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 100;

/// The result of a handler that lists.
pub(super) type PageResult<T> = Result<Json<Page<T>>, Problem>;

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Page<T> {
    /// Always `list`.
    object: &'static str,
    /// The items of this page.
    data: Vec<T>,
    /// Whether there are more items after this page; with the cursor `before`, more items before it.
    has_more: bool,
    /// The id of the first item; pass it as `before`, where a list has this cursor, to retrieve the previous page.
    first_id: Option<String>,
    /// The id of the last item; pass it as `after` to retrieve the next page.
    last_id: Option<String>,
}

impl<T> Page<T> {
    /// A page of rows that were found by asking for one more than the limit.
    pub(super) fn new<R>(mut found: Vec<R>, limit: usize, id: impl Fn(&R) -> String, view: impl Fn(R) -> T) -> Self {
        let has_more = found.len() > limit;
        found.truncate(limit);
        let (first_id, last_id) = (found.first().map(&id), found.last().map(&id));
        Self { object: "list", data: found.into_iter().map(view).collect(), has_more, first_id, last_id }
    }

    /// The page before a cursor, of rows that were found in the opposite order by asking for one more than the limit.
    pub(super) fn before<R>(mut found: Vec<R>, limit: usize, id: impl Fn(&R) -> String, view: impl Fn(R) -> T) -> Self {
        let has_more = found.len() > limit;
        found.truncate(limit);
        found.reverse();
        Self { has_more, ..Self::new(found, limit, id, view) }
    }

    /// The same page with another cursor of the next page, for a list whose cursor can be past its last item.
    pub(super) fn until(self, last: String, has_more: bool) -> Self {
        Self { last_id: Some(last), has_more, ..self }
    }

    /// A list that is short enough to need no pages.
    pub(super) fn whole<R>(all: Vec<R>, id: impl Fn(&R) -> String, view: impl Fn(R) -> T) -> Self {
        Self::new(all, usize::MAX, id, view)
    }
}

/// A cursor and a limit.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Paging {
    /// The number of items to return: 1 to 100. Default: 20.
    #[param(minimum = 1, maximum = 100)]
    pub(super) limit: Option<usize>,
    /// A cursor: items after this one. Pass the `last_id` of the previous page.
    pub(super) after: Option<String>,
}

/// The error for an `after` that names no item.
pub(super) fn unknown_cursor(what: &str, id: &str) -> Problem {
    ServiceError::not_found(what, id).of_parameter("after").into()
}

/// The error for a query parameter whose value is not valid.
pub(super) fn invalid_parameter(name: &str, detail: impl std::fmt::Display) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, format!("`{name}` {detail}"))
}

/// The number of items to return.
pub(super) fn limit(requested: Option<usize>) -> Result<usize, Problem> {
    match requested {
        None => Ok(DEFAULT_LIMIT),
        Some(limit) if (1..=MAX_LIMIT).contains(&limit) => Ok(limit),
        Some(_) => Err(Problem::new(ErrorCode::InvalidRequest, format!("`limit` must be between 1 and {MAX_LIMIT}"))),
    }
}
