//! Counters of rules: a use is counted in the transaction that compares the total with the maximum.

use rusqlite::{Connection, Error};
use toolgate_core::policy::LimitAmount;
use toolgate_ports::{CountAnswer, CountedUse, RuleCounter};

use super::query::{Query, query};
use super::units::integer;
use super::writer::Write;

const TOTAL: &str =
    "SELECT total FROM rule_counter WHERE tenant = ?1 AND policy = ?2 AND rule = ?3 AND time_window = ?4";
const AMOUNT: &str = "SELECT amount FROM rule_use
    WHERE tenant = ?1 AND policy = ?2 AND rule = ?3 AND time_window = ?4 AND id = ?5";
const SET_TOTAL: &str =
    "INSERT INTO rule_counter (tenant, policy, rule, time_window, total) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT DO UPDATE SET total = excluded.total";
const SET_AMOUNT: &str = "INSERT INTO rule_use (tenant, policy, rule, time_window, id, amount)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO UPDATE SET amount = excluded.amount";
const FORGET: [&str; 2] = [
    "DELETE FROM rule_counter WHERE tenant = ?1 AND policy = ?2 AND rule = ?3 AND time_window < ?4",
    "DELETE FROM rule_use WHERE tenant = ?1 AND policy = ?2 AND rule = ?3 AND time_window < ?4",
];

impl Write for CountedUse {
    type Answer = CountAnswer;

    fn apply(&self, db: &Connection) -> Result<CountAnswer, Error> {
        let total = amount(of(TOTAL, &self.counter, &self.counter.window), db)?;
        let before = amount(of(AMOUNT, &self.counter, &self.counter.window).bind(&self.id), db)?;
        let others = LimitAmount::from_millionths(total.millionths().saturating_sub(before.millionths()));
        let own = before.max(self.amount);
        if others.plus(own) > self.max {
            return Ok(CountAnswer::Exceeds(others));
        }
        if own == before && before > LimitAmount::default() {
            return Ok(CountAnswer::Counted);
        }
        let counter = |sql| of(sql, &self.counter, &self.counter.window);
        counter(SET_TOTAL).bind(integer(others.plus(own).millionths())).execute(db)?;
        counter(SET_AMOUNT).bind(&self.id).bind(integer(own.millionths())).execute(db)?;
        for sql in FORGET {
            of(sql, &self.counter, &self.expired).execute(db)?;
        }
        Ok(CountAnswer::Counted)
    }
}

fn of<'a>(sql: &'static str, counter: &'a RuleCounter, window: &'a str) -> Query<'a> {
    query(sql).bind(counter.tenant.as_str()).bind(&counter.policy).bind(&counter.rule).bind(window)
}

/// The amount of the row; nothing without one.
fn amount(query: Query<'_>, db: &Connection) -> Result<LimitAmount, Error> {
    let row: Option<(i64,)> = query.optional(db)?;
    Ok(LimitAmount::from_millionths(row.map_or(0, |(amount,)| amount.unsigned_abs())))
}
