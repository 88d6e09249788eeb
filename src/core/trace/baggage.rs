//! W3C `baggage` of a caller: a list of `key=value;property` that is propagated and never interpreted. It is parsed
//! only to ensure that nothing else is propagated.

/// The longest propagated baggage in bytes, and its most members: the minimum that W3C requires of every
/// implementation.
const MAX_BYTES: usize = 8192;
const MAX_MEMBERS: usize = 64;

/// The result of parsing a `baggage` header. A member is kept as it was written or dropped as a whole: a malformed
/// member is dropped alone, and from the first member beyond the size or count limit, all others are dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baggage {
    /// The kept members, if any, as a header value.
    pub kept: Option<String>,
    /// The number of malformed members.
    pub malformed: usize,
    /// The number of members beyond the limits.
    pub too_many: usize,
}

impl Baggage {
    /// Parses a header. Never fails: malformed members are counted.
    pub fn read(header: &str) -> Self {
        let mut read = Self::default();
        let (mut kept, mut members) = (String::new(), 0);
        for member in header.trim().split(',').map(unpadded).filter(|member| !member.is_empty()) {
            let comma = usize::from(members > 0);
            if !is_member(member) {
                read.malformed += 1;
            } else if read.too_many > 0 || members == MAX_MEMBERS || kept.len() + comma + member.len() > MAX_BYTES {
                read.too_many += 1;
            } else {
                if members > 0 {
                    kept.push(',');
                }
                kept.push_str(member);
                members += 1;
            }
        }
        read.kept = (members > 0).then_some(kept);
        read
    }

    /// Whether all of it was kept.
    pub fn is_whole(&self) -> bool {
        self.malformed == 0 && self.too_many == 0
    }
}

/// `key=value`, then properties: a `key` or `key=value` each.
fn is_member(member: &str) -> bool {
    let mut parts = member.split(';').map(unpadded);
    let pair = parts.next().and_then(|pair| pair.split_once('='));
    pair.is_some_and(|(key, value)| is_token(unpadded(key)) && is_value(unpadded(value)))
        && parts.all(|property| match property.split_once('=') {
            Some((key, value)) => is_token(unpadded(key)) && is_value(unpadded(value)),
            None => is_token(property),
        })
}

/// Trims the blanks that may surround a header value. No other white space is allowed.
fn unpadded(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// A token of HTTP (RFC 7230).
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Printable ASCII without blanks, quotes, commas, semicolons and backslashes; everything else is percent-encoded.
fn is_value(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\",;\\".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_formed_members_are_kept_verbatim() {
        for header in ["user=ada", "user=ada%20l,tier=gold;ttl=3;sticky", "k = v", "empty=", "base64=YQ=="] {
            let read = Baggage::read(header);
            assert_eq!((read.kept.as_deref(), read.is_whole()), (Some(header), true), "{header}");
        }
        assert_eq!(Baggage::read(""), Baggage::default());
        assert_eq!(Baggage::read(" , ,"), Baggage::default());
    }

    #[test]
    fn a_malformed_member_is_dropped_alone() {
        let read = Baggage::read("a=1,no pair,b=\"2\",=3,c=4;,d=5\r\nx: y,e=\u{e9}, f=6");
        assert_eq!(read, Baggage { kept: Some("a=1,f=6".into()), malformed: 6, too_many: 0 });
        assert_eq!(Baggage::read("nonsense").kept, None);
        let broken = Baggage::read("a\n=1,b=\r\n2,c=3;\u{2003}p,d=4,\ne=5,\u{a0}f=6");
        assert_eq!(broken, Baggage { kept: Some("d=4".into()), malformed: 5, too_many: 0 });
    }

    #[test]
    fn members_and_bytes_stay_within_the_w3c_minimum() {
        let many = (0..70).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join(",");
        let read = Baggage::read(&many);
        assert_eq!((read.kept.as_deref().map(|kept| kept.split(',').count()), read.too_many), (Some(64), 6));
        let long = format!("a={0},b={0},c={0}", "x".repeat(3000));
        let read = Baggage::read(&long);
        assert_eq!((read.kept.as_deref().map(str::len), read.too_many), (Some(6005), 1));
        let longest = format!("a={}", "x".repeat(8190));
        assert_eq!(Baggage::read(&longest).kept.as_deref().map(str::len), Some(8192));
        // A short member after one that did not fit is not propagated instead of it.
        assert_eq!(
            Baggage::read(&format!("a={},b=1", "x".repeat(9000))),
            Baggage { kept: None, malformed: 0, too_many: 2 }
        );
    }
}
