//! Tests of faults of a running radio, from a host's sockets.

use millstream_emulator::{Radio, RadioConfig, RunningRadio};
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

fn radio(faults: &[&str]) -> RunningRadio {
    Radio::start(RadioConfig {
        discovery_port: 0,
        rpc_port: 0,
        chdr_port: 0,
        faults: faults.iter().map(|fault| (*fault).to_owned()).collect(),
        ..RadioConfig::default()
    })
    .unwrap()
}

fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn asker() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    socket
}

/// Returns the answer to an echo request, if one comes.
fn echo(socket: &UdpSocket, radio: &RunningRadio, word: &str) -> Option<Vec<u8>> {
    socket.send_to(format!("MPM-ECHO {word}").as_bytes(), radio.discovery_addr()).unwrap();
    let mut bytes = [0; 100];
    socket.recv(&mut bytes).ok().map(|count| bytes[..count].to_vec())
}

#[test]
fn discovery_can_be_lost_in_either_direction() {
    let radio = radio(&["lose to_device discovery count=1"]);
    let socket = asker();
    assert_eq!(echo(&socket, &radio, "a"), None);
    assert_eq!(echo(&socket, &radio, "b").unwrap(), b"MPM-ECHO b");
    let id = radio.faults().add("duplicate to_host discovery count=1").unwrap();
    assert_eq!(echo(&socket, &radio, "c").unwrap(), b"MPM-ECHO c");
    let mut copy = [0; 100];
    assert_eq!(socket.recv(&mut copy).unwrap(), 10, "the copy");
    assert_eq!(radio.faults().remove(id).unwrap().hit, 1);
    let counters = radio.stop();
    assert_eq!(counters.discovery_echoes, 2, "the lost one never came");
}

#[test]
fn a_reboot_closes_every_connection_and_is_silent_for_its_time() {
    let radio = radio(&[]);
    let mut rpc = TcpStream::connect(radio.rpc_addr()).unwrap();
    rpc.set_read_timeout(Some(PATIENCE)).unwrap();
    let socket = asker();
    assert!(echo(&socket, &radio, "before").is_some());
    let asked = Instant::now();
    radio.faults().add("reboot silent_ms=400").unwrap();
    // A reset and an orderly end are both a closed connection.
    assert_eq!(rpc.read(&mut [0; 8]).unwrap_or(0), 0);
    socket.send_to(&[0; 16], radio.chdr_addr()).unwrap();
    eventually("an answer", || echo(&socket, &radio, "after").is_some());
    assert!(asked.elapsed() >= Duration::from_millis(400), "{:?}", asked.elapsed());
    let counters = radio.stop();
    assert_eq!((counters.reboots, counters.chdr_datagrams), (1, 0), "{counters:?}");
}

#[test]
fn the_management_port_can_be_gone_while_the_radio_lives() {
    let radio = radio(&[]);
    let mut old = TcpStream::connect(radio.rpc_addr()).unwrap();
    let id = radio.faults().add("rpc_down ms=3600000").unwrap();
    old.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(old.read(&mut [0; 8]).unwrap_or(0), 0);
    let mut new = TcpStream::connect(radio.rpc_addr()).unwrap();
    new.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = new.write_all(&[0x94, 0, 1]);
    assert_eq!(new.read(&mut [0; 8]).unwrap_or(0), 0, "the door is shut");
    assert!(echo(&asker(), &radio, "alive").is_some());
    assert!(radio.faults().remove(id).unwrap().done);
    eventually("an open door", || {
        let mut again = TcpStream::connect(radio.rpc_addr()).unwrap();
        again.set_read_timeout(Some(PATIENCE)).unwrap();
        // [0, 1, "get_proto_ver", []] in MessagePack.
        let call = [&[0x94, 0, 1, 0xad][..], b"get_proto_ver", &[0x90]].concat();
        again.write_all(&call).is_ok() && again.read(&mut [0; 8]).unwrap_or(0) > 0
    });
}

#[test]
fn a_stall_holds_the_device_up_and_stopping_does_not_wait_for_it() {
    let radio = radio(&["stall ms=3600000"]);
    eventually("the stall", || radio.faults().list()[0].done);
    let begun = Instant::now();
    radio.stop();
    assert!(begun.elapsed() < PATIENCE);
}

#[test]
fn a_bad_fault_or_an_address_in_use_stops_nothing_half_way() {
    let bad = RadioConfig { faults: vec!["explode".to_owned()], ..RadioConfig::default() };
    let error = Radio::start(bad).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "cannot use fault `explode`: `explode` is no fault; give one of lose, duplicate, "
        ),
        "{error}"
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let std::net::SocketAddr::V4(address) = taken.local_addr().unwrap() else { unreachable!() };
    let ports = RadioConfig { discovery_port: 0, rpc_port: 0, chdr_port: 0, ..Default::default() };
    let error = Radio::start(RadioConfig { control: Some(address), ..ports }).unwrap_err();
    let want = format!("cannot open TCP port {address} (control channel)");
    assert!(error.to_string().starts_with(&want), "{error}");
}
