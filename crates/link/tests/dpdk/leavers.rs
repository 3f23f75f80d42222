//! Processes that are killed while they exchange frames.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::Instant;

use millstream_link::frame::FrameLink;

use crate::role::{PATIENCE, exchange, open};
use crate::start::assert_nothing_left;

/// A process that sends and receives on one link.
struct Chatter {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Chatter {
    fn start(link: &str) -> Option<Self> {
        let mut command = crate::role("chatter", link)?;
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it can be started");
        let lines = BufReader::new(child.stdout.take().expect("it was asked for"));
        Some(Self { child, lines })
    }

    /// Waits until the process prints the word.
    fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        while self.lines.read_line(&mut line).expect("it can be read") > 0 {
            if line.trim().ends_with(word) {
                return;
            }
            line.clear();
        }
        panic!("it ended without `{word}`: {:?}", self.child.wait());
    }

    fn kill(&mut self) -> u32 {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it was started");
        self.child.id()
    }
}

impl Drop for Chatter {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Exchanges frames until both ends have received one of the other.
fn meet(link: &mut dyn FrameLink) {
    let (before, until) = (link.counters().rx_frames, Instant::now() + PATIENCE);
    while link.counters().rx_frames < before + 1000 {
        exchange(link);
        assert!(Instant::now() < until, "{:?}", link.counters());
    }
}

/// A peer is killed while frames pass, is started again, and its frames arrive again.
fn survives(own: &str, peer: &str, times: usize) {
    let Some(mut first) = Chatter::start("dpdk:ring9") else { return };
    first.wait_for("open");
    drop(first);
    let mut link = open(own).unwrap_or_else(|error| panic!("{error}"));
    for turn in 0..times {
        let mut chatter = Chatter::start(peer).expect("it has just been there");
        meet(&mut *link);
        let pid = chatter.kill();
        assert_nothing_left(pid);
        let until = Instant::now() + PATIENCE;
        while exchange(&mut *link) {
            assert!(Instant::now() < until, "turn {turn}: nobody said that it has left");
        }
    }
    assert_eq!(link.census().lent, 0);
}

#[test]
fn a_memif_server_survives_its_clients() {
    let name = crate::shared_name();
    survives(
        &format!("dpdk:memif0,role=server,socket={name}"),
        &format!("dpdk:memif1,socket={name}"),
        3,
    );
}

#[test]
fn a_memif_client_survives_its_servers() {
    let name = crate::shared_name();
    survives(
        &format!("dpdk:memif2,socket={name}"),
        &format!("dpdk:memif3,role=server,socket={name}"),
        3,
    );
}

#[test]
fn a_vhost_port_survives_its_peers() {
    let name = crate::shared_name();
    survives(&format!("dpdk:vhost4,iface={name}"), &format!("dpdk:virtio_user5,path={name}"), 3);
    assert!(!Path::new(&name).exists(), "the socket goes with its link");
}

/// Twenty processes are killed, each with a port of every kind that leaves something behind.
#[test]
fn twenty_killed_processes_leave_nothing() {
    let name = crate::shared_name();
    let link = format!("dpdk:vhost0,iface={name}");
    for turn in 0..20 {
        let Some(mut chatter) = Chatter::start(&link) else { return };
        // The previous process's socket, without a listener, prevents nothing.
        chatter.wait_for("open");
        let pid = chatter.kill();
        assert_nothing_left(pid);
        assert!(Path::new(&name).exists(), "turn {turn}");
    }
    crate::run("open", &link);
    assert!(!Path::new(&name).exists(), "the next orderly end takes what was left");
}
