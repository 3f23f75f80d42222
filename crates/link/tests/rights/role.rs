//! The roles of this program when a test starts it again.

use std::io::{BufRead, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use millstream_link::frame::{FrameLink, FrameOptions, Steer};
use millstream_link::rights::DirectSteps;
use millstream_link::rights::policy::GrantPolicy;
use millstream_link::rights::server::Server;
use millstream_link::{packet, xdp};

/// The environment variable that names a role.
pub const ROLE: &str = "MILLSTREAM_TEST_ROLE";

/// The destination port of the load.
pub const PORT: u16 = 49_200;

/// Plays the role of the environment variable; without one this is an empty test.
#[test]
fn play() {
    let Ok(role) = std::env::var(ROLE) else { return };
    match role.split_once(' ').expect("a role and its arguments") {
        ("broker", path) => serve(Path::new(path)),
        ("client", link) => stream(link),
        other => panic!("no such role: {other:?}"),
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "@{line}").unwrap();
    out.flush().unwrap();
}

/// Runs a broker for the user "nobody".
fn serve(path: &Path) {
    let mut policy = GrantPolicy::new("veth0", &[&xdp::RIGHTS, &packet::RIGHTS]);
    policy.users = vec![65_534];
    let mut server = Server::listen(path, policy, |family, interface, peer| {
        let client = rustix::process::Pid::from_raw(peer.pid);
        Ok(Box::new(DirectSteps::new(family, interface, client)?))
    })
    .unwrap();
    say("listening");
    loop {
        server.step(Duration::from_secs(1), &mut |event| eprintln!("{event}")).unwrap();
    }
}

/// Receives and prints the count, until a line arrives on its input. A link with several transmit
/// queues sends everything back, and counts only the frames that it took.
fn stream(link: &str) {
    let returns = link.contains("tx_queues=");
    let (link, address) = link.split_once(' ').expect("a link and an address");
    // Little memory: the limit of one user holds for all the tests' processes together.
    let sizes = FrameOptions { receive_frames: 256, transmit_frames: 64 };
    let opened = millstream_link::open_frames(link, &sizes);
    let mut link = match opened {
        Ok(link) => link,
        Err(error) => return say(&format!("error {error}")),
    };
    steer(&mut *link, address.parse().unwrap());
    say(&format!("open {}", link.info().detail));
    let (stop, stopped) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().lock().read_line(&mut String::new());
        let _ = stop.send(());
    });
    let (mut got, mut told) = (0, 0);
    while stopped.try_recv().is_err() {
        got += if returns { send_back(&mut *link) } else { take(&mut *link) };
        if got >= told + 500 {
            told = got;
            say(&format!("got {got}"));
        }
    }
}

/// Opens a link that receives the load.
pub fn open(link: &str, address: Ipv4Addr) -> Box<dyn FrameLink> {
    let sizes = FrameOptions { receive_frames: 2048, transmit_frames: 256 };
    let mut link = millstream_link::open_frames(link, &sizes).unwrap();
    steer(&mut *link, address);
    link
}

fn steer(link: &mut dyn FrameLink, address: Ipv4Addr) {
    let (addresses, udp_ports) = (vec![address], vec![PORT]);
    link.steer(&Steer { addresses, udp_ports, ..Steer::default() }).unwrap();
}

/// Takes the received frames, and gives them back.
pub fn take(link: &mut dyn FrameLink) -> u64 {
    let mut frames = Vec::new();
    link.receive(&mut frames).unwrap();
    let wanted = frames.iter().filter(|frame| {
        let bytes = link.memory().bytes(frame);
        bytes.len() >= 42 && bytes[36..38] == PORT.to_be_bytes()
    });
    let count = wanted.count() as u64;
    link.give_back(&mut frames);
    count
}

/// Sends the received frames back to their sender; returns how many the link took.
fn send_back(link: &mut dyn FrameLink) -> u64 {
    let mut frames = Vec::new();
    link.receive(&mut frames).unwrap();
    let memory = std::sync::Arc::clone(link.memory());
    for frame in &mut frames {
        let bytes = memory.bytes_mut(frame);
        let [ethernet, addresses, ports] = [0..12, 26..34, 34..38].map(|range| {
            let mut part = bytes[range.clone()].to_vec();
            part.rotate_left(range.len() / 2);
            (range, part)
        });
        for (range, part) in [ethernet, addresses, ports] {
            bytes[range].copy_from_slice(&part);
        }
    }
    let taken = link.transmit(&mut frames).unwrap();
    link.give_back(&mut frames);
    link.flush().unwrap();
    taken as u64
}
