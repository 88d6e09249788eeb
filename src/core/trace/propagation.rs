//! Trace propagation: which parts of a trace context are accepted or sent. The same type serves the environment
//! (`OTEL_PROPAGATORS`) and the setting of one server or model; a part needs the consent of both.

/// The parts of a context that are accepted or sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Propagation {
    /// `traceparent` and `tracestate`.
    pub trace_context: bool,
    /// `baggage`, which may name users.
    pub baggage: bool,
}

/// An unknown propagator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownPropagator {
    /// An unknown name.
    #[error("there is no propagator `{0}` here; name tracecontext, baggage, both with a comma, or none")]
    Name(String),
    /// `none` beside others.
    #[error("the propagator `none` stands alone; remove it, or the others")]
    NoneAmongOthers,
}

impl Propagation {
    /// Everything.
    pub const ALL: Self = Self { trace_context: true, baggage: true };
    /// Trace and span, without baggage.
    pub const TRACE_CONTEXT: Self = Self { trace_context: true, baggage: false };
    /// Nothing.
    pub const NOTHING: Self = Self { trace_context: false, baggage: false };

    /// Parses a list of propagators as in `OTEL_PROPAGATORS`. An empty list means the default: everything.
    pub fn parse(list: &str) -> Result<Self, UnknownPropagator> {
        let names: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            return Ok(Self::ALL);
        }
        if names.contains(&"none") && names.iter().any(|name| *name != "none") {
            return Err(UnknownPropagator::NoneAmongOthers);
        }
        names.into_iter().try_fold(Self::NOTHING, |so_far, name| match name {
            "tracecontext" => Ok(Self { trace_context: true, ..so_far }),
            "baggage" => Ok(Self { baggage: true, ..so_far }),
            "none" => Ok(so_far),
            // Formats that other systems may use; they are valid, and toolgate ignores them.
            "b3" | "b3multi" | "jaeger" | "xray" | "ottrace" => Ok(so_far),
            _ => Err(UnknownPropagator::Name(name.to_owned())),
        })
    }

    /// The parts that both allow.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { trace_context: self.trace_context && other.trace_context, baggage: self.baggage && other.baggage }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn propagators_follow_opentelemetry_and_unknown_ones_are_refused() {
        let baggage = Propagation { trace_context: false, baggage: true };
        for (list, read) in [
            ("", Propagation::ALL),
            ("tracecontext,baggage", Propagation::ALL),
            (" baggage , tracecontext,baggage", Propagation::ALL),
            ("tracecontext", Propagation::TRACE_CONTEXT),
            ("tracecontext,b3", Propagation::TRACE_CONTEXT),
            ("baggage", baggage),
            ("none", Propagation::NOTHING),
        ] {
            assert_eq!(Propagation::parse(list), Ok(read), "{list}");
        }
        assert_eq!(Propagation::parse("tracecontext,zipkin"), Err(UnknownPropagator::Name("zipkin".into())));
        assert_eq!(Propagation::parse("none,baggage"), Err(UnknownPropagator::NoneAmongOthers));
        assert_eq!(Propagation::TRACE_CONTEXT.and(baggage), Propagation::NOTHING);
    }
}
