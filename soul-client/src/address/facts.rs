//! Finds out what the machine's addresses are. No packet is sent.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    time::Duration,
};

use super::Facts;
use crate::config::AdminUrl;

/// Time for looking up the admins' names, all of them together.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Looks at routes and interfaces. What cannot be found out is left out; this never fails.
pub(crate) async fn gather(admins: &[AdminUrl]) -> Facts {
    let towards_admin = tokio::time::timeout(LOOKUP_TIMEOUT, towards_first(admins)).await.ok().flatten();
    // The system is asked over blocking sockets.
    let local = tokio::task::spawn_blocking(|| {
        let default_route = local_ip_address::local_ip().or_else(|_| local_ip_address::local_ipv6()).ok();
        (default_route, local_ip_address::list_afinet_netifas().unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use super::*;

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
