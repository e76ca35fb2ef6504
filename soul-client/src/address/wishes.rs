//! Which networks and interfaces an address should, and should not, come from.

use std::net::IpAddr;

use super::Facts;

/// A set of addresses: `10.0.0.0/8`, `fd00::/8`, one address, or a beginning such as `192.168.*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    Prefix(IpAddr, u32),
    Text(String),
}

impl Network {
    /// Reads one; the error says what would be right.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is no network: write `10.0.0.0/8`, `fd00::/8` or `192.168.*`");
        if let Some(beginning) = text.strip_suffix('*') {
            let good = !beginning.is_empty()
                && beginning.chars().all(|c| c.is_ascii_hexdigit() || matches!(c, '.' | ':'));
            return if good { Ok(Self::Text(beginning.to_ascii_lowercase())) } else { Err(bad()) };
        }
        let (address, length) =
            text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(all), |length| length.parse().map_err(|_| bad()))?;
        if length <= all { Ok(Self::Prefix(address, length)) } else { Err(bad()) }
    }

    fn contains(&self, ip: IpAddr) -> bool {
        match (self, ip) {
            (Self::Text(beginning), ip) => ip.to_string().starts_with(beginning),
            (&Self::Prefix(IpAddr::V4(network), length), IpAddr::V4(ip)) => {
                let differ = network.to_bits() ^ ip.to_bits();
                differ.checked_shr(32 - length).unwrap_or(0) == 0
            }
            (&Self::Prefix(IpAddr::V6(network), length), IpAddr::V6(ip)) => {
                let differ = network.to_bits() ^ ip.to_bits();
                differ.checked_shr(128 - length).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// Preferences among what is known about the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wishes {
    pub(crate) preferred: Vec<Network>,
    /// Names of interfaces; a `*` at the end stands for any ending.
    pub(crate) ignored: Vec<String>,
}

impl Wishes {
    /// Takes out what is ignored, and names what is preferred, in the order of the wishes.
    pub(crate) fn apply(&self, mut facts: Facts) -> Facts {
        let ignored: Vec<_> =
            facts.interfaces.iter().filter(|(name, _)| self.ignores(name)).map(|(_, ip)| *ip).collect();
        facts.interfaces.retain(|(name, _)| !self.ignores(name));
        let stays = |ip: &IpAddr| !ignored.contains(ip);
        facts.towards_admin = facts.towards_admin.filter(stays);
        facts.default_route = facts.default_route.filter(stays);
        for network in &self.preferred {
            let members = facts.interfaces.iter().filter(|(_, ip)| network.contains(*ip));
            facts.preferred.extend(members.cloned());
        }
        facts
    }

    fn ignores(&self, name: &str) -> bool {
        self.ignored.iter().any(|ignored| match ignored.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == ignored,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{AddressReason, choose};

    #[test]
    fn networks() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.1.2", "11.0.0.1"),
            ("10.1.2.3/32", "10.1.2.3", "10.1.2.4"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("0.0.0.0/0", "200.1.1.1", "::1"),
            ("192.168.*", "192.168.7.1", "192.169.0.1"),
            ("fd00::/8", "fd12::1", "fe80::1"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
        ] {
            let parsed = Network::parse(network).unwrap();
            assert!(parsed.contains(inside.parse().unwrap()), "{network}");
            assert!(!parsed.contains(outside.parse().unwrap()), "{network}");
        }
        for network in ["", "*", "eth0", "10.0.0.0/33", "fd00::/129", "10.0.0.0/x", "host*"] {
            assert!(Network::parse(network).unwrap_err().contains("is no network"), "{network}");
        }
    }

    #[test]
    fn wishes_decide_before_routes_do() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let cards =
            [("lo", "127.0.0.1"), ("eth0", "10.1.2.3"), ("docker0", "172.17.0.1"), ("tun0", "10.8.0.6")];
        let facts = || Facts {
            towards_admin: Some(ip("10.8.0.6")),
            default_route: Some(ip("10.1.2.3")),
            interfaces: cards.iter().map(|(name, address)| ((*name).to_owned(), ip(address))).collect(),
            ..Facts::default()
        };
        for (preferred, ignored, address, reason) in [
            (&[][..], &[][..], "10.8.0.6", AddressReason::RouteToAdmin),
            (&["172.17.0.0/16"], &[], "172.17.0.1", AddressReason::Preferred("docker0".into())),
            (&["192.168.*", "10.1.*"], &[], "10.1.2.3", AddressReason::Preferred("eth0".into())),
            (&["127.0.0.0/8"], &[], "10.8.0.6", AddressReason::RouteToAdmin),
            (&[], &["tun*"], "10.1.2.3", AddressReason::DefaultRoute),
            (&[], &["tun0", "eth0"], "172.17.0.1", AddressReason::Interface("docker0".into())),
            (&["10.8.*"], &["tun0"], "10.1.2.3", AddressReason::DefaultRoute),
        ] {
            let wishes = Wishes {
                preferred: preferred.iter().map(|network| Network::parse(network).unwrap()).collect(),
                ignored: ignored.iter().map(|&name| name.to_owned()).collect(),
            };
            let announced = choose(None, None, "0.0.0.0:80".parse().unwrap(), &wishes.apply(facts()));
            assert_eq!(
                (announced.host(), announced.reason()),
                (address, &reason),
                "{preferred:?} {ignored:?}"
            );
        }
    }
}
