//! Transport faults, which do not depend on the content of a message.

use serde_json::Value;

use crate::faults::{Fault, Faults};
use crate::message::is_response;
use crate::script::{Action, Target};

const GARBAGE: &str = "[INFO] listening for requests\n";
const NOISE: &[&str] = &[
    "{\"level\":\"info\",\"msg\":\"listening for requests\"}\n",
    "42\n",
    "[]\n",
    "null\n",
    "{\"jsonrpc\":\"2.0\"}\n",
    "\"ready\"\n",
];
/// Without a newline: the first message follows on the same line.
const BANNER: &str = "Fault Server ready. ";

/// The banner on the line of the first message.
pub(crate) fn banner(faults: &Faults) -> Option<Action> {
    faults.has(&Fault::StdoutBannerWithoutNewline).then(|| Action::Print(BANNER.into()))
}

/// The noise on stdout at the start, with each received message, and before each sent message.
pub(crate) fn noise(faults: &Faults) -> Vec<Action> {
    let garbage = faults.has(&Fault::StdoutGarbage).then_some(GARBAGE);
    let json = if faults.has(&Fault::StdoutJsonNoise) { NOISE } else { &[] };
    garbage.iter().chain(json).map(|text| Action::Print((*text).into())).collect()
}

/// The actions as this transport delivers them.
pub(crate) fn distort(faults: &Faults, actions: Vec<Action>) -> Vec<Action> {
    let mut distorted = Vec::new();
    for action in actions {
        let mut copy = None;
        if let Action::Send { to, message } = &action {
            distorted.extend(noise(faults));
            copy = duplicate(faults, *to, message);
        }
        distorted.push(action);
        distorted.extend(copy);
    }
    distorted
}

fn duplicate(faults: &Faults, to: Target, message: &Value) -> Option<Action> {
    let doubled = faults.has(&Fault::DuplicateReplies) && is_response(message);
    doubled.then(|| Action::Send { to, message: message.clone() })
}
