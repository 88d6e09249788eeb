//! Secrets that are recognized by their form, under any name: the password in an address (`scheme://user:password@host`),
//! PEM blocks, and card numbers.
//!
//! A card number has the beginning and the length of a card network and a correct check digit (Luhn). One in ten numbers
//! of any length has a correct check digit, so the check digit alone would hide order numbers and timestamps.

use std::ops::Range;

use super::REDACTED;
use super::builder::length_of_user;

/// The beginning and the end of a PEM block.
pub(super) const PEM_BEGINS: &str = "-----BEGIN";
pub(super) const PEM_ENDS: &str = "-----END";

/// The number of digits of card numbers.
const CARD_DIGITS: Range<usize> = 13..20;

/// The text without such secrets; `None` if it has none.
pub(super) fn without(text: &str) -> Option<String> {
    let mut places: Vec<Range<usize>> = pem_blocks(text);
    places.extend(passwords(text));
    places.extend(card_numbers(text));
    if places.is_empty() {
        return None;
    }
    places.sort_unstable_by_key(|place| place.start);
    let (mut clean, mut from) = (String::with_capacity(text.len()), 0);
    for place in places.into_iter().filter(|place| !place.is_empty()) {
        if place.start >= from {
            clean.push_str(text.get(from..place.start)?);
            clean.push_str(REDACTED);
        }
        from = from.max(place.end);
    }
    clean.push_str(text.get(from..)?);
    Some(clean)
}

/// Whether a text, or a text within its JSON, may have such a secret. JSON may escape each slash.
pub(super) fn may_be_in(text: &str) -> bool {
    let is_address = || text.contains("://") || text.contains(":\\/");
    text.contains(PEM_BEGINS) || (text.contains('@') && is_address()) || may_have_card_number(text.as_bytes())
}

/// The length of a PEM block at the beginning of a text, to the end of its last line; the whole text if it is cut.
pub(super) fn pem_length(text: &str) -> usize {
    let last = text.find(PEM_ENDS).and_then(|end| text.get(end + PEM_ENDS.len()..));
    last.and_then(|last| Some(text.len() - last.len() + last.find("-----")? + 5)).unwrap_or(text.len())
}

fn pem_blocks(text: &str) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for (start, _) in text.match_indices(PEM_BEGINS) {
        if blocks.last().is_none_or(|last| last.end <= start) {
            blocks.push(start..start + pem_length(text.get(start..).unwrap_or_default()));
        }
    }
    blocks
}

/// The passwords of addresses.
fn passwords(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (scheme_end, mark) in text.match_indices("://") {
        let start = scheme_end + mark.len();
        let address = text.get(start..).unwrap_or_default();
        let ends = |sign: char| sign.is_whitespace() || matches!(sign, '"' | '\'' | '<' | '>' | '\\' | '`');
        let address = address.get(..address.find(ends).unwrap_or(address.len())).unwrap_or_default();
        // An address within the query of another one is found by itself.
        let address = address.get(..address.find("://").unwrap_or(address.len())).unwrap_or_default();
        let user = address.get(..length_of_user(address)).unwrap_or_default();
        if let Some((name, password)) = user.split_once(':')
            && !password.is_empty()
            && password != REDACTED
        {
            found.push(start + name.len() + 1..start + user.len());
        }
    }
    found
}

/// The card numbers of a text, with single blanks or hyphens between their digits.
fn card_numbers(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let group = at + bytes.get(at..)?.iter().position(u8::is_ascii_digit)?;
            let length = bytes.get(group..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let before = group.checked_sub(1).and_then(|before| bytes.get(before));
            at = group + length;
            if before.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_')) {
                continue;
            }
            if let Some(length) = card_length(bytes.get(group..)?) {
                at = group + length;
                return Some(group..at);
            }
        }
        None
    })
}

/// Whether a text may have a card number. Of two bytes of a card number, at least one is a digit, and the other may
/// separate two digits; each card number has two such bytes at a multiple of the step.
fn may_have_card_number(text: &[u8]) -> bool {
    const STEP: usize = CARD_DIGITS.start - 1;
    let is_of_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'-');
    let mut at = 0;
    while let Some([one, other]) = text.get(at..at + 2) {
        let is_candidate = is_of_number(one) && is_of_number(other) && (one.is_ascii_digit() || other.is_ascii_digit());
        if !is_candidate {
            at += STEP;
            continue;
        }
        let (before, behind) = text.split_at(at);
        let start = at - before.iter().rev().take_while(|byte| is_of_number(byte)).count();
        let end = at + behind.iter().take_while(|byte| is_of_number(byte)).count();
        let begins_group = |at: &usize| {
            let before = at.checked_sub(1).and_then(|before| text.get(before));
            text.get(*at).is_some_and(u8::is_ascii_digit) && !before.is_some_and(u8::is_ascii_digit)
        };
        if (start..end).filter(begins_group).any(|group| text.get(group..).and_then(card_length).is_some()) {
            return true;
        }
        at = end.next_multiple_of(STEP).max(at + STEP);
    }
    false
}

