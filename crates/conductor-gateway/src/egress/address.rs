//! Decides which addresses are public: global unicast, and none of the ranges that lead back inside (S-36).
//!
//! The ranges are those of the registries of special-purpose addresses, and the metadata services of clouds that
//! answer on an address of their own. This module does not know which addresses are the host's.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Tells whether an address is global unicast and stands for nothing but itself.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !NOT_PUBLIC_V4.iter().any(|(net, bits)| is_in_v4(v4, *net, *bits)),
        // All that is not below 2000::/3 goes at once: loopback, mapped, compatible, NAT64, ULA, link-local, multicast.
        IpAddr::V6(v6) => {
            is_in_v6(v6, GLOBAL_UNICAST.0, GLOBAL_UNICAST.1)
                && !NOT_PUBLIC_V6.iter().any(|(net, bits)| is_in_v6(v6, *net, *bits))
                && !is_isatap(v6)
        }
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8) -> Ipv4Addr {
    Ipv4Addr::new(a, b, c, d)
}

const NOT_PUBLIC_V4: &[(Ipv4Addr, u32)] = &[
    (v4(0, 0, 0, 0), 8),        // this network
    (v4(10, 0, 0, 0), 8),       // private
    (v4(100, 64, 0, 0), 10),    // carrier-grade NAT, and Alibaba's metadata
    (v4(127, 0, 0, 0), 8),      // loopback
    (v4(168, 63, 129, 16), 32), // Azure's metadata and name service
    (v4(169, 254, 0, 0), 16),   // link-local, and most clouds' metadata
    (v4(172, 16, 0, 0), 12),    // private
    (v4(192, 0, 0, 0), 24),     // protocol assignments, and Oracle's metadata
    (v4(192, 0, 2, 0), 24),     // documentation
    (v4(192, 31, 196, 0), 24),  // AS112
    (v4(192, 52, 193, 0), 24),  // automatic multicast tunnelling
    (v4(192, 88, 99, 0), 24),   // 6to4 relays
    (v4(192, 168, 0, 0), 16),   // private
    (v4(192, 175, 48, 0), 24),  // AS112
    (v4(198, 18, 0, 0), 15),    // benchmarking
    (v4(198, 51, 100, 0), 24),  // documentation
    (v4(203, 0, 113, 0), 24),   // documentation
    (v4(224, 0, 0, 0), 4),      // multicast
    (v4(240, 0, 0, 0), 4),      // reserved, and broadcast
];

const fn v6(a: u16, b: u16, c: u16) -> Ipv6Addr {
    Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)
}

const GLOBAL_UNICAST: (Ipv6Addr, u32) = (v6(0x2000, 0, 0), 3);

const NOT_PUBLIC_V6: &[(Ipv6Addr, u32)] = &[
    (v6(0x2001, 0, 0), 23),         // protocol assignments: Teredo, ORCHID, benchmarking
    (v6(0x2001, 0xdb8, 0), 32),     // documentation
    (v6(0x2002, 0, 0), 16),         // 6to4
    (v6(0x2620, 0x4f, 0x8000), 48), // AS112
    (v6(0x3ffe, 0, 0), 16),         // 6bone, returned
    (v6(0x3fff, 0, 0), 20),         // documentation
];

fn is_in_v4(address: Ipv4Addr, net: Ipv4Addr, bits: u32) -> bool {
    (u32::from(address) ^ u32::from(net)) >> (32 - bits) == 0
}

fn is_in_v6(address: Ipv6Addr, net: Ipv6Addr, bits: u32) -> bool {
    (u128::from(address) ^ u128::from(net)) >> (128 - bits) == 0
}

/// An interface id of `…:0:5efe:a.b.c.d` or `…:200:5efe:a.b.c.d` tunnels to an IPv4 address (RFC 5214).
fn is_isatap(address: Ipv6Addr) -> bool {
    let [_, _, _, _, high, low, _, _] = address.segments();
    low == 0x5efe && (high & !0x0200) == 0
}
