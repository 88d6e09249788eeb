//! Trace sampler: whether the spans of a new trace are recorded. The decision is made once, when an execution starts,
//! and is journaled with it.

use toolgate_core::trace::TraceId;

use super::SettingsError;

/// The samplers of `OTEL_TRACES_SAMPLER`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// The share of traces that is recorded, from 0 to 1.
    ratio: f64,
    /// Whether the caller's decision wins, if there is one.
    follows_parent: bool,
}

impl Default for Sampler {
    fn default() -> Self {
        Self { ratio: 1.0, follows_parent: true }
    }
}

impl Sampler {
    /// Reads `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG`; without them, `parentbased_always_on`.
    pub fn from_env(env: impl Fn(&str) -> Option<String>) -> Result<Self, SettingsError> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty());
        let Some(name) = set("OTEL_TRACES_SAMPLER") else { return Ok(Self::default()) };
        let (root, follows_parent) = match name.strip_prefix("parentbased_") {
            Some(root) => (root, true),
            None => (name.as_str(), false),
        };
        let ratio = match root {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => ratio(set("OTEL_TRACES_SAMPLER_ARG"))?,
            _ => return Err(SettingsError::Sampler(name)),
        };
        Ok(Self { ratio, follows_parent })
    }

    /// Whether that trace is recorded. `parent` is the caller's decision, if the trace comes from a caller.
    pub fn sampled(&self, trace: &TraceId, parent: Option<bool>) -> bool {
        match parent.filter(|_| self.follows_parent) {
            Some(decided) => decided,
            None => self.draws(trace),
        }
    }

    /// The ratio decision of all OpenTelemetry SDKs, so that every service of a trace decides the same.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn draws(&self, trace: &TraceId) -> bool {
        if self.ratio >= 1.0 {
            return true;
        }
        let low = trace.0.iter().skip(8).fold(0u64, |number, byte| (number << 8) | u64::from(*byte));
        (low >> 1) < (self.ratio * (1u64 << 63) as f64) as u64
    }
}

fn ratio(argument: Option<String>) -> Result<f64, SettingsError> {
    let Some(text) = argument else { return Ok(1.0) };
    let ratio = text.parse::<f64>().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio.ok_or(SettingsError::SamplerArgument(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampler(name: &'static str, argument: &'static str) -> Sampler {
        let env = move |key: &str| match key {
            "OTEL_TRACES_SAMPLER" => Some(name.to_owned()),
            "OTEL_TRACES_SAMPLER_ARG" => Some(argument.to_owned()),
            _ => None,
        };
        Sampler::from_env(env).expect("a sampler")
    }

    fn trace(low: u8) -> TraceId {
        let mut id = [7; 16];
        id[8] = low;
        TraceId(id)
    }

    #[test]
    fn the_caller_decides_where_the_sampler_follows_the_parent() {
        assert!(sampler("parentbased_always_off", "").sampled(&trace(0), Some(true)));
        assert!(!sampler("parentbased_always_off", "").sampled(&trace(0), None));
        assert!(!sampler("always_off", "").sampled(&trace(0), Some(true)));
        assert!(sampler("always_on", "").sampled(&trace(0), Some(false)));
    }

    #[test]
    fn a_ratio_keeps_the_traces_whose_low_half_is_small_enough() {
        let quarter = sampler("traceidratio", "0.25");
        assert!(quarter.sampled(&trace(0x3f), None));
        assert!(!quarter.sampled(&trace(0x40), None));
        assert!(!sampler("traceidratio", "0").sampled(&trace(0), None));
        assert!(sampler("traceidratio", "1").sampled(&trace(0xff), None));
    }

    #[test]
    fn an_unknown_sampler_and_a_wrong_ratio_are_refused() {
        let env = |name: &'static str, argument: &'static str| {
            move |key: &str| Some(if key == "OTEL_TRACES_SAMPLER" { name } else { argument }.to_owned())
        };
        let unknown = Sampler::from_env(env("jaeger_remote", "")).expect_err("unknown");
        assert_eq!(unknown, SettingsError::Sampler("jaeger_remote".into()));
        let wrong = Sampler::from_env(env("traceidratio", "2")).expect_err("wrong");
        assert_eq!(wrong, SettingsError::SamplerArgument("2".into()));
    }
}
