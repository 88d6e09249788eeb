//! Plan of a proxy: which fault it injects into which request, as it is written on the command line or drawn from a seed.

use super::faults::{Fault, FaultTransport, kind, kinds};

/// The method of a planned fault that names none.
const USUAL_METHOD: &str = "tools/call";
/// Requests that a schedule leaves alone: without them there is no session to observe.
const UNSCHEDULED: [&str; 3] = ["initialize", "server/discover", "ping"];

/// The faults to inject.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    planned: Vec<PlannedFault>,
    schedule: Option<Schedule>,
}

/// A fault in one request of a method, or in all of them.
#[derive(Clone, Debug)]
struct PlannedFault {
    written: String,
    fault: Fault,
    method: String,
    /// `None` for every occurrence.
    occurrence: Option<u64>,
    seen: u64,
    /// The number of answers that it changed, or may still change.
    injections: u64,
}

/// A random choice that depends on the seed and on the number of the request alone.
#[derive(Clone, Debug)]
struct Schedule {
    seed: u64,
    rate: f64,
    faults: Vec<(&'static str, Fault)>,
    requests: u64,
}

/// A fault to inject now.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ChosenFault {
    pub(super) fault: Fault,
    /// How the fault is written, or its name in a schedule.
    pub(super) written: String,
    /// The index of the planned fault; `None` for a fault of the schedule.
    pub(super) planned: Option<usize>,
}

impl FaultPlan {
    /// Adds a fault that is written `NAME[=VALUE][@METHOD][#N]`: by default the first `tools/call`. `#all` is every one.
    ///
    /// # Errors
    /// The reason, with the expected form.
    pub fn add(&mut self, written: &str, transport: FaultTransport) -> Result<(), String> {
        let (rest, occurrence) = match written.rsplit_once('#') {
            None => (written, Some(1)),
            Some((rest, "all")) => (rest, None),
            Some((rest, number)) => {
                let number = number.parse().ok().filter(|number| *number > 0);
                let form = || format!("`{written}`: `#` is followed by a number from 1, or by `all`");
                (rest, Some(number.ok_or_else(form)?))
            }
        };
        let (rest, method) = rest.split_once('@').unwrap_or((rest, USUAL_METHOD));
        let (name, value) = rest.split_once('=').map_or((rest, None), |(name, value)| (name, Some(value)));
        let fault = fault(name, value, transport).map_err(|reason| format!("`{written}`: {reason}"))?;
        let (written, method) = (written.to_owned(), method.to_owned());
        self.planned.push(PlannedFault { written, fault, method, occurrence, seen: 0, injections: 0 });
        Ok(())
    }

    /// Injects a random fault into this part of the requests. Without names, the faults are all of the transport that
    /// do not end the session.
    ///
    /// # Errors
    /// The name that does not exist, or does not fit the transport.
    pub fn schedule(
        &mut self,
        seed: u64,
        rate: f64,
        names: &[String],
        transport: FaultTransport,
    ) -> Result<(), String> {
        let named = |name: &String| {
            let known = kind(name).map_or(name.as_str(), |kind| kind.name);
            fault(name, None, transport).map_err(|reason| format!("`{name}`: {reason}")).map(|_| known.to_owned())
        };
        let wanted: Vec<String> = names.iter().map(named).collect::<Result<_, _>>()?;
        let fits = |name: &str, fault: Fault| match wanted.as_slice() {
            [] => !(transport == FaultTransport::Stdio && fault.ends_session()),
            wanted => wanted.iter().any(|wanted| wanted == name),
        };
        let all = kinds().filter(|kind| kind.transport.includes(transport));
        let all = all.filter_map(|kind| Some((kind.name, kind.fault(None).ok()?)));
        let faults = all.filter(|(name, fault)| fits(name, *fault)).collect();
        self.schedule = Some(Schedule { seed, rate, faults, requests: 0 });
        Ok(())
    }

    /// The seed of the schedule.
    pub(super) fn seed(&self) -> Option<u64> {
        self.schedule.as_ref().map(|schedule| schedule.seed)
    }

    /// The fault of the next request of this method. The first planned fault that matches comes before the schedule.
    pub(super) fn choose(&mut self, method: &str) -> Option<ChosenFault> {
        let mut chosen = None;
        for (index, planned) in self.planned.iter_mut().enumerate().filter(|(_, planned)| planned.method == method) {
            planned.seen += 1;
            if chosen.is_none() && planned.occurrence.is_none_or(|occurrence| occurrence == planned.seen) {
                planned.injections += 1;
                let (fault, written) = (planned.fault, planned.written.clone());
                chosen = Some(ChosenFault { fault, written, planned: Some(index) });
            }
        }
        let scheduled = self.schedule.as_mut().filter(|_| !UNSCHEDULED.contains(&method)).and_then(Schedule::next);
        chosen.or(scheduled)
    }

    /// Takes back an injection that changed nothing. A fault of one occurrence moves to the next request of its method.
    pub(super) fn postpone(&mut self, index: usize) {
        if let Some(planned) = self.planned.get_mut(index) {
            planned.injections = planned.injections.saturating_sub(1);
            planned.occurrence = planned.occurrence.map(|_| planned.seen + 1);
        }
    }

    /// The planned faults that were not injected, as they were written.
    pub(super) fn not_injected(&self) -> Vec<String> {
        self.planned.iter().filter(|planned| planned.injections == 0).map(|planned| planned.written.clone()).collect()
    }
}

impl Schedule {
    fn next(&mut self) -> Option<ChosenFault> {
        self.requests += 1;
        let random = split_mix(self.seed ^ split_mix(self.requests));
        // The upper 53 bits are a fraction of a double without rounding.
        let fraction = (random >> 11) as f64 / (1_u64 << 53) as f64;
        if fraction >= self.rate {
            return None;
        }
        let at = split_mix(random) % (self.faults.len() as u64).max(1);
        let (name, fault) = *self.faults.get(usize::try_from(at).ok()?)?;
        Some(ChosenFault { fault, written: name.to_owned(), planned: None })
    }
}

fn fault(name: &str, value: Option<&str>, transport: FaultTransport) -> Result<Fault, String> {
    let Some(kind) = kind(name) else {
        let names: Vec<_> = kinds().filter(|kind| kind.transport.includes(transport)).map(|kind| kind.name).collect();
        return Err(format!("there is no fault `{name}`; there are: {}", names.join(", ")));
    };
    if !kind.transport.includes(transport) {
        return Err(match kind.transport {
            FaultTransport::Http => format!("`{name}` is a fault of HTTP: give the server with --url"),
            FaultTransport::Stdio | FaultTransport::Both => {
                format!("`{name}` is a fault of stdio: give the command of the server after `--`")
            }
        });
    }
    kind.fault(value).map_err(str::to_owned)
}

/// The finalizer of SplitMix64: a hash of 64 bits.
fn split_mix(state: u64) -> u64 {
    let mut hash = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
