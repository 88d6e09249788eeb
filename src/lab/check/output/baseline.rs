//! Baseline: a file of findings that are known and accepted. A later check reports only what is new.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use crate::check::finding::Finding;
use crate::check::report::Report;

/// The version of the file format.
const VERSION: u32 = 1;

/// Accepted findings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// Version of the file's format.
    #[serde(deserialize_with = "known_version")]
    version: u32,
    /// Rule, tool and place of each finding, in one text.
    findings: BTreeSet<String>,
}

impl Baseline {
    /// A baseline that accepts all findings of a report.
    pub fn of(report: &Report) -> Self {
        Self { version: VERSION, findings: report.findings.iter().map(Finding::fingerprint).collect() }
    }

    /// Removes accepted findings from a report. Returns how many there were.
    pub fn apply(&self, report: &mut Report) -> usize {
        let before = report.findings.len();
        report.findings.retain(|finding| !self.findings.contains(&finding.fingerprint()));
        before - report.findings.len()
    }
}

fn known_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let version = u32::deserialize(deserializer)?;
    if version == VERSION {
        return Ok(version);
    }
    Err(D::Error::custom(format!("this version of toolgate reads baselines of version {VERSION}, not {version}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_baseline_of_another_version_is_refused() {
        let text = serde_json::json!(Baseline { version: VERSION, ..Baseline::default() }).to_string();
        assert!(serde_json::from_str::<Baseline>(&text).is_ok());
        let later = text.replace("\"version\":1", "\"version\":2");
        let error = serde_json::from_str::<Baseline>(&later).unwrap_err();
        assert!(error.to_string().contains("of version 1, not 2"), "{error}");
    }
}
