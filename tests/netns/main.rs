//! Which address a service announces on machines with many, few and no networks.
//!
//! Every test makes such a machine: a network namespace, which ends with the process in it. That takes Linux, `unshare` and
//! `ip` (Debian's `util-linux` and `iproute2`), virtual Ethernet and bridges in the kernel, and either root or a kernel that
//! lets everyone make user namespaces. Where that is not so these tests fail and say it, they never pass unseen; for that
//! they are a target of their own, `cargo test --workspace --features soul-tests/netns --test netns`.

use std::process::{Command, Output};

/// A card that is up. The other end of its cable is named as those of containers are.
fn card(name: &str, addresses: &[&str]) -> String {
    let mut script = format!(
        "ip link add {name} type veth peer name veth-{name}\n\
         ip link set veth-{name} addrgenmode none\n\
         ip link set veth-{name} up\n"
    );
    for address in addresses {
        // Without a search for duplicates, which takes a second.
        let nodad = if address.contains(':') { " nodad" } else { "" };
        script.push_str(&format!("ip addr add {address} dev {name}{nodad}\n"));
    }
    script + &format!("ip link set {name} up\n")
}

const LOOPBACK: &str = "ip link set lo up\n";

/// A machine with a default route, and beside it docker, one of its containers, and a tunnel.
fn usual_machine() -> String {
    let docker = "ip link add docker0 type bridge\nip addr add 172.17.0.1/16 dev docker0\n\
                  ip link add veth12ab type veth peer name c-eth0\n\
                  ip link set veth12ab master docker0\nip link set c-eth0 up\n\
                  ip link set veth12ab up\nip link set docker0 up\n";
    // Docker and the tunnel were there first, so the system lists them first.
    LOOPBACK.to_owned()
        + docker
        + &card("tun0", &["10.8.0.6/24"])
        + &card("eth0", &["10.1.2.3/24", "2001:db8:1::7/64"])
        + "ip route add default via 10.1.2.1\n"
}

/// Two networks; the second one has a way to 192.168.9.0/24.
fn two_networks() -> String {
    LOOPBACK.to_owned()
        + &card("eth0", &["10.1.2.3/24"])
        + &card("eth1", &["192.168.7.5/24"])
        + "ip route add default via 10.1.2.1\nip route add 192.168.9.0/24 via 192.168.7.1\n"
}

fn only_ipv6() -> String {
    LOOPBACK.to_owned() + &card("eth0", &["2001:db8:1::7/64"]) + "ip -6 route add default via 2001:db8:1::1\n"
}

/// Behind the default route of everything here.
const FAR: &str = "http://203.0.113.9:9095";
const HERE: &str = "http://127.0.0.1:9095";

/// A service in a network of its own.
struct Machine {
    setup: String,
    listener: &'static str,
    variables: Vec<(&'static str, String)>,
}

impl Machine {
    fn new(setup: impl Into<String>, admin: &str) -> Self {
        let variables =
            vec![("SOUL_ADMIN_URL", admin.to_owned()), ("SOUL_CONTEXT_PATH", "/orders".to_owned())];
        Self { setup: setup.into(), listener: "0.0.0.0:3000", variables }
    }

    fn listener(mut self, listener: &'static str) -> Self {
        self.listener = listener;
        self
    }

    fn with(mut self, variable: &'static str, value: &str) -> Self {
        self.variables.push((variable, value.to_owned()));
        self
    }

    /// Starts the service there; gives what it printed and logged.
    fn run(&self) -> String {
        // The files that tell of interfaces are those of the network that they were mounted in.
        let script = format!("mount -t sysfs none /sys\n{}exec \"$@\"", self.setup);
        let output = namespace()
            .args(["sh", "-ec", &script, "sh", env!("CARGO_BIN_EXE_announced-address"), self.listener])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("RUST_LOG", "info")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .output()
            .unwrap();
        let text = text(&output);
        assert!(output.status.success(), "in a namespace set up by\n{}\n{text}", self.setup);
        text
    }

