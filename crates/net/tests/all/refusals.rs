//! A link that cannot be opened returns one clear error with the reason and what to do, in the
//! user's words.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use millstream_link::port::{Port, PortOptions};
use millstream_testkit::netns::{INTERFACE, PairOptions, VethPair};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

/// Links that work on an interface.
const LINKS: [&str; 3] = ["packet:IF", "xdp:IF,mode=generic", "xdp:IF,mode=native"];

const ANY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);

fn open(link: &str, interface: &str, bind: SocketAddrV4) -> Result<Port, String> {
    let link = link.replace("IF", interface);
    let port = millstream_net::open(&link, bind, &PortOptions::default());
    port.map_err(|error| error.to_string())
}

/// Checks that a link is refused, and that the text has these words.
#[track_caller]
fn refused(link: &str, opened: Result<Port, String>, parts: &[&str]) {
    let Err(text) = opened else { panic!("{link}: opened") };
    println!("{text}");
    for part in parts {
        assert!(text.contains(part), "{link}: {part:?} is missing in: {text}");
    }
    assert!(!text.contains('\n') && text.len() < 700, "{link}: one readable line: {text}");
}

fn each_link(case: impl Fn(&str, &VethPair)) {
    for link in LINKS {
        let Some(pair) = VethPair::new(PairOptions::default()) else { return };
        case(link, &pair);
        // A refusal leaves nothing behind: the link opens where nothing prevents it.
        pair.left.sh(&format!("ip link set {INTERFACE} up"));
        let address = format!("ip addr replace {}/24 dev {INTERFACE}", pair.left.address);
        pair.left.sh(&address);
        let port = pair.left.run(|| open(link, INTERFACE, ANY));
        port.unwrap_or_else(|error| panic!("{link}: {error}"));
    }
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    each_link(|link, pair| {
        let opened = pair.left.run(|| open(link, "eth77", ANY));
        refused(link, opened, &["eth77"]);
    });
}

#[test]
fn no_interface_at_all_says_what_is_wanted() {
    for link in ["packet", "xdp", "xdp:", "packet:"] {
        refused(link, open(link, "", ANY), &["interface"]);
    }
}

#[test]
fn an_interface_that_is_down_is_told_by_sending() {
    each_link(|link, pair| {
        pair.left.sh(&format!("ip link set {INTERFACE} down"));
        let to = SocketAddrV4::new(pair.right.address, 7000);
        let mut port = pair.left.run(|| open(link, INTERFACE, ANY)).expect("it may come up later");
        let until = Instant::now() + Duration::from_secs(10);
        let told = std::iter::repeat_with(|| port.tx.send(b"?", to).err())
            .take_while(|_| Instant::now() < until)
            .flatten()
            .any(|error| error.kind() == ErrorKind::NetworkDown);
        assert!(told, "{link}: nobody said that the interface is down");
    });
}

#[test]
fn an_interface_without_address_says_how_to_give_it_one() {
    each_link(|link, pair| {
        pair.left.sh(&format!("ip addr flush dev {INTERFACE}"));
        let opened = pair.left.run(|| open(link, INTERFACE, ANY));
        refused(link, opened, &["no IPv4 address", "ip addr add"]);
    });
}

#[test]
fn an_address_of_another_machine_is_refused() {
    each_link(|link, pair| {
        let far = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 7000);
        let opened = pair.left.run(|| open(link, INTERFACE, far));
        refused(link, opened, &["192.0.2.1"]);
    });
}

#[test]
fn an_address_of_its_own_must_not_be_the_kernels() {
    each_link(|link, pair| {
        let link = format!("{link},address={}/24", pair.left.address);
        let opened = pair.left.run(|| open(&link, INTERFACE, ANY));
        refused(&link, opened, &["belongs to the kernel on", "leave address= out"]);
    });
}

#[test]
fn missing_rights_say_which_and_how_to_go_without() {
    each_link(|link, pair| {
        let opened = pair.left.run(|| {
            let none = CapabilitySet::empty();
            let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
            set_capabilities(None, sets).expect("a thread may drop what it has");
            open(link, INTERFACE, ANY)
        });
        refused(link, opened, &["CAP_", "millstream host grant"]);
    });
}

#[test]
fn an_unknown_option_lists_those_there_are() {
    each_link(|link, pair| {
        let opened = pair.left.run(|| open(&format!("{link},warp=9"), INTERFACE, ANY));
        refused(
            link,
            opened,
            &["warp=9\": is not known; ", "every frame link are: io, ", "options of this link: "],
        );
    });
}
