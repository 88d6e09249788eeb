//! Run lookup: by id, by a unique prefix or suffix of it, or as the last run.

use super::error::CliError;
use super::output::Output;
use super::text::list;
use crate::app::App;
use crate::core::id::RunId;
use crate::ports::RunFilter;
use crate::runner::RunnerError;

/// The number of candidates that an error lists.
const NAMED: usize = 5;
/// The number of runs that are read for the last one: a compaction that replaced nothing is passed over.
const NEWEST: usize = 10;
/// The length of the beginning of an id that has its whole time: no two runs share it, unless they began in the same
/// millisecond.
const BEGINNING: usize = "run_".len() + 12;

/// Finds the run.
pub(super) async fn find(app: &App, named: &str) -> Result<RunId, CliError> {
    if named.is_empty() {
        return Err(CliError::usage("which run? the name is empty")
            .with_remedy("give an id, a unique beginning or end of one, or `last`"));
    }
    if named == "last" {
        let newest = app.runner.list(&RunFilter { limit: NEWEST, ..RunFilter::default() }).await?;
        let run = newest.iter().find(|row| !row.is_ineffective_compaction()).or(newest.first());
        let run = run.map(|row| row.id.clone());
        return run
            .ok_or_else(|| CliError::not_found("there are no runs yet").with_remedy("toolgate run \"…\" starts one"));
    }
    let whole = RunId::from(named);
    match app.runner.journal(&whole).await {
        Ok(_) => return Ok(whole),
        Err(RunnerError::NoSuchRun(_)) => {}
        Err(error) => return Err(error.into()),
    }
    choose(named, &all(app).await?)
}

/// The ids as a table shows them: at a terminal the beginnings, which commands accept in place of the whole ids.
pub(super) fn shown<'i>(ids: impl Iterator<Item = &'i str>, out: &Output) -> Vec<String> {
    let ids: Vec<&str> = ids.collect();
    let is_unique = |beginning: &str| ids.iter().filter(|id| id.starts_with(beginning)).count() == 1;
    let shown = |id: &&str| {
        let beginning = Some(beginning(id)).filter(|beginning| is_unique(beginning));
        beginning.filter(|_| out.is_terminal()).unwrap_or(id).to_owned()
    };
    ids.iter().map(shown).collect()
}

/// The beginning of an id that has its whole time, in place of the id.
pub(super) fn beginning(id: &str) -> &str {
    id.get(..BEGINNING).filter(|_| id.starts_with("run_")).unwrap_or(id)
}

async fn all(app: &App) -> Result<Vec<RunId>, CliError> {
    Ok(app.operator().runs(RunFilter::default()).await?.into_iter().map(|row| row.id).collect())
}

fn choose(named: &str, runs: &[RunId]) -> Result<RunId, CliError> {
    let fits = |run: &&RunId| {
        let id = run.as_str();
        id.starts_with(named) || id.ends_with(named) || id.strip_prefix("run_").is_some_and(|id| id.starts_with(named))
    };
    let matching: Vec<&RunId> = runs.iter().filter(fits).collect();
    match matching.as_slice() {
        [only] if !named.is_empty() => Ok((*only).clone()),
        [] => {
            let newest = list(runs.iter().take(NAMED));
            let message = format!("there is no run `{named}`; the newest are: {newest}");
            Err(CliError::not_found(message)
                .with_remedy("`toolgate runs list` lists all; check --config if one is missing"))
        }
        several => {
            let some = list(several.iter().take(NAMED));
            let message = format!("`{named}` is the beginning or end of {} runs: {some}", several.len());
            Err(CliError::not_found(message).with_remedy("give more of the id"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> Vec<RunId> {
        ["run_0199aa01", "run_0199bb01", "run_0199bb02"].into_iter().map(RunId::from).collect()
    }

    #[test]
    fn a_unique_beginning_or_end_is_enough() {
        for named in ["run_0199aa", "0199aa", "aa01"] {
            assert_eq!(choose(named, &runs()).unwrap().as_str(), "run_0199aa01");
        }
    }

    #[test]
    fn an_ambiguous_name_lists_candidates_and_an_unknown_the_newest() {
        let ambiguous = choose("0199bb", &runs()).unwrap_err().to_string();
        assert_eq!(ambiguous, "`0199bb` is the beginning or end of 2 runs: run_0199bb01, run_0199bb02");
        let unknown = choose("nope", &runs()).unwrap_err().to_string();
        assert_eq!(unknown, "there is no run `nope`; the newest are: run_0199aa01, run_0199bb01, run_0199bb02");
        assert!(choose("", &runs()).is_err());
    }
}
