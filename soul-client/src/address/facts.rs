//! Finds out what the machine's addresses are. No packet is sent.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    time::Duration,
};

use super::Facts;
use crate::config::AdminUrl;

/// Time for looking up the admins' names, all of them together.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Addresses that no machine has a route of its own to, so that the default one is looked up: those of a root name server.
/// Addresses for documentation would not do, since people build networks of them.
const FAR_AWAY: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 41, 0, 4)), 9),
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0x2001, 0x503, 0xba3e, 0, 0, 0, 2, 0x30)), 9),
];

/// Looks at routes and interfaces. What cannot be found out is left out; this never fails.
pub(crate) async fn gather(admins: &[AdminUrl]) -> Facts {
    let towards_admin = tokio::time::timeout(LOOKUP_TIMEOUT, towards_first(admins)).await.ok().flatten();
    // The system is asked over blocking sockets.
    let local = tokio::task::spawn_blocking(|| {
        let default_route = FAR_AWAY.into_iter().find_map(source_of_route);
        (default_route, interfaces())
    });
    let (default_route, interfaces) = local.await.unwrap_or_default();
    Facts { towards_admin, default_route, interfaces, preferred: Vec::new() }
}

/// The first admin that has a route tells: they are tried in this order, too.
async fn towards_first(admins: &[AdminUrl]) -> Option<IpAddr> {
    for admin in admins {
        let Ok(found) = tokio::net::lookup_host((admin.host(), admin.port())).await else { continue };
        let mut addresses: Vec<SocketAddr> = found.collect();
        // Java admins probe IPv4 only.
        addresses.sort_by_key(SocketAddr::is_ipv6);
        if let Some(source) = addresses.into_iter().find_map(source_of_route) {
            return Some(source);
        }
    }
    None
}

/// Connecting a datagram socket makes the system choose a route and an address, and sends nothing.
fn source_of_route(to: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(to).ok()?;
    let source = socket.local_addr().ok()?.ip();
    (!source.is_unspecified()).then_some(source)
}

/// Every address of every interface that is up, in the system's order.
fn interfaces() -> Vec<(String, IpAddr)> {
    let mut found = local_ip_address::list_afinet_netifas().unwrap_or_default();
    found.retain(|(name, _)| !is_down(name));
    found
}

/// Whether an interface was taken down: Linux keeps its IPv4 addresses, and nobody can reach them. Elsewhere, and where the
/// system does not tell, interfaces are taken to be up.
fn is_down(interface: &str) -> bool {
    /// `IFF_UP` of Linux's `if.h`.
    const UP: u32 = 1;
    let flags = std::fs::read_to_string(format!("/sys/class/net/{interface}/flags")).unwrap_or_default();
    let flags = flags.trim().strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
    flags.is_some_and(|flags| flags & UP == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_among_the_interfaces() {
        let found = interfaces();
        assert!(found.iter().any(|(_, ip)| ip.is_loopback()), "{found:?}");
    }

    #[test]
    fn route_to_this_machine_starts_at_loopback() {
        assert_eq!(source_of_route("127.0.0.1:9".parse().unwrap()), Some(Ipv4Addr::LOCALHOST.into()));
    }

    #[tokio::test]
    async fn gathering_survives_a_name_that_nobody_knows() {
        let config = crate::ClientConfig::builder()
            .admin_url("http://no-such-host.invalid:1,http://127.0.0.1:1")
            .context_path("/a")
            .build()
            .unwrap();
        let facts = gather(config.admins()).await;
        assert_eq!(facts.towards_admin, Some(Ipv4Addr::LOCALHOST.into()));
    }
}
