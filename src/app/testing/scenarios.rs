//! Runs of scenario files: each case with its model and its server, in parallel, and the report.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use serde_json::Value;

use super::case_setup::{CaseSetup, live_model};
use super::error::TestError;
use super::judge;
use super::scenario_answers::{ScenarioAnswers, remedy};
use super::server_hook::ServerHook;
use super::test_run::FinishedRun;
use crate::config::{self, Settings};
use crate::core::redact::Style;
use crate::core::run::Status;
use crate::lab::recording::{Recording, RecordingContext};
use crate::lab::scenario::{
    Attempt, CaseOutcome, CaseReport, Finding, ModelChoice, ScenarioFile, TestCase, TestReport, check, expand,
    has_variables, timeline,
};

/// How scenarios run.
#[derive(Clone, Debug)]
pub struct TestOptions {
    /// Whether cases with a real model run. Otherwise they are skipped.
    pub live: bool,
    /// The number of runs of a case with a real model, in place of that of the file.
    pub runs: Option<u32>,
    /// The part of them that has to pass, in place of that of the file.
    pub pass_rate: Option<f64>,
    /// The number of cases that run at the same time; at least 1.
    pub jobs: usize,
    /// Models of the configuration in place of those of the files; empty for those of the files.
    pub models: Vec<String>,
    /// A text that the titles of the cases contain; the others are left out.
    pub filter: Option<String>,
    /// Changes the connection of each server of a case before it starts.
    pub before_start: Option<ServerHook>,
}

impl Default for TestOptions {
    fn default() -> Self {
        let (runs, pass_rate, filter, before_start) = (None, None, None, None);
        Self { live: false, runs, pass_rate, jobs: 1, models: Vec::new(), filter, before_start }
    }
}

/// A case with the file that it is from.
#[derive(Clone, Debug)]
pub struct FileCase {
    file: PathBuf,
    case: TestCase,
}

/// Runs a scenario file with the configuration of the current folder, or the one that `TOOLGATE_CONFIG` names.
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use toolgate::testing::{TestOptions, run_scenarios};
///
/// # let folder = std::env::temp_dir().join(format!("toolgate-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let file = folder.join("greeting.yaml");
/// # std::fs::write(&file, "
/// # scenarios:
/// #   - name: greets
/// #     task: Greet Ada
/// #     model: { scripted: [{ say: Hello Ada }] }
/// #     expect: { turns: 1, answer: { contains: Ada } }
/// # ")?;
/// let report = run_scenarios(&file, &TestOptions::default()).await?;
/// assert!(report.passed(), "{:?}", report.cases);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `TestError` if the file or the configuration is invalid. A case that cannot run is a part of the report.
pub async fn run_scenarios(file: impl AsRef<Path>, options: &TestOptions) -> Result<TestReport, TestError> {
    let settings = config::load(None, &|name| std::env::var(name).ok())?;
    let cases = read_cases(&[file.as_ref().to_path_buf()], options)?;
    Ok(run_cases(&cases, &settings, options).await)
}

/// Reads scenario files.
///
/// # Errors
/// `TestError` with the file, the line and the remedy, or if there is no case.
pub fn read_cases(files: &[PathBuf], options: &TestOptions) -> Result<Vec<FileCase>, TestError> {
    let mut cases = Vec::new();
    for file in files {
        let name = file.display();
        let written: Value = config::read_data_file(file)?;
        let expanded = expand(&written);
        if expanded.is_err() && !has_variables(&written) {
            // The error of the typed file has the line.
            let _: ScenarioFile = config::read_data_file(file)?;
        }
        let expanded = expanded.map_err(|error| TestError::invalid(format!("{name}: {error}")))?;
        if expanded.is_empty() {
            return Err(TestError::invalid(format!("{name}: there are no scenarios"))
                .with_remedy("write `scenarios:` with a list of `name`, `task` and `expect`"));
        }
        cases.extend(expanded.into_iter().map(|case| FileCase { file: file.clone(), case }));
    }
    if !options.models.is_empty() {
        cases = with_models(cases, &options.models);
    }
    if let Some(filter) = &options.filter {
        cases.retain(|case| case.case.title().contains(filter.as_str()));
    }
    if cases.is_empty() {
        return Err(TestError::invalid("there are no scenarios to run").with_remedy("change the files or the filter"));
    }
    Ok(cases)
}

/// The cases with each of these models in place of those of the files.
fn with_models(cases: Vec<FileCase>, models: &[String]) -> Vec<FileCase> {
    let mut replaced: Vec<FileCase> = Vec::new();
    for FileCase { file, case } in cases {
        for name in models {
            let model = ModelChoice::Configured(name.clone());
            let case = TestCase { model, model_name: Some(name.clone()), ..case.clone() };
            let is_known = |other: &FileCase| other.file == file && other.case.title() == case.title();
            if !replaced.iter().any(is_known) {
                replaced.push(FileCase { file: file.clone(), case });
            }
        }
    }
    replaced
}

