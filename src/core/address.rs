//! Classification of IP addresses: public, private, loopback or forbidden. Each egress guard decides by this class
//! whether an untrusted address may be requested (decision 0027). No names are resolved here.

use ::core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The class of an IP address, by which requests are allowed or refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressClass {
    /// A host of the internet.
    Public,
    /// A host of a private network: RFC 1918, shared address space, unique local addresses.
    Private,
    Loopback,
    /// Not a host that serves the public: link-local, cloud metadata, multicast, unspecified, documentation, reserved.
    Forbidden,
}

/// The classes that requests may reach besides public addresses, which they always may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllowedClasses {
    /// Whether private networks are allowed.
    pub private: bool,
    /// Whether this machine is allowed.
    pub loopback: bool,
}

impl AllowedClasses {
    /// Whether requests may reach addresses of this class. No setting allows forbidden ones.
    pub fn admits(self, class: AddressClass) -> bool {
        match class {
            AddressClass::Public => true,
            AddressClass::Private => self.private,
            AddressClass::Loopback => self.loopback,
            AddressClass::Forbidden => false,
        }
    }
}

/// The addresses that toolgate may reach for its own servers and models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressPolicy {
    /// The classes that any host may be in.
    pub classes: AllowedClasses,
    /// Hosts in normal form that may be in private networks and on this machine.
    pub hosts: Vec<String>,
}

impl Default for EgressPolicy {
    /// Every address that is not forbidden.
    fn default() -> Self {
        Self { classes: AllowedClasses { private: true, loopback: true }, hosts: Vec::new() }
    }
}

impl EgressPolicy {
    /// The classes that a host in normal form may be in.
    pub fn classes_of(&self, host: &str) -> AllowedClasses {
        let is_named = self.hosts.iter().any(|named| named == host);
        if is_named { Self::default().classes } else { self.classes }
    }

    /// Whether the text of a host shows that it is not allowed. A name is classified when it is resolved.
    pub fn refuses_text(&self, host: &str) -> bool {
        let host = normal_host(host);
        let literal = host.parse().ok().map(place);
        let class = literal.or_else(|| is_localhost(&host).then_some(AddressClass::Loopback));
        class.is_some_and(|class| !self.classes_of(&host).admits(class))
    }
}

