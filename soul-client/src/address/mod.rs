//! Which address this instance announces to the admins, and why.
//!
//! [`choose`] is a pure function of what is known about the machine; `facts` finds that out.

mod facts;
mod wishes;

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

pub(crate) use facts::gather;
pub(crate) use wishes::{Network, Wishes};

/// The address that the gateway is told to reach this instance at.
///
/// In this order, the first that there is:
///
/// 1. `host` of the configuration;
/// 2. the address that the listener is bound to, if it is a single one;
/// 3. one in a preferred network, where some are configured;
/// 4. the source address of the route towards the admin, found without sending anything;
/// 5. the source address of the default route;
/// 6. the first ordinary interface; those of containers, bridges, tunnels and link-local addresses come last;
/// 7. `127.0.0.1`, with a warning.
///
/// A route to an admin on this same machine says nothing about how others reach it, so loopback addresses
/// are passed over from 3 to 5, and ignored interfaces from 3 to 6. The port is that of the configuration, else that of the listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announced {
    host: String,
    port: u16,
    reason: AddressReason,
}

/// Why an address is announced.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressReason {
    /// It was configured.
    Configured,
    /// The listener is bound to it.
    Listener,
    /// It is in a preferred network, and belongs to this interface.
    Preferred(String),
    /// Packets to the admin leave from it.
    RouteToAdmin,
    /// Packets of the default route leave from it.
    DefaultRoute,
    /// It belongs to this interface, and nothing better was found.
    Interface(String),
    /// There is nothing but loopback.
    NothingElse,
}

impl Announced {
    /// Host or IP as it is sent; an IPv6 address stands in brackets, since admins append `:` and the port.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port as it is sent.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Why this host.
    #[must_use]
    pub fn reason(&self) -> &AddressReason {
        &self.reason
    }

    /// Whether another look may find a better one: the network may not have been up yet.
    pub(crate) fn is_provisional(&self) -> bool {
        matches!(self.reason, AddressReason::Interface(_) | AddressReason::NothingElse)
    }

    /// What is doubtful about it, for the log.
    ///
    /// - `admins_are_local`: a loopback address is right while the whole installation is on one machine.
    pub(crate) fn doubt(&self, admins_are_local: bool) -> Option<&'static str> {
        match self.host.parse::<IpAddr>() {
            Ok(ip) if ip.is_loopback() => {
                (!admins_are_local).then_some("only gateways on this machine reach a loopback address")
            }
            Ok(IpAddr::V4(ip)) if ip.is_link_local() => {
                Some("only machines on the same cable reach a link-local address")
            }
            Ok(_) => None,
            Err(_) if self.host.starts_with('[') => {
                Some("a Java admin does not probe IPv6 addresses and drops them within about ten seconds")
            }
            Err(_) => Some("a Java admin does not probe host names and drops them within about ten seconds"),
        }
    }
}

impl fmt::Display for Announced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Display for AddressReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured => f.write_str("configured"),
            Self::Listener => f.write_str("the listener is bound to it"),
            Self::Preferred(name) => write!(f, "address of the interface {name} in a preferred network"),
            Self::RouteToAdmin => f.write_str("the route to the admin starts there"),
            Self::DefaultRoute => f.write_str("the default route starts there"),
            Self::Interface(name) => write!(f, "address of the interface {name}"),
            Self::NothingElse => f.write_str("no other address was found"),
        }
    }
}

/// What is known about the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Source address of the route towards the first admin that has one.
    pub(crate) towards_admin: Option<IpAddr>,
    /// Source address of the default route.
    pub(crate) default_route: Option<IpAddr>,
    /// Every address of every interface.
    pub(crate) interfaces: Vec<(String, IpAddr)>,
    /// Those of them in a preferred network, best first.
    pub(crate) preferred: Vec<(String, IpAddr)>,
}

/// Chooses what to announce; pure.
///
/// # Shape
/// - `host`, `port`: as configured.
/// - `listener`: what the service is bound to, the port chosen already.
pub(crate) fn choose(
    host: Option<&str>,
    port: Option<u16>,
    listener: SocketAddr,
    facts: &Facts,
) -> Announced {
    let (host, reason) = match (host, listener.ip().to_canonical()) {
        (Some(host), _) => (configured(host), AddressReason::Configured),
        (None, ip) if !ip.is_unspecified() => (written(ip), AddressReason::Listener),
        (None, any) => {
            // A listener on 0.0.0.0 takes IPv4 only; one on [::] takes both on the usual systems.
            let (ip, reason) = best(facts, |ip| any.is_ipv6() || ip.is_ipv4());
            (written(ip), reason)
        }
    };
    Announced { host, port: port.unwrap_or(listener.port()), reason }
}

