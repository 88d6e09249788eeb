//! Event ids: the position of an event's fact, in the journal of its run or, in the stream of all runs, in the event log.
//!
//! `14` is the fact at position 14. If one fact yields several events, those before the last are `14.1`, `14.2`, …; the
//! last one always has the bare number, so a client that has it has the whole fact.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// The id of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    /// The position of its fact.
    pub seq: u64,
    /// The event's number among those of its fact, from 1; `None` for the last one.
    part: Option<u32>,
}

impl EventId {
    /// The id of the `index`th of a fact's `count` events.
    pub fn new(seq: u64, index: usize, count: usize) -> Self {
        let is_last = index + 1 >= count;
        let part = (!is_last).then(|| u32::try_from(index + 1).unwrap_or(u32::MAX));
        Self { seq, part }
    }

    /// The id of the last event of a fact.
    pub fn whole(seq: u64) -> Self {
        Self { seq, part: None }
    }

    /// Whether it is the id of the last event of a fact.
    pub fn is_whole(self) -> bool {
        self.part.is_none()
    }

    /// Whether it comes later in the journal than the other one.
    pub fn is_after(self, other: Self) -> bool {
        let place = |id: Self| (id.seq, id.part.unwrap_or(u32::MAX));
        place(self) > place(other)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            None => write!(f, "{}", self.seq),
            Some(part) => write!(f, "{}.{part}", self.seq),
        }
    }
}

impl FromStr for EventId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok());
        let read = match text.split_once('.') {
            None => number(text).flatten().map(Self::whole),
            Some((seq, part)) => number(seq).flatten().zip(number(part).flatten()).and_then(|(seq, part)| {
                let part = u32::try_from(part).ok().filter(|part| *part > 0)?;
                Some(Self { seq, part: Some(part) })
            }),
        };
        read.ok_or_else(|| format!("`{text}` is not an event id; event ids look like `14` or `14.1`"))
    }
}

impl<'de> Deserialize<'de> for EventId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_it_was_written_and_nothing_else_is_one() {
        for id in ["0", "14", "14.1", "14.4294967295", "18446744073709551615"] {
            assert_eq!(id.parse::<EventId>().unwrap().to_string(), id);
        }
        for text in ["", ".", "14.", ".1", "14.0", "-1", "+1", "14.1.2", "1e3", "18446744073709551616", "x"] {
            assert!(text.parse::<EventId>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_event_of_a_fact_comes_after_its_others() {
        let ids: Vec<EventId> = ["13", "14.1", "14.2", "14", "15"].map(|id| id.parse().unwrap()).to_vec();
        for pair in ids.windows(2) {
            assert!(pair[1].is_after(pair[0]) && !pair[0].is_after(pair[1]), "{pair:?}");
        }
        assert!((0..3).map(|index| EventId::new(14, index, 3)).eq(ids[1..4].iter().copied()));
        assert_eq!(EventId::new(14, 0, 1), EventId::whole(14));
    }
}
