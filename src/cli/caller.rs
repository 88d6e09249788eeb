//! Trace context of the caller, from flags or from the environment variables that build systems and shells set.
//!
//! A malformed flag is an error, because the user set it on purpose. A malformed variable is ignored with a warning,
//! because any program may have set it. The command ignores each format that `OTEL_PROPAGATORS` does not list.

use clap::Args;

use super::error::CliError;
use super::output::Output;
use super::setup::environment;
use crate::app;
use crate::core::tool::escape_untrusted;
use crate::core::trace::{Baggage, Propagation, Trace, TraceId};

/// The caller's trace context. A flag wins over its variable.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Trace of the caller")]
pub(super) struct Caller {
    /// The W3C trace context to continue [default: TRACEPARENT]
    #[arg(long, alias = "trace", value_name = "HEADER")]
    traceparent: Option<String>,

    /// The W3C tracestate of that trace [default: TRACESTATE, together with TRACEPARENT]
    #[arg(long, value_name = "HEADER")]
    tracestate: Option<String>,

    /// W3C baggage for MCP servers, and for models configured to receive it [default: BAGGAGE]
    #[arg(long, value_name = "HEADER")]
    baggage: Option<String>,
}

/// A value from the caller with its source. The source decides how a malformed value is handled.
struct CallerValue {
    name: &'static str,
    value: String,
    is_flag: bool,
}

impl Caller {
    /// The trace to continue. Baggage without a trace starts a new trace that carries it.
    pub(super) fn trace(&self, out: &mut Output) -> Result<Option<Trace>, CliError> {
        let propagation = app::propagation()?;
        let mut warnings = Vec::new();
        let read = self.read(propagation, &environment, &mut warnings);
        for warning in warnings {
            out.warning(warning);
        }
        read
    }

