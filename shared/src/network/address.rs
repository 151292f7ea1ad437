//! The IP addresses that a customer's server may have.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Every network that is not part of the public internet.
///
/// An IPv6 address that contains an IPv4 address is always refused: only a router knows where it leads.
const FORBIDDEN: [IpNet; 22] = [
    // This network, and the unspecified address.
    v4([0, 0, 0, 0], 8),
    // Private.
    v4([10, 0, 0, 0], 8),
    v4([172, 16, 0, 0], 12),
    v4([192, 168, 0, 0], 16),
    // Shared by the customers of a provider.
    v4([100, 64, 0, 0], 10),
    // Loopback: Lambda's own interface answers there.
    v4([127, 0, 0, 0], 8),
    // Link-local, with the metadata of a machine.
    v4([169, 254, 0, 0], 16),
    // Assigned to protocols.
    v4([192, 0, 0, 0], 24),
    // Documentation.
    v4([192, 0, 2, 0], 24),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    // Relays of 6to4.
    v4([192, 88, 99, 0], 24),
    // Benchmarks.
    v4([198, 18, 0, 0], 15),
    // Multicast, then reserved and broadcast.
    v4([224, 0, 0, 0], 4),
    v4([240, 0, 0, 0], 4),
    // IPv6 outside 2000::/3: unspecified, loopback, IPv4-mapped and -compatible, NAT64; then unassigned; then
    // unique-local, link-local, site-local, multicast.
    v6([0, 0], 3),
    v6([0x4000, 0], 2),
    v6([0x8000, 0], 1),
    // Assigned to protocols, with Teredo.
    v6([0x2001, 0], 23),
    // Documentation.
    v6([0x2001, 0x0db8], 32),
    v6([0x3fff, 0], 20),
    // 6to4.
    v6([0x2002, 0], 16),
];

/// The addresses to which events may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The public internet: the value of every deployment.
    Public,
    /// This machine too, and without TLS. Only the code of the local stack sets this value: no environment variable
    /// can.
    Loopback,
}

impl Reach {
    /// Whether a customer's server may be at `address`.
    pub fn allows(self, address: IpAddr) -> bool {
        (self == Self::Loopback && address.is_loopback()) || !FORBIDDEN.iter().any(|network| network.contains(&address))
    }

    /// Whether events may be sent by `scheme`, in lower case.
    pub fn allows_scheme(self, scheme: &str) -> bool {
        scheme == "https" || (self == Self::Loopback && scheme == "http")
    }
}

const fn v4([a, b, c, d]: [u8; 4], length: u8) -> IpNet {
    IpNet::new_assert(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), length)
}

const fn v6([a, b]: [u16; 2], length: u8) -> IpNet {
    IpNet::new_assert(IpAddr::V6(Ipv6Addr::new(a, b, 0, 0, 0, 0, 0, 0)), length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_of_each_forbidden_network_are_refused() {
        for network in FORBIDDEN {
            assert_eq!(network, network.trunc());
            assert!(!Reach::Public.allows(network.network()), "{network}");
            assert!(!Reach::Public.allows(network.broadcast()), "{network}");
        }
    }

    #[test]
    fn an_address_that_contains_another_one_is_refused() {
        for address in [
            "::ffff:1.1.1.1",
            "::ffff:127.0.0.1",
            "::1.1.1.1",
            "::ffff:0:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "64:ff9b:1::1.1.1.1",
            "2002:0101:0101::1",
            "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        ] {
            let address = address.parse().unwrap();
            assert!(!Reach::Public.allows(address) && !Reach::Loopback.allows(address), "{address}");
        }
    }

    #[test]
    fn the_neighbours_of_the_forbidden_networks_are_public() {
        for address in [
            "1.0.0.0",
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
            "191.255.255.255",
            "192.0.1.0",
            "192.0.3.0",
            "192.88.98.255",
            "192.88.100.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "198.51.101.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "2000::",
            "2001:200::",
            "2001:db7:ffff::",
            "2001:db9::",
            "2001:4860:4860::8888",
            "2003::",
            "2606:4700:4700::1111",
            "3ffe:ffff::",
            "3fff:1000::",
        ] {
            assert!(Reach::Public.allows(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn the_local_stack_may_reach_only_this_machine_and_the_internet() {
        for (address, allowed) in [
            ("127.0.0.1", true),
            ("127.255.255.255", true),
            ("::1", true),
            ("1.1.1.1", true),
            ("::", false),
            ("0.0.0.0", false),
            ("10.0.0.1", false),
            ("169.254.169.254", false),
            ("fd00:ec2::254", false),
        ] {
            assert_eq!(Reach::Loopback.allows(address.parse().unwrap()), allowed, "{address}");
        }
    }
}
