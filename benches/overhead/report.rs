//! Reports for people and programs.

use serde_json::{Value, json};

use crate::measure::Row;
use crate::scenario::Scenario;

/// A table of one scenario: microseconds per turn, and the ratio to the floor.
pub fn table(scenario: &Scenario, rows: &[Row]) {
    println!(
        "\n{:<24} {:>9} {:>9} {:>9} {:>8} {:>9} {:>9} {:>7} {:>9}",
        scenario.name, "wall us", "cpu us", "turn us", "x floor", "first us", "last us", "growth", "runs/s"
    );
    let floor = rows.first().map_or(f64::NAN, |row| row.wall);
    for row in rows {
        let (first, last) = row.ends.map_or_else(Default::default, |(first, last)| (figure(first), figure(last)));
        println!(
            "{:<24} {:>9} {:>9} {:>9} {:>8.1} {:>9} {:>9} {:>7} {:>9.0}",
            row.subject,
            figure(row.wall),
            row.cpu.map(figure).unwrap_or_default(),
            figure(row.turn),
            row.wall / floor,
            first,
            last,
            row.growth().map(|growth| format!("{growth:.2}")).unwrap_or_default(),
            row.runs_per_second,
        );
        if row.dropped > 0 {
            println!(
                "{:<24} {} facts and spans were dropped: the runs end faster than they are exported",
                "", row.dropped
            );
        }
    }
}

/// All results in one line.
pub fn json(rows: &[Row]) {
    let rows: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "scenario": row.scenario,
                "subject": row.subject,
                "wall_us": rounded(row.wall),
                "cpu_us": row.cpu.map(rounded),
                "turn_us": rounded(row.turn),
                "first_us": row.ends.map(|ends| rounded(ends.0)),
                "last_us": row.ends.map(|ends| rounded(ends.1)),
                "dropped": row.dropped,
                "runs_per_second": row.runs_per_second.round(),
            })
        })
        .collect();
    println!("\n{}", json!({"bench": "overhead", "unit": "us a turn", "rows": rows}));
}

fn figure(micros: f64) -> String {
    if micros < 100.0 { format!("{micros:.1}") } else { format!("{micros:.0}") }
}

fn rounded(micros: f64) -> f64 {
    (micros * 10.0).round() / 10.0
}
