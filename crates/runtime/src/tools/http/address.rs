//! Which addresses an HTTP tool may connect to: public ones, and those of hosts that the agent file names.
//!
//! Private networks, loopback, link-local (where clouds keep their metadata) and what is reserved is refused, also where
//! an IPv6 address stands for such an IPv4 one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// May a host be connected to at this address? `allowed` are the file's `allow_hosts`.
///
/// A link-local address is reached only when the file names the address itself: a name that leads there is no mistake
/// of the file.
pub(crate) fn may_connect(address: IpAddr, host: &str, port: u16, allowed: &[String]) -> bool {
    let address = address.to_canonical();
    if is_public(address) {
        return true;
    }
    let with_port = format!("{}:{port}", if host.contains(':') { format!("[{host}]") } else { host.to_owned() });
    let named = allowed.iter().any(|entry| {
        let entry = entry.to_ascii_lowercase();
        entry == host || entry == with_port
    });
    named && (!is_link_local(address) || host.parse::<IpAddr>().is_ok())
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    }
}

/// Is it an address of the open internet?
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

/// The special-purpose registry of RFC 6890 and its updates.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = matches!(
        (a, b, c),
        (0 | 10 | 127, ..)
            | (100, 64..=127, _)
            | (169, 254, _)
            | (172, 16..=31, _)
            | (192, 0, 0 | 2)
            | (192, 88, 99)
            | (192, 168, _)
            | (198, 18 | 19, _)
            | (198, 51, 100)
            | (203, 0, 113)
            | (224..=255, ..)
    );
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let low = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // 64:ff9b::/96, a translator's IPv4 address.
        [0x64, 0xff9b, 0, 0, 0, 0, high, l] => low(high, l),
        // 2002::/16, 6to4.
        [0x2002, high, l, ..] => low(high, l),
        // Teredo, benchmarks, ORCHID, documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, ..] => false,
        // What is given out as global unicast; all else is local, multicast or reserved.
        [first, ..] => (0x2000..=0x3fff).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for private in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            let address: IpAddr = private.parse().unwrap();
            assert!(!may_connect(address, "x.example", 80, &[]), "{private}");
        }
        for public in [
            "1.1.1.1",
            "172.15.0.1",
            "172.32.0.1",
            "100.128.0.1",
            "2606:4700::1111",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ] {
            assert!(may_connect(public.parse().unwrap(), "x.example", 80, &[]), "{public}");
        }
    }

    #[test]
    fn a_host_that_the_file_names_may_be_private_but_not_link_local() {
        let allowed =
            ["Ledger.test".to_owned(), "db.test:81".to_owned(), "169.254.1.1".to_owned(), "[::1]:8080".to_owned()];
        let may = |address: &str, host: &str, port| may_connect(address.parse().unwrap(), host, port, &allowed);
        assert!(may("127.0.0.1", "ledger.test", 80) && may("10.0.0.1", "db.test", 81));
        assert!(!may("10.0.0.1", "db.test", 80), "another port");
        assert!(!may("127.0.0.1", "other.test", 80), "another host");
        assert!(!may("169.254.169.254", "ledger.test", 80), "a name that leads to the metadata service");
        assert!(may("169.254.1.1", "169.254.1.1", 80), "the address itself is named");
        assert!(may("::1", "::1", 8080));
    }
}