fn best(facts: &Facts, reachable: impl Fn(IpAddr) -> bool) -> (IpAddr, AddressReason) {
    let usable = |ip: &IpAddr| reachable(*ip) && !ip.is_loopback() && !ip.is_unspecified();
    if let Some((name, ip)) = facts.preferred.iter().find(|(_, ip)| usable(ip)) {
        return (*ip, AddressReason::Preferred(name.clone()));
    }
    if let Some(ip) = facts.towards_admin.filter(usable) {
        return (ip, AddressReason::RouteToAdmin);
    }
    // The default route of a machine behind a tunnel starts in the tunnel: an ordinary card is better.
    let rank_of = |ip: IpAddr| {
        facts
            .interfaces
            .iter()
            .find(|(_, own)| *own == ip)
            .map_or_else(|| rank("", ip), |(name, _)| rank(name, ip))
    };
    if let Some(ip) = facts.default_route.filter(usable).filter(|&ip| rank_of(ip) < LAST) {
        return (ip, AddressReason::DefaultRoute);
    }
    facts
        .interfaces
        .iter()
        .filter(|(_, ip)| usable(ip))
        // `min_by_key` keeps the first of equals, so the system's own order decides among them.
        .min_by_key(|(name, ip)| rank(name, *ip))
        .map_or((IpAddr::V4(Ipv4Addr::LOCALHOST), AddressReason::NothingElse), |(name, ip)| {
            (*ip, AddressReason::Interface(name.clone()))
        })
}

/// From here on an interface is taken only if there is nothing else.
const LAST: u8 = 2;

/// Lower is better: ordinary IPv4, ordinary IPv6, interfaces of containers and tunnels, link-local.
fn rank(name: &str, ip: IpAddr) -> u8 {
    const VIRTUAL: [&str; 20] = [
        "docker", "br-", "veth", "virbr", "vmnet", "vboxnet", "vnet", "cni", "flannel", "cali", "cilium",
        "lxc", "lxd", "podman", "kube", "tun", "tap", "wg", "utun", "zt",
    ];
    let link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let is_virtual = VIRTUAL.iter().any(|prefix| name.starts_with(prefix));
    match (link_local, is_virtual, ip) {
        (true, ..) => LAST + 1,
        (false, true, _) => LAST,
        (false, false, IpAddr::V6(_)) => 1,
        (false, false, IpAddr::V4(_)) => 0,
    }
}

/// An IPv6 address gets its brackets; anything else is taken as it is.
fn configured(host: &str) -> String {
    host.trim_start_matches('[').trim_end_matches(']').parse().map_or_else(|_| host.to_owned(), written)
}