    /// Asserts what is announced and why, in the status and once in the log; gives the rest of the log.
    #[track_caller]
    fn announces(&self, address: &str, because: &str) -> String {
        let text = self.run();
        let announced = format!("announced {address} because {because}\n");
        assert!(text.contains(&announced), "expected `{}` in\n{text}", announced.trim_end());
        let logged: Vec<_> =
            text.lines().filter(|line| line.contains("registering with the soul admin")).collect();
        let [logged] = logged[..] else { panic!("expected one line in\n{text}") };
        let (address, because) = (format!("address={address}"), format!("because={because}"));
        assert!(logged.contains(&address) && logged.contains(&because), "{logged}");
        text.lines().filter(|line| line.contains("WARN")).collect::<Vec<_>>().join("\n")
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// What runs a command in a new network; as root in a new user namespace, if one is not root.
fn namespace() -> Command {
    let mut refusals = Vec::new();
    for flags in [&["--net", "--mount"][..], &["--user", "--map-root-user", "--net", "--mount"]] {
        let unshare = || {
            let mut command = Command::new("unshare");
            command.args(flags);
            command
        };
        let tried =
            unshare().args(["ip", "link", "add", "one", "type", "veth", "peer", "name", "other"]).output();
        match tried {
            Ok(output) if output.status.success() => return unshare(),
            Ok(output) => refusals.push(text(&output)),
            Err(error) => refusals.push(error.to_string()),
        }
    }
    panic!(
        "this machine lets nobody make a network: nothing of this target was tested. It takes `unshare`, `ip`, a kernel with \
         veth, and root or user namespaces: {}",
        refusals.join("; ")
    );
}

#[test]
fn default_route_wins_over_docker_and_tunnels() {
    let warnings =
        Machine::new(usual_machine(), FAR).announces("10.1.2.3:3000", "the route to the admin starts there");
    assert!(!warnings.contains("address="), "{warnings}");
}

#[test]
fn admin_on_this_machine_says_nothing_about_the_address() {
    Machine::new(usual_machine(), HERE).announces("10.1.2.3:3000", "the default route starts there");
}

#[test]
fn default_route_in_a_tunnel_is_passed_over() {
    let setup = usual_machine() + "ip route replace default via 10.8.0.1\n";
    Machine::new(setup.clone(), HERE).announces("10.1.2.3:3000", "address of the interface eth0");
    // Unless that is the way to the admin.
    Machine::new(setup, FAR).announces("10.8.0.6:3000", "the route to the admin starts there");
}

#[test]
fn second_network_is_announced_if_the_admin_is_there() {
    Machine::new(two_networks(), "http://192.168.9.9:9095")
        .announces("192.168.7.5:3000", "the route to the admin starts there");
}

#[test]
fn preferred_network_wins_over_routes() {
    let machine = Machine::new(two_networks(), FAR);
    let because = "address of the interface eth1 in a preferred network";
    machine.with("SOUL_PREFERRED_NETWORKS", "192.168.0.0/16").announces("192.168.7.5:3000", because);
    let machine = Machine::new(two_networks(), FAR).with("SOUL_PREFERRED_NETWORKS", "192.168.*");
    machine.announces("192.168.7.5:3000", because);
}

#[test]
fn ignored_interface_is_not_announced() {
    let machine = Machine::new(two_networks(), "http://192.168.9.9:9095");
    machine
        .with("SOUL_IGNORED_INTERFACES", "eth1")
        .announces("10.1.2.3:3000", "the default route starts there");
    let machine = Machine::new(two_networks(), "http://192.168.9.9:9095");
    let warnings = machine
        .with("SOUL_IGNORED_INTERFACES", "eth*")
        .announces("127.0.0.1:3000", "no other address was found");
    assert!(warnings.contains("only gateways on this machine"), "{warnings}");
}

#[test]
fn host_with_ipv6_only_starts_with_a_warning() {
    let machine = Machine::new(only_ipv6(), "http://[2001:db8:9::1]:9095").listener("[::]:3000");
    let warnings = machine.announces("[2001:db8:1::7]:3000", "the route to the admin starts there");
    assert!(warnings.contains("does not probe IPv6 addresses"), "{warnings}");
    let machine = Machine::new(only_ipv6(), "http://[::1]:9095").listener("[::]:3000");
    machine.announces("[2001:db8:1::7]:3000", "the default route starts there");
    // A listener that takes IPv4 only cannot be reached there at all.
    let machine = Machine::new(only_ipv6(), "http://[2001:db8:9::1]:9095");
    let warnings = machine.announces("127.0.0.1:3000", "no other address was found");
    assert!(warnings.contains("only gateways on this machine"), "{warnings}");
}

#[test]
fn loopback_only_starts_with_a_warning_unless_the_admin_is_there_too() {
    let because = "no other address was found";
    let warnings = Machine::new(LOOPBACK, FAR).announces("127.0.0.1:3000", because);
    assert!(warnings.contains("only gateways on this machine reach a loopback address"), "{warnings}");
    let warnings = Machine::new(LOOPBACK, HERE).announces("127.0.0.1:3000", because);
    assert!(!warnings.contains("loopback"), "{warnings}");
}

#[test]
fn link_local_is_better_than_nothing() {
    let setup = LOOPBACK.to_owned() + &card("eth0", &["169.254.7.7/16"]);
    let warnings =
        Machine::new(setup.clone(), FAR).announces("169.254.7.7:3000", "address of the interface eth0");
    assert!(warnings.contains("link-local"), "{warnings}");
    // And worse than anything else.
    let setup = setup
        + "ip link add docker0 type bridge\nip addr add 172.17.0.1/16 dev docker0\nip link set docker0 up\n";
    Machine::new(setup, FAR).announces("172.17.0.1:3000", "address of the interface docker0");
}

#[test]
fn interface_that_is_down_is_not_announced() {
    let setup = LOOPBACK.to_owned()
        + &card("eth0", &["10.1.2.3/24"])
        + &card("eth1", &["192.168.7.5/24"])
        + "ip link set eth0 down\n";
    Machine::new(setup, FAR).announces("192.168.7.5:3000", "address of the interface eth1");
}

#[test]
fn nothing_at_all_is_no_reason_not_to_start() {
    let warnings = Machine::new("", FAR).announces("127.0.0.1:3000", "no other address was found");
    assert!(warnings.contains("only gateways on this machine"), "{warnings}");
}

#[test]
fn network_that_comes_up_later_is_found() {
    let later = card("eth0", &["10.1.2.3/24"]) + "ip route add default via 10.1.2.1\n";
    let text = Machine::new(LOOPBACK, FAR).with("LATER", &later).run();
    let announced: Vec<_> = text.lines().filter(|line| line.starts_with("announced")).collect();
    assert_eq!(
        announced,
        [
            "announced 127.0.0.1:3000 because no other address was found",
            "announced 10.1.2.3:3000 because the route to the admin starts there"
        ]
    );
}