/// The length in bytes of a card number at the beginning.
fn card_length(text: &[u8]) -> Option<usize> {
    let is_of_number = |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'-');
    let is_short = text.iter().take_while(is_of_number).take(CARD_DIGITS.start).count() < CARD_DIGITS.start;
    if is_short || !matches!(text.first(), Some(b'2'..=b'6')) {
        return None;
    }
    let (mut digits, mut ends) = (Vec::with_capacity(CARD_DIGITS.end), Vec::new());
    for (at, byte) in text.iter().enumerate() {
        let next = text.get(at + 1);
        let is_separator = matches!(byte, b' ' | b'-') && next.is_some_and(u8::is_ascii_digit);
        if byte.is_ascii_digit() {
            digits.push(byte - b'0');
            let is_end = next.is_none_or(|next| !next.is_ascii_alphanumeric() && !matches!(next, b'_' | b'.'));
            let is_sentence_end = next == Some(&b'.') && !text.get(at + 2).is_some_and(u8::is_ascii_digit);
            if is_end || is_sentence_end {
                ends.push((digits.len(), at + 1));
            }
        } else if !is_separator {
            break;
        }
        if digits.len() >= CARD_DIGITS.end {
            break;
        }
    }
    let is_card = |(count, _): &&(usize, usize)| digits.get(..*count).is_some_and(is_card_number);
    ends.iter().rev().find(is_card).map(|(_, length)| *length)
}

fn is_card_number(digits: &[u8]) -> bool {
    let first = |count: usize| digits.iter().take(count).fold(0_u32, |number, digit| number * 10 + u32::from(*digit));
    let is_of_a_network = match digits.len() {
        _ if !CARD_DIGITS.contains(&digits.len()) => false,
        13 => first(1) == 4,
        15 => matches!(first(2), 34 | 37),
        14 => matches!(first(2), 36 | 38 | 39) || matches!(first(3), 300..=305),
        16 if matches!(first(2), 51..=55) || matches!(first(4), 2221..=2720) => true,
        16 | 19 if first(1) == 4 => true,
        _ => {
            let (two, three, four) = (first(2), first(3), first(4));
            matches!(two, 62 | 65) || matches!(three, 644..=649) || four == 6011 || matches!(four, 3528..=3589)
        }
    };
    let luhn = |(at, digit): (usize, &u8)| match (at % 2, u32::from(*digit) * 2) {
        (0, double) => double / 2,
        (_, double) if double > 9 => double - 9,
        (_, double) => double,
    };
    is_of_a_network && digits.iter().rev().enumerate().map(luhn).sum::<u32>() % 10 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(text: &str) -> String {
        without(text).unwrap_or_else(|| text.to_owned())
    }

    #[test]
    fn the_password_of_an_address_is_hidden() {
        for (said, left) in [
            ("use postgres://app:s3cr3t@db:5432/x?a=b now", "use postgres://app:__REDACTED__@db:5432/x?a=b now"),
            ("redis://:s3cr3t@cache", "redis://:__REDACTED__@cache"),
            ("amqp://u:p/w#1@h/v", "amqp://u:__REDACTED__@h/v"),
            ("'mysql://u:p@h' http://h:80/@me", "'mysql://u:__REDACTED__@h' http://h:80/@me"),
            ("https://h/login?next=ftp://u:p@h", "https://h/login?next=ftp://u:__REDACTED__@h"),
            ("git clone ssh://git@host/x", "git clone ssh://git@host/x"),
            ("https://host:8080/a@b", "https://host:8080/a@b"),
            ("postgres://app:__REDACTED__@db", "postgres://app:__REDACTED__@db"),
        ] {
            assert_eq!(cleaned(said), left);
        }
    }

    #[test]
    fn pem_blocks_are_hidden_even_if_they_are_cut() {
        let block = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----";
        assert_eq!(cleaned(&format!("a {block} b {block}\n")), "a __REDACTED__ b __REDACTED__\n");
        assert_eq!(cleaned("a -----BEGIN RSA PRIVATE KEY-----\nMIIE"), "a __REDACTED__");
    }

    #[test]
    fn card_numbers_are_hidden_and_other_numbers_are_not() {
        for card in [
            "4111111111111111",
            "4111 1111 1111 1111",
            "5500-0000-0000-0004",
            "378282246310005",
            "6011000990139424",
            "30569309025904",
            "3530111333300000",
            "2223003122003222",
        ] {
            assert_eq!(cleaned(&format!("card {card}, 12/29")), "card __REDACTED__, 12/29");
            assert_eq!(cleaned(&format!("{{\"n\":\"{card}\"}}")), "{\"n\":\"__REDACTED__\"}");
        }
        assert_eq!(cleaned("It is 12 4111 1111 1111 1111 12."), "It is 12 __REDACTED__ 12.");
        assert_eq!(cleaned("It is 4111111111111111."), "It is __REDACTED__.");
        for number in [
            "4111111111111112",
            "1764357600000000",
            "1764357600000000018",
            "9400111899223100001",
            "0.4111111111111111",
            "4111111111111111.5",
            "a4111111111111111",
            "41111111111111111111111",
        ] {
            assert_eq!(cleaned(number), number);
        }
    }
}
