//! Addresses that no other story uses.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
    process,
    sync::atomic::{AtomicU32, Ordering},
};

/// A loopback address that nothing else in this test run was given.
///
/// The whole of `127.0.0.0/8` is loopback on Linux; where it is not, this is `127.0.0.1` for everybody.
///
/// # Panics
/// Never in practice: after sixty-five thousand addresses the numbers begin again.
#[must_use]
pub fn own_address() -> IpAddr {
    static NEXT: AtomicU32 = AtomicU32::new(1);

    if !cfg!(target_os = "linux") {
        return Ipv4Addr::LOCALHOST.into();
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    // Processes of one run differ by their id, the addresses in one process by their number; 0 and 255 as the
    // last octet are left out because some programs take them for networks.
    let octet = |number: u32| u8::try_from(number).unwrap_or_default();
    let (high, low) = (octet(number / 254 % 256), octet(number % 254 + 1));
    Ipv4Addr::new(127, octet(process::id() % 200 + 20), high, low).into()
}

/// A free port on an address of its own, for a part that is to be stopped and started again there.
///
/// # Panics
/// When the machine has no port left.
#[must_use]
pub fn free_addr() -> SocketAddr {
    let listener = TcpListener::bind((own_address(), 0)).expect("listen on a loopback address");
    listener.local_addr().expect("a listener has an address")
}
