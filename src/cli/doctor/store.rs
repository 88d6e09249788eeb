//! Store findings: whether it can be written and has interrupted runs, and whether it has a key for the gateway.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::finding::{Finding, Section, Verdict};
use crate::app::{App, AppError};
use crate::cli::text::{block, count};
use crate::config::{Settings, StoreSettings};
use crate::core::run::Status;
use crate::ports::RunFilter;

/// The most running runs to look at.
const MOST_RUNNING: usize = 1_000;

/// The findings about the store, and those about keys for the gateway.
pub(super) async fn findings(settings: &Settings) -> (Vec<Finding>, Vec<Finding>) {
    let section = Section::Store;
    match &settings.store {
        StoreSettings::Memory => {
            let kept = section.finding(Verdict::Warning, "memory", "runs do not survive the process");
            (vec![kept], keys(settings, None))
        }
        // Opening it would create it.
        StoreSettings::Sqlite { path, .. } if !path.exists() => (vec![new_store(path)], keys(settings, None)),
        StoreSettings::Sqlite { path, .. } => match App::open(settings.clone(), Vec::new()).await {
            Ok(app) => {
                let found = existing_store(&app, path).await;
                let valid = app.keys().await.map(|keys| {
                    let now = Timestamp::now();
                    keys.iter().filter(|key| key.holds(now)).count()
                });
                app.close().await;
                (found, keys(settings, valid.ok()))
            }
            Err(AppError::Store(error)) => {
                let message = format!("{}: {}", path.display(), block(&error.to_string()));
                (vec![section.finding(Verdict::Failed, "SQLite", message)], Vec::new())
            }
            // The findings of the configuration name the setting.
            Err(_) => {
                let message = format!("{}, not checked: the settings cannot be used", path.display());
                (vec![section.finding(Verdict::Unknown, "SQLite", message)], Vec::new())
            }
        },
    }
}

async fn existing_store(app: &App, path: &Path) -> Vec<Finding> {
    let (section, path) = (Section::Store, path.display());
    let mut findings = vec![match app.runner.check_write().await {
        Ok(()) => section.finding(Verdict::Ok, "SQLite", format!("{path}, can be written")),
        Err(error) => section.finding(Verdict::Failed, "SQLite", format!("{path}: {}", block(&error.to_string()))),
    }];
    let running = RunFilter { statuses: vec![Status::Running], limit: MOST_RUNNING, ..RunFilter::default() };
    findings.push(match app.runner.list(&running).await {
        Ok(rows) => match rows.iter().filter(|row| row.is_interrupted).count() {
            0 => section.finding(Verdict::Ok, "runs", "no run is interrupted"),
            interrupted => {
                let at_least = if rows.len() == MOST_RUNNING { "at least " } else { "" };
                let message = format!(
                    "{at_least}{} interrupted: no process executes what is left to do",
                    count(interrupted, "run")
                );
                section.finding(Verdict::Warning, "runs", message).with_remedy(
                    "`toolgate runs list --status interrupted` lists them, `toolgate runs recover` resumes them",
                )
            }
        },
        Err(error) => section.finding(Verdict::Failed, "runs", format!("cannot be read: {error}")),
    });
    findings
}

/// A store that does not exist yet.
fn new_store(path: &Path) -> Finding {
    let folder = path.ancestors().skip(1).map(folder_of).find(|folder| folder.exists());
    let message = format!("{}, does not exist yet; the first run creates it", path.display());
    match folder {
        Some(folder) if may_write(&folder) => Section::Store.finding(Verdict::Ok, "SQLite", message),
        Some(folder) => {
            let message = format!("{}: the folder {} cannot be written", path.display(), folder.display());
            Section::Store
                .finding(Verdict::Failed, "SQLite", message)
                .with_remedy("change its permissions, or choose another file with `store: { sqlite: { path: … } }`")
        }
        None => Section::Store.finding(Verdict::Unknown, "SQLite", message),
    }
}

fn folder_of(path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() { PathBuf::from(".") } else { path.to_owned() }
}

#[cfg(unix)]
fn may_write(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK).is_ok()
}

#[cfg(not(unix))]
fn may_write(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|about| !about.permissions().readonly())
}

/// The credentials that the gateway accepts; `None` if the store has no valid key to count.
fn keys(settings: &Settings, valid: Option<usize>) -> Vec<Finding> {
    let (section, gateway) = (Section::Gateway, &settings.gateway);
    let mut findings = Vec::new();
    if gateway.anonymous {
        findings.push(section.finding(Verdict::Note, "credentials", "requests need none (`anonymous`)"));
    }
    if let Some(oidc) = &gateway.oidc {
        let message = format!("tokens of {} are accepted; the issuer was not contacted", oidc.issuer);
        findings.push(section.finding(Verdict::Note, "credentials", message));
    }
    match valid.unwrap_or(0) {
        0 if findings.is_empty() => findings.push(
            section
                .finding(Verdict::Note, "API keys", "there is no valid key; only `toolgate serve` needs one")
                .with_remedy("`toolgate keys create NAME --all` creates one"),
        ),
        0 => {}
        valid => findings.push(section.finding(Verdict::Ok, "API keys", format!("{} valid", count(valid, "key")))),
    }
    findings
}
