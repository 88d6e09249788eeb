//! W3C `tracestate`: the state of tracing systems, propagated unchanged. It is parsed only to ensure that it is a list
//! of that kind.

use std::collections::BTreeSet;

const MAX_MEMBERS: usize = 32;
const MAX_LENGTH: usize = 256;

/// Whether all of it is well-formed. An empty list is.
pub(super) fn is_valid(header: &str) -> bool {
    let members: Vec<&str> = header.split(',').map(unpadded).filter(|member| !member.is_empty()).collect();
    let mut keys = BTreeSet::new();
    members.len() <= MAX_MEMBERS
        && members.iter().all(|member| {
            member.split_once('=').is_some_and(|(key, value)| is_key(key) && is_value(value) && keys.insert(key))
        })
}

/// Trims the blanks that may surround a member. No other white space is allowed.
fn unpadded(member: &str) -> &str {
    member.trim_matches([' ', '\t'])
}

/// A vendor, or a tenant at a vendor.
fn is_key(key: &str) -> bool {
    let is_lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    key.len() <= MAX_LENGTH
        && key.bytes().next().is_some_and(is_lower)
        && key.bytes().all(|byte| is_lower(byte) || b"_-*/@".contains(&byte))
        && key.matches('@').count() <= 1
}

fn is_value(value: &str) -> bool {
    (1..=MAX_LENGTH).contains(&value.len())
        && value.bytes().all(|byte| (byte.is_ascii_graphic() || byte == b' ') && !b",=".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_vendors_is_recognized() {
        for good in ["", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "fw529a3039@dt=FfAF_T, a=b c", "a=1,,b=2"] {
            assert!(is_valid(good), "{good}");
        }
        for bad in [
            "a",
            "=1",
            "a=",
            "A=1",
            "a=1,a=2",
            "a=1=2",
            "a=\u{e9}",
            "a=1\r\nx: y",
            "a@b@c=1",
            "a=1,\r\nb=2",
            "a=1,\u{a0}b=2",
        ] {
            assert!(!is_valid(bad), "{bad}");
        }
        let many = (0..33).map(|n| format!("k{n}=1")).collect::<Vec<_>>().join(",");
        assert!(!is_valid(&many) && is_valid(many.rsplit_once(',').expect("a comma").0));
    }
}
