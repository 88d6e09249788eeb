//! Keyset pagination: the rows that follow a cursor row in the order of an index, so that a page reads only its own
//! rows.

use super::query::Query;
use super::units::integer;

/// The order of a list: by creation time, then by id.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    OldestFirst,
    NewestFirst,
}

/// Restricts a query to a page. The query must already have a condition.
pub(super) fn restrict<'a>(
    query: &mut Query<'a>,
    table: &str,
    order: Order,
    after: Option<&'a str>,
    limit: Option<usize>,
) {
    let (follows, direction) = match order {
        Order::OldestFirst => (">", "ASC"),
        Order::NewestFirst => ("<", "DESC"),
    };
    if let Some(after) = after {
        query.push(format!(" AND (created_at, id) {follows} (SELECT created_at, id FROM {table} WHERE id = "));
        query.push_bind(after).push(")");
    }
    query.push(format!(" ORDER BY created_at {direction}, id {direction}"));
    if let Some(limit) = limit {
        query.push(" LIMIT ").push_bind(integer(limit as u64));
    }
}
