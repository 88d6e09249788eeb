//! W3C `baggage` as a caller gives it: a list of `key=value;property` that is passed on, never looked into. It is read
//! only to be sure that what is passed on is baggage and nothing else.

/// The longest baggage that is passed on, in bytes, and how many members it may have: what W3C demands of everybody.
const MAX_BYTES: usize = 8192;
const MAX_MEMBERS: usize = 64;

/// What was kept of a `baggage` header. A member is kept as it was written or left out as a whole: one that is malformed
/// is left out alone, and from the first that makes it too long or too many, all the rest is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baggage {
    /// The members that were kept, if any, as a header value.
    pub kept: Option<String>,
    /// How many were malformed.
    pub malformed: usize,
    /// How many there was no room for.
    pub too_many: usize,
}

impl Baggage {
    /// Reads a header. Never fails: what cannot be read is counted.
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

/// Without the blanks that may stand around anything in a header. No other white space may.
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
    fn what_is_well_formed_is_kept_as_it_was_written() {
        for header in ["user=ada", "user=ada%20l,tier=gold;ttl=3;sticky", "k = v", "empty=", "base64=YQ=="] {
            let read = Baggage::read(header);
            assert_eq!((read.kept.as_deref(), read.is_whole()), (Some(header), true), "{header}");
        }
        assert_eq!(Baggage::read(""), Baggage::default());
        assert_eq!(Baggage::read(" , ,"), Baggage::default());
    }

    #[test]
    fn a_malformed_member_is_left_out_alone() {
        let read = Baggage::read("a=1,no pair,b=\"2\",=3,c=4;,d=5\r\nx: y,e=\u{e9}, f=6");
        assert_eq!(read, Baggage { kept: Some("a=1,f=6".into()), malformed: 6, too_many: 0 });
        assert_eq!(Baggage::read("nonsense").kept, None);
        let broken = Baggage::read("a\n=1,b=\r\n2,c=3;\u{2003}p,d=4,\ne=5,\u{a0}f=6");
        assert_eq!(broken, Baggage { kept: Some("d=4".into()), malformed: 5, too_many: 0 });
    }

    #[test]
    fn there_are_never_more_members_or_bytes_than_everybody_takes() {
        let many = (0..70).map(|n| format!("k{n}=v")).collect::<Vec<_>>().join(",");
        let read = Baggage::read(&many);
        assert_eq!((read.kept.as_deref().map(|kept| kept.split(',').count()), read.too_many), (Some(64), 6));
        let long = format!("a={0},b={0},c={0}", "x".repeat(3000));
        let read = Baggage::read(&long);
        assert_eq!((read.kept.as_deref().map(str::len), read.too_many), (Some(6005), 1));
        let longest = format!("a={}", "x".repeat(8190));
        assert_eq!(Baggage::read(&longest).kept.as_deref().map(str::len), Some(8192));
        // A short one that follows what did not fit is not passed on in its stead.
        assert_eq!(
            Baggage::read(&format!("a={},b=1", "x".repeat(9000))),
            Baggage { kept: None, malformed: 0, too_many: 2 }
        );
    }
}
