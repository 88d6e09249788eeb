//! Counters of rules: a use is counted in the transaction that compares the total with the maximum.

use jiff::ToSpan as _;
use jiff::civil::Date;
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
/// Every rule of the tenant: a rule that was renamed or removed counts no use, which would delete its own windows.
const FORGET_OF_TENANT: [&str; 2] = [
    "DELETE FROM rule_use WHERE tenant = ?1 AND (policy, rule, time_window) IN
        (SELECT policy, rule, time_window FROM rule_counter WHERE tenant = ?1 AND time_window < ?2)",
    "DELETE FROM rule_counter WHERE tenant = ?1 AND time_window < ?2",
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
        // Once for each window of a rule.
        let is_first = total == LimitAmount::default();
        if let Some(month) = is_first.then(|| oldest_month(&self.counter.window)).flatten() {
            for sql in FORGET_OF_TENANT {
                query(sql).bind(self.counter.tenant.as_str()).bind(&month).execute(db)?;
            }
        }
        Ok(CountAnswer::Counted)
    }
}

fn of<'a>(sql: &'static str, counter: &'a RuleCounter, window: &'a str) -> Query<'a> {
    query(sql).bind(counter.tenant.as_str()).bind(&counter.policy).bind(&counter.rule).bind(window)
}

/// The month of the day 40 days before a window. Names of windows of each kind that begin earlier sort before it.
fn oldest_month(window: &str) -> Option<String> {
    let day = window.get(..10).map_or_else(|| format!("{window}-01"), str::to_owned);
    let day = day.parse::<Date>().ok()?.checked_sub(40.days()).ok()?;
    Some(day.strftime("%Y-%m").to_string())
}

/// The amount of the row; nothing without one.
fn amount(query: Query<'_>, db: &Connection) -> Result<LimitAmount, Error> {
    let row: Option<(i64,)> = query.optional(db)?;
    Ok(LimitAmount::from_millionths(row.map_or(0, |(amount,)| amount.unsigned_abs())))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::Durability;
    use super::super::open::{self, Options};
    use super::*;

    fn used(rule: &str, window: &str) -> CountedUse {
        let (policy, rule, window) = ("desk".to_owned(), rule.to_owned(), window.to_owned());
        let counter = RuleCounter { tenant: "acme".into(), policy, rule, window };
        let (amount, max) = (LimitAmount::ONE, LimitAmount::from_millionths(9_000_000));
        CountedUse { counter, id: "use".to_owned(), amount, max, expired: String::new() }
    }

    fn options(directory: &tempfile::TempDir) -> Options {
        let options = Options::new(&directory.path().join("runs.db"), Durability::ProcessCrash).unwrap();
        Options { busy_timeout: Duration::from_millis(10), ..options }
    }

    #[test]
    fn counters_of_renamed_rules_are_forgotten() {
        let directory = tempfile::TempDir::new().unwrap();
        let db = open::connect_and_migrate(&options(&directory)).unwrap();
        let kept = ["2026-10", "2026-10-01", "2026-10-01T00", "2026-11-28"];
        for (number, window) in ["2026-09", "2026-09-30", "2026-09-30T23"].iter().chain(&kept).enumerate() {
            used(&format!("renamed_{number}"), window).apply(&db).unwrap();
        }
        let other = CountedUse {
            counter: RuleCounter { tenant: "other".into(), ..used("old", "2026-01").counter },
            ..used("", "")
        };
        other.apply(&db).unwrap();
        used("new", "2026-11-28").apply(&db).unwrap();
        for table in ["rule_counter", "rule_use"] {
            let sql = format!("SELECT time_window FROM {table} WHERE tenant = 'acme' AND rule <> 'new' ORDER BY 1");
            let windows: Vec<(String,)> = query(sql).all(&db).unwrap();
            let windows: Vec<String> = windows.into_iter().map(|(window,)| window).collect();
            assert_eq!(windows, kept, "{table}");
            let sql = format!("SELECT count(*) FROM {table} WHERE tenant = 'other'");
            assert_eq!(query(sql).one::<(i64,)>(&db).unwrap(), (1,), "{table}");
        }
    }

    #[test]
    fn uses_are_forgotten_by_their_counters() {
        let directory = tempfile::TempDir::new().unwrap();
        let db = open::connect_and_migrate(&options(&directory)).unwrap();
        let mut explain = db.prepare(&format!("EXPLAIN QUERY PLAN {}", FORGET_OF_TENANT[0])).unwrap();
        let steps = explain.query_map(["acme", "2026-10"], |row| row.get("detail")).unwrap();
        let steps: Vec<String> = steps.map(Result::unwrap).collect();
        let step = "SEARCH rule_use USING PRIMARY KEY (tenant=? AND policy=? AND rule=? AND time_window=?)";
        assert!(steps.iter().any(|found| found == step), "{steps:?}");
    }

    #[test]
    fn the_oldest_month_is_the_one_40_days_ago() {
        for window in ["2026-11-28T23", "2026-11-28"] {
            assert_eq!(oldest_month(window).as_deref(), Some("2026-10"), "{window}");
        }
        assert_eq!(oldest_month("2026-11").as_deref(), Some("2026-09"));
        assert_eq!(oldest_month("soon"), None);
    }
}