/// Runs cases, as many at a time as the options say. The report has their order.
pub async fn run_cases(cases: &[FileCase], settings: &Settings, options: &TestOptions) -> TestReport {
    let run = |(index, case): (usize, FileCase)| async move { (index, run_case(&case, settings, options).await) };
    let numbered: Vec<(usize, FileCase)> = cases.iter().cloned().enumerate().collect();
    let runs = futures::stream::iter(numbered).map(run).buffer_unordered(options.jobs.max(1));
    let mut reports: Vec<(usize, CaseReport)> = runs.collect().await;
    reports.sort_by_key(|(index, _)| *index);
    TestReport { cases: reports.into_iter().map(|(_, report)| report).collect() }
}

async fn run_case(FileCase { file, case }: &FileCase, settings: &Settings, options: &TestOptions) -> CaseReport {
    let began = Instant::now();
    let live = live_model(case, settings);
    let is_live = live.is_some();
    let pass_rate = if is_live { options.pass_rate.unwrap_or(case.live.pass_rate) } else { 1.0 };
    let report = |outcome, reason, attempts| CaseReport {
        file: file.display().to_string(),
        scenario: case.scenario.name.clone(),
        title: case.title(),
        outcome,
        reason,
        pass_rate,
        duration_ms: milliseconds(began.elapsed()),
        attempts,
    };
    if let (Some(model), false) = (live, options.live) {
        let reason = format!("the model `{model}` is a real one; --live runs it");
        return report(CaseOutcome::Skipped, Some(reason), Vec::new());
    }
    let runs = if is_live { options.runs.unwrap_or(case.live.runs).max(1) } else { 1 };
    let mut attempts = Vec::new();
    for _ in 0..runs {
        match attempt(case, settings, file.parent().unwrap_or(Path::new("")), options).await {
            Ok(attempt) => attempts.push(attempt),
            Err(error) => return report(CaseOutcome::Error, Some(in_words(&error)), attempts),
        }
    }
    let passed = attempts.iter().filter(|attempt| attempt.passed).count();
    let part = ratio(passed, attempts.len());
    let outcome = if part >= pass_rate { CaseOutcome::Passed } else { CaseOutcome::Failed };
    let rate = (runs > 1).then(|| format!("{passed} of {runs} runs passed; {:.0} % have to", pass_rate * 100.0));
    report(outcome, rate, attempts)
}

fn in_words(error: &TestError) -> String {
    match error {
        TestError::Invalid { message, remedy: Some(remedy) } => format!("{message}; {remedy}"),
        TestError::Invalid { .. } | TestError::File(_) | TestError::App(_) => error.to_string(),
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    if whole == 0 { 0.0 } else { number(part) / number(whole) }
}

async fn attempt(
    case: &TestCase,
    settings: &Settings,
    folder: &Path,
    options: &TestOptions,
) -> Result<Attempt, TestError> {
    let CaseSetup { mut run, recorded } = CaseSetup::new(case, settings, folder)?;
    if let Some(hook) = &options.before_start {
        hook.apply(&mut run)?;
    }
    let run_settings = run.settings.clone();
    let mut answers = ScenarioAnswers::new(case.answers.clone(), recorded);
    let finished = run.execute(&mut answers).await?;
    let secrets = run_settings.secrets().build(Style::MESSAGE);
    let context = RecordingContext { secrets, ..RecordingContext::default() };
    let recording = Recording::of_journal(&finished.journal, &context)
        .map_err(|error| TestError::invalid(format!("the run cannot be compared: {error}")))?;
    let expects_pending =
        case.scenario.expect.status.as_ref().is_some_and(|status| status.0 == Status::Pending.as_str());
    let mut findings = unanswered(&finished, expects_pending);
    findings.extend(check(&case.scenario.expect, &recording).await);
    findings.extend(judged(case, &run_settings, &recording, &finished).await);
    Ok(report(&recording, &finished, findings))
}

/// The pending items without an answer, unless the run is expected to wait for one, and the time limit.
fn unanswered(finished: &FinishedRun, expects_pending: bool) -> Vec<Finding> {
    let finding =
        |message: String| Finding { expectation: "answers".into(), place: None, message, expected: None, actual: None };
    let missing = finished.unanswered.iter().filter(|_| !expects_pending);
    let mut findings: Vec<Finding> = missing.map(|item| finding(remedy(item))).collect();
    if finished.timed_out {
        let message = "the run did not end in time, and was cancelled".to_owned();
        findings.push(Finding { expectation: "timeout_s".to_owned(), ..finding(message) });
    }
    findings
}

/// The verdict of the judge about the answer, if the scenario has one.
async fn judged(case: &TestCase, settings: &Settings, run: &Recording, finished: &FinishedRun) -> Option<Finding> {
    let asked = case.scenario.expect.answer.as_ref()?.judge.as_ref()?;
    let answer = run.answer()?;
    let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
    judge::ask(settings, asked, &case.scenario.task, &text, &finished.journal).await
}

fn report(run: &Recording, finished: &FinishedRun, findings: Vec<Finding>) -> Attempt {
    let tokens = run.turns.iter().flat_map(|turn| [turn.usage.input_tokens, turn.usage.output_tokens]);
    let trace = finished.journal.iter().find_map(|entry| entry.event.trace()).map(|trace| trace.id.to_string());
    Attempt {
        passed: findings.is_empty(),
        findings,
        status: run.end.status.clone(),
        turns: run.turns.len(),
        calls: run.calls().count(),
        tokens: tokens.flatten().sum(),
        duration_ms: milliseconds(finished.took),
        answer: run.answer(),
        trace_id: trace,
        steps: timeline(&finished.journal),
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