fn written(ip: IpAddr) -> String {
    match ip {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY4: &str = "0.0.0.0:8188";
    const ANY6: &str = "[::]:8188";

    fn facts(admin: &str, default: &str, interfaces: &[(&str, &str)]) -> Facts {
        Facts {
            towards_admin: admin.parse().ok(),
            default_route: default.parse().ok(),
            interfaces: interfaces
                .iter()
                .map(|(name, ip)| ((*name).to_owned(), ip.parse().unwrap()))
                .collect(),
            preferred: Vec::new(),
        }
    }

    #[test]
    fn table() {
        use AddressReason::{Configured, DefaultRoute, Listener, NothingElse, RouteToAdmin};
        let card = |name: &str| AddressReason::Interface(name.to_owned());
        let busy: &[_] = &[
            ("lo", "127.0.0.1"),
            ("docker0", "172.17.0.1"),
            ("eth1", "169.254.7.7"),
            ("eth0", "10.1.2.3"),
            ("eth0", "fe80::1"),
            ("tun0", "10.8.0.6"),
            ("br-1f", "172.18.0.1"),
        ];
        let only6: &[_] = &[("lo", "::1"), ("eth0", "fe80::7"), ("eth0", "2001:db8::7")];
        let only_docker: &[_] = &[("lo", "127.0.0.1"), ("docker0", "172.17.0.1")];
        let only_lo: &[_] = &[("lo", "127.0.0.1"), ("lo", "::1")];
        let cases = [
            (
                "host is taken",
                Some("orders.local"),
                ANY4,
                facts("10.1.2.3", "", busy),
                "orders.local",
                Configured,
            ),
            (
                "IPv6 host gets brackets",
                Some("2001:db8::9"),
                ANY4,
                facts("", "", busy),
                "[2001:db8::9]",
                Configured,
            ),
            ("and keeps them", Some("[2001:db8::9]"), ANY4, facts("", "", busy), "[2001:db8::9]", Configured),
            ("bound to one card", None, "10.1.2.3:80", facts("10.8.0.6", "", busy), "10.1.2.3", Listener),
            ("bound to loopback", None, "127.0.0.1:80", facts("10.1.2.3", "", busy), "127.0.0.1", Listener),
            ("bound to IPv6", None, "[2001:db8::7]:80", facts("", "", only6), "[2001:db8::7]", Listener),
            ("IPv4 in IPv6", None, "[::ffff:10.1.2.3]:80", facts("", "", busy), "10.1.2.3", Listener),
            ("route to the admin", None, ANY4, facts("10.8.0.6", "10.1.2.3", busy), "10.8.0.6", RouteToAdmin),
            (
                "even over docker",
                None,
                ANY4,
                facts("172.17.0.1", "10.1.2.3", busy),
                "172.17.0.1",
                RouteToAdmin,
            ),
            (
                "admin on this machine",
                None,
                ANY4,
                facts("127.0.0.1", "10.1.2.3", busy),
                "10.1.2.3",
                DefaultRoute,
            ),
            ("no route to the admin", None, ANY4, facts("", "10.1.2.3", busy), "10.1.2.3", DefaultRoute),
            ("default route in a tunnel", None, ANY4, facts("", "10.8.0.6", busy), "10.1.2.3", card("eth0")),
            ("no route at all", None, ANY4, facts("", "", busy), "10.1.2.3", card("eth0")),
            ("docker if nothing else", None, ANY4, facts("", "", only_docker), "172.17.0.1", card("docker0")),
            ("IPv6 only", None, ANY6, facts("", "", only6), "[2001:db8::7]", card("eth0")),
            ("IPv6 route", None, ANY6, facts("2001:db8::7", "", only6), "[2001:db8::7]", RouteToAdmin),
            (
                "IPv4 listener, IPv6 host",
                None,
                ANY4,
                facts("2001:db8::7", "", only6),
                "127.0.0.1",
                NothingElse,
            ),
            (
                "IPv4 before IPv6",
                None,
                ANY6,
                facts("", "", &[only6, busy].concat()),
                "10.1.2.3",
                card("eth0"),
            ),
            ("loopback only", None, ANY6, facts("127.0.0.1", "", only_lo), "127.0.0.1", NothingElse),
            ("nothing known", None, ANY4, Facts::default(), "127.0.0.1", NothingElse),
        ];
        for (name, host, listener, facts, expected, reason) in cases {
            let listener: SocketAddr = listener.parse().unwrap();
            let announced = choose(host, None, listener, &facts);
            assert_eq!((announced.host(), announced.reason()), (expected, &reason), "{name}");
            assert_eq!(announced.port(), listener.port(), "{name}");
        }
    }

    #[test]
    fn configured_port_wins() {
        let announced = choose(None, Some(80), "10.1.2.3:8188".parse().unwrap(), &Facts::default());
        assert_eq!(announced.to_string(), "10.1.2.3:80");
    }

    #[test]
    fn doubts() {
        let doubt = |host, local| {
            choose(Some(host), None, "0.0.0.0:1".parse().unwrap(), &Facts::default())
                .doubt(local)
                .unwrap_or("none")
        };
        for (host, local, part) in [
            ("10.1.2.3", false, "none"),
            ("127.0.0.1", false, "loopback"),
            ("127.0.0.1", true, "none"),
            ("169.254.7.7", true, "link-local"),
            ("orders.local", true, "host names"),
            ("2001:db8::7", true, "IPv6"),
        ] {
            assert!(doubt(host, local).contains(part), "{host}: {}", doubt(host, local));
        }
    }
}