    fn read(
        &self,
        propagation: Propagation,
        environment: &dyn Fn(&str) -> Option<String>,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Trace>, CliError> {
        let variable = |name| environment(name).filter(|value| !value.trim().is_empty());
        let given = |flag: &Option<String>, is_let_in: bool, names: [&'static str; 2]| {
            let flag = flag.clone().map(|value| CallerValue { name: names[0], value, is_flag: true });
            let variable = || variable(names[1]).map(|value| CallerValue { name: names[1], value, is_flag: false });
            flag.or_else(variable).filter(|_| is_let_in)
        };
        for (flag, is_let_in, name) in [
            (&self.traceparent, propagation.trace_context, "--traceparent"),
            (&self.tracestate, propagation.trace_context, "--tracestate"),
            (&self.baggage, propagation.baggage, "--baggage"),
        ] {
            if flag.is_some() && !is_let_in {
                warnings.push(format!("{name} is ignored: OTEL_PROPAGATORS does not include it"));
            }
        }
        let parent = given(&self.traceparent, propagation.trace_context, ["--traceparent", "TRACEPARENT"]);
        let mut state = given(&self.tracestate, propagation.trace_context, ["--tracestate", "TRACESTATE"]);
        // The TRACESTATE variable belongs to the TRACEPARENT variable, so it does not apply to another trace.
        if parent.as_ref().is_some_and(|parent| parent.is_flag) {
            state = state.filter(|state| state.is_flag);
        }
        let baggage = given(&self.baggage, propagation.baggage, ["--baggage", "BAGGAGE"]);
        let baggage = baggage.map(|given| read_baggage(&given, warnings)).transpose()?.flatten();
        let mut trace = parent.map(|given| read_parent(&given, warnings)).transpose()?.flatten();
        match (&mut trace, state) {
            (Some(trace), Some(given)) => read_state(trace, &given, warnings)?,
            (None, Some(CallerValue { name, is_flag: true, .. })) => {
                return Err(CliError::usage(format!("{name} belongs to a trace that is not given"))
                    .with_remedy("give --traceparent as well"));
            }
            (_, _) => {}
        }
        Ok(match baggage {
            None => trace,
            Some(baggage) => Some(Trace { baggage: Some(baggage), ..trace.unwrap_or_else(new_trace) }),
        })
    }
}

/// A new trace. It is recorded only when the sampler selects it.
pub(super) fn new_trace() -> Trace {
    Trace::new(TraceId(uuid::Uuid::now_v7().into_bytes()), false)
}

impl CallerValue {
    /// Handles a malformed value: an error for a flag, a warning for a variable.
    fn malformed<T>(&self, what: &str, remedy: &str, warnings: &mut Vec<String>) -> Result<Option<T>, CliError> {
        if self.is_flag {
            return Err(CliError::usage(format!("{} {what}", self.name)).with_remedy(remedy));
        }
        warnings.push(format!("{} {what}; it is ignored", self.name));
        Ok(None)
    }
}

fn read_parent(given: &CallerValue, warnings: &mut Vec<String>) -> Result<Option<Trace>, CliError> {
    match Trace::from_traceparent(&given.value) {
        Some(trace) => Ok(Some(trace)),
        None => {
            let what = format!("is not a traceparent: `{}`", escape_untrusted(&given.value));
            given.malformed(&what, "it looks like 00-<32 hex digits>-<16 hex digits>-01", warnings)
        }
    }
}

fn read_state(trace: &mut Trace, given: &CallerValue, warnings: &mut Vec<String>) -> Result<(), CliError> {
    if !trace.take_state(&given.value) {
        let remedy = "it looks like vendor=value,other=value, with lower-case names and at most 32 of them";
        given.malformed::<()>("is not a tracestate", remedy, warnings)?;
    }
    Ok(())
}

/// Warnings never repeat the values, because they may contain names of people.
fn read_baggage(given: &CallerValue, warnings: &mut Vec<String>) -> Result<Option<String>, CliError> {
    let read = Baggage::read(&given.value);
    if read.is_whole() {
        return Ok(read.kept);
    }
    let Baggage { malformed, too_many, .. } = read;
    let what = format!("has {malformed} malformed members and {too_many} beyond 64 members or 8192 bytes");
    if given.is_flag {
        return given.malformed(&what, "it looks like key=value,other=value;property, percent-encoded", warnings);
    }
    warnings.push(format!("{} {what}; they are left out", given.name));
    Ok(read.kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const OTHER: &str = "00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01";

    fn flags(parent: &str, state: &str, baggage: &str) -> Caller {
        let flag = |value: &str| (!value.is_empty()).then(|| value.to_owned());
        Caller { traceparent: flag(parent), tracestate: flag(state), baggage: flag(baggage) }
    }

    /// The trace from these flags and variables, with the warnings.
    fn read(
        caller: &Caller,
        variables: [&str; 3],
        propagation: Propagation,
    ) -> (Result<Option<Trace>, CliError>, Vec<String>) {
        let environment = |name: &str| {
            let index =
                ["TRACEPARENT", "TRACESTATE", "BAGGAGE"].iter().position(|known| *known == name).expect("known");
            Some(variables[index].to_owned())
        };
        let mut warnings = Vec::new();
        (caller.read(propagation, &environment, &mut warnings), warnings)
    }

    fn fields_of(trace: &Trace) -> (String, Option<&str>, Option<&str>) {
        (trace.id.to_string(), trace.state.as_deref(), trace.baggage.as_deref())
    }

    #[test]
    fn flags_win_over_variables_and_a_tracestate_stays_with_its_traceparent() {
        let variables = [PARENT, "a=1", "user=ada"];
        let (trace, warnings) = read(&flags("", "", ""), variables, Propagation::ALL);
        let trace = trace.expect("valid").expect("a trace");
        assert_eq!(fields_of(&trace), (PARENT[3..35].to_owned(), Some("a=1"), Some("user=ada")));
        let (trace, _) = read(&flags(OTHER, "", "user=bob"), variables, Propagation::ALL);
        assert_eq!(fields_of(&trace.expect("valid").expect("a trace")), ("a".repeat(32), None, Some("user=bob")));
        let (trace, _) = read(&flags("", "b=2", ""), variables, Propagation::ALL);
        assert_eq!(trace.expect("valid").expect("a trace").state.as_deref(), Some("b=2"));
        assert_eq!(
            (read(&flags("", "", ""), ["", "a=1", ""], Propagation::ALL).0.expect("valid"), warnings),
            (None, vec![])
        );
    }

    #[test]
    fn baggage_alone_starts_a_new_trace() {
        let trace = read(&flags("", "", "user=ada"), [""; 3], Propagation::ALL).0.expect("valid").expect("a trace");
        assert_eq!((trace.parent, trace.baggage.as_deref()), (None, Some("user=ada")));
    }

    #[test]
    fn a_malformed_flag_is_an_error_and_a_variable_only_a_warning() {
        for malformed in
            [flags("00-xyz", "", ""), flags(PARENT, "A B", ""), flags("", "a=1", ""), flags("", "", "secret")]
        {
            let refused = read(&malformed, [""; 3], Propagation::ALL).0.expect_err("malformed").to_string();
            assert!(refused.starts_with("--") && !refused.contains("secret"), "{refused}");
        }
        let (trace, warnings) = read(&flags("", "", ""), ["00-xyz", "a=1", "secret,user=ada"], Propagation::ALL);
        let trace = trace.expect("passed over").expect("baggage");
        assert_eq!((trace.parent, trace.baggage.as_deref(), warnings.len()), (None, Some("user=ada"), 2));
        assert!(warnings.iter().all(|warning| !warning.contains("secret")), "{warnings:?}");
    }

    #[test]
    fn a_format_without_a_propagator_is_ignored() {
        let variables = [PARENT, "a=1", "user=ada"];
        assert_eq!(read(&flags("", "", ""), variables, Propagation::NOTHING).0.expect("valid"), None);
        let (trace, warnings) = read(&flags("", "", "user=bob"), variables, Propagation::TRACE_CONTEXT);
        let trace = trace.expect("valid").expect("a trace");
        assert_eq!((fields_of(&trace), warnings.len()), ((PARENT[3..35].to_owned(), Some("a=1"), None), 1));
    }
}