/// A host in normal form: no brackets, no root dot, lower case.
pub fn normal_host(host: &str) -> String {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// Whether a host in normal form is a name of this machine (RFC 6761).
pub fn is_localhost(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

/// Classifies an address. An IPv6 address that embeds an IPv4 address is classified as that address.
pub fn place(address: IpAddr) -> AddressClass {
    if METADATA.contains(&address) {
        return AddressClass::Forbidden;
    }
    match address {
        IpAddr::V4(address) => v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(inner) => place(IpAddr::V4(inner)),
            None => v6(address),
        },
    }
}

/// Metadata services of clouds, in addition to 169.254.169.254 and its link-local range.
const METADATA: [IpAddr; 5] = [
    // Alibaba Cloud
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    // Azure's WireServer, a public address that only Azure machines can reach
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    // Oracle Cloud
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    // AWS and Google Cloud over IPv6
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

/// The special blocks of RFC 6890 and its successors.
fn v4(address: Ipv4Addr) -> AddressClass {
    match address.octets() {
        [127, ..] => AddressClass::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => AddressClass::Private,
        [0, ..]
        | [169, 254, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [224..=255, ..] => AddressClass::Forbidden,
        _ => AddressClass::Public,
    }
}

/// Only 2000::/3 is allocated, so everything else is listed here or forbidden.
fn v6(address: Ipv6Addr) -> AddressClass {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        [0xfc00..=0xfdff, ..] => AddressClass::Private,
        // IETF protocols (Teredo among them) and documentation
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => AddressClass::Forbidden,
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        _ => AddressClass::Forbidden,
    }
}

/// The IPv4 address that a mapped, compatible, translated (NAT64) or tunnelled (6to4) address leads to.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let joined = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => Some(joined(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => Some(joined(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_places(expected: AddressClass, addresses: &[&str]) {
        for address in addresses {
            assert_eq!(place(address.parse().expect(address)), expected, "{address}");
        }
    }

    #[test]
    fn special_blocks_include_their_first_and_last_address() {
        assert_places(AddressClass::Loopback, &["127.0.0.0", "127.0.0.1", "127.255.255.255", "::1"]);
        assert_places(
            AddressClass::Private,
            &[
                "10.0.0.0",
                "10.255.255.255",
                "172.16.0.0",
                "172.31.255.255",
                "192.168.0.0",
                "192.168.255.255",
                "100.64.0.0",
                "100.127.255.255",
                "fc00::",
                "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            ],
        );
        assert_places(
            AddressClass::Forbidden,
            &[
                "0.0.0.0",
                "0.255.255.255",
                "169.254.0.0",
                "169.254.169.254",
                "169.254.255.255",
                "192.0.0.1",
                "192.0.2.1",
                "192.88.99.1",
                "198.18.0.0",
                "198.19.255.255",
                "198.51.100.1",
                "203.0.113.1",
                "224.0.0.1",
                "239.255.255.255",
                "240.0.0.1",
                "255.255.255.255",
                "::",
                "fe80::1",
                "febf:ffff::1",
                "fec0::1",
                "ff02::1",
                "2001::1",
                "2001:1ff::1",
                "2001:db8::1",
                "3fff::1",
                "100::1",
                "64:ff9b:1::1",
                "4000::1",
            ],
        );
    }

    #[test]
    fn addresses_next_to_a_special_block_are_public() {
        assert_places(
            AddressClass::Public,
            &[
                "1.1.1.1",
                "9.255.255.255",
                "11.0.0.0",
                "100.63.255.255",
                "100.128.0.0",
                "126.255.255.255",
                "128.0.0.0",
                "169.253.255.255",
                "169.255.0.0",
                "172.15.255.255",
                "172.32.0.0",
                "192.0.1.0",
                "192.167.255.255",
                "192.169.0.0",
                "198.17.255.255",
                "198.20.0.0",
                "223.255.255.255",
                "2001:200::1",
                "2606:4700::1111",
                "3ffe::1",
            ],
        );
    }

    #[test]
    fn cloud_metadata_is_forbidden_where_private_addresses_are_not() {
        assert_places(
            AddressClass::Forbidden,
            &["169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"],
        );
    }

    #[test]
    fn public_addresses_are_always_allowed_and_forbidden_ones_never() {
        use AddressClass::{Forbidden, Loopback, Private, Public};
        for (private, loopback) in [(false, false), (false, true), (true, false), (true, true)] {
            let allowed = AllowedClasses { private, loopback };
            let admitted = [Public, Private, Loopback, Forbidden].map(|class| allowed.admits(class));
            assert_eq!(admitted, [true, private, loopback, false], "{allowed:?}");
        }
    }

    #[test]
    fn a_host_has_one_normal_form() {
        for (host, normal) in [("[::1]", "::1"), ("LocalHost.", "localhost"), ("a.b..", "a.b"), ("[odd", "[odd")] {
            assert_eq!(normal_host(host), normal);
        }
        assert!(is_localhost("localhost") && is_localhost("a.localhost"));
        assert!(!is_localhost("notlocalhost") && !is_localhost("localhost.example.com"));
    }

    #[test]
    fn an_ipv4_address_in_the_clothes_of_ipv6_is_what_it_was() {
        for (address, expected) in [
            ("::ffff:127.0.0.1", AddressClass::Loopback),
            ("::ffff:10.0.0.1", AddressClass::Private),
            ("::ffff:169.254.169.254", AddressClass::Forbidden),
            ("::ffff:100.100.100.200", AddressClass::Forbidden),
            ("::ffff:8.8.8.8", AddressClass::Public),
            ("::127.0.0.1", AddressClass::Loopback),
            ("::ffff:0:192.168.1.1", AddressClass::Private),
            ("64:ff9b::a9fe:a9fe", AddressClass::Forbidden),
            ("64:ff9b::7f00:1", AddressClass::Loopback),
            ("64:ff9b::808:808", AddressClass::Public),
            ("2002:7f00:1::1", AddressClass::Loopback),
            ("2002:a00:1::1", AddressClass::Private),
            ("2002:808:808::1", AddressClass::Public),
        ] {
            assert_places(expected, &[address]);
        }
    }
}
