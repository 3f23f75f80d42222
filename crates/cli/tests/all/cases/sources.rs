//! Inputs of graphs, and what brokers answer.

use super::{case, samples, shell};
use crate::common::{Running, command, millstream};
use millstream_testkit::netns::Namespace;
use std::io::{Read, Write};
use std::net::TcpListener;

#[test]
fn a_dash_at_a_source_is_standard_input() {
    let folder = case("run-in-dash");
    let run = "$M run graph.toml --set in=- --set out=o.cf32";
    let outcome = shell(folder.path(), &format!("head -c 4000 /dev/zero | timeout 60 {run}"));
    match outcome.status {
        Some(0) => assert_eq!(samples(folder.path(), "o.cf32"), 1000),
        _ => assert!(outcome.stderr.contains("in=-"), "{outcome:?}"),
    }
}

#[test]
fn the_length_in_a_wav_file_is_not_believed() {
    let folder = case("wav-length-field-trusted");
    for name in ["len0.wav", "lenff.wav"] {
        assert_eq!(samples(folder.path(), name), 100, "{name}");
        let outcome = millstream(folder.path(), &["inspect", name]);
        assert!(!outcome.stdout.contains("truncated"), "{outcome:?}");
    }
    // A length that has wrapped at 4 GiB: 5 GiB follow the header.
    let mut header = std::fs::read(folder.path().join("len0.wav")).unwrap()[..44].to_vec();
    let bytes = 5u64 << 30;
    header[4..8].copy_from_slice(&((bytes + 36) as u32).to_le_bytes());
    header[40..44].copy_from_slice(&(bytes as u32).to_le_bytes());
    let mut file = std::fs::File::create(folder.path().join("big.wav")).unwrap();
    file.write_all(&header).unwrap();
    file.set_len(44 + bytes).unwrap();
    let outcome = shell(folder.path(), "timeout 100 $M inspect big.wav --json");
    let told = outcome.stdout.contains(&(bytes / 4).to_string());
    let warned = outcome.stdout.contains("more") || outcome.stderr.contains("more");
    assert!(told || warned, "{outcome:?}");
}

#[test]
fn an_answer_in_another_protocol_is_named() {
    let folder = case("mpm-error-in-mqtt");
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = server.local_addr().unwrap();
    let graph = folder.path().join("graph.toml");
    let text = std::fs::read_to_string(&graph).unwrap();
    std::fs::write(&graph, text.replace("127.0.0.1:18830", &at.to_string())).unwrap();
    let answering = std::thread::spawn(move || {
        let (mut client, _) = server.accept().unwrap();
        client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        let _ = client.read(&mut [0; 64]);
    });
    let outcome = Running::start(command(folder.path(), &["run", "graph.toml"])).wait();
    answering.join().unwrap();
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(said.contains("HTTP") && !said.contains("MPM"), "{outcome:?}");
}

#[test]
fn a_multicast_group_is_joined_or_refused() {
    let Some(namespace) = Namespace::alone() else { return };
    let folder = case("udp-source-multicast");
    for line in
        ["ip link set lo up", "ip link set lo multicast on", "ip route add 239.0.0.0/8 dev lo"]
    {
        namespace.sh(line);
    }
    let set = ["run", "graph.toml", "--set", "bind=239.1.1.1:40111"];
    let joined = namespace.run(|| {
        let running = Running::start(command(folder.path(), &set));
        let mut joined = false;
        crate::common::eventually("a group or an end", || {
            let groups = std::fs::read_to_string("/proc/thread-self/net/igmp").unwrap();
            // 239.1.1.1 in the kernel's order of bytes.
            joined |= groups.contains("010101EF");
            joined || !crate::common::is_alive(running.pid())
        });
        let outcome = running.wait();
        if !joined {
            outcome.fails(1, "multicast");
        }
        joined
    });
    eprintln!("joined: {joined}");
}
