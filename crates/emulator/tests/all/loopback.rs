//! Tests of the radio over real sockets: from discovery to samples, and with packets of strangers.

use crate::host::{HostEndpoint, Rpc, discover};
use millstream_dsp::chunks::Chunks;
use millstream_emulator::{DeviceKind, Error, Radio, RadioConfig, RunningRadio, SecondLink};
use millstream_wire::chdr::{DataRepr, PacketType};
use millstream_wire::ctrl::Op;
use millstream_wire::mgmt::{Node, Op as Hop};
use millstream_wire::mpm;
use millstream_wire::regs::{client_zero, sep};
use millstream_wire::stream::{CommandOp, CommandRepr, StatusRepr};
use rmpv::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;

const CONTROL: u16 = 1;
const SEP: u16 = 2;
const STREAM: u16 = 4;
const RADIO_PORT: u16 = 2;

fn config() -> RadioConfig {
    RadioConfig {
        discovery_port: 0,
        rpc_port: 0,
        chdr_port: 0,
        rx_antennas: vec!["ramp".to_owned()],
        ..RadioConfig::default()
    }
}

fn start() -> RunningRadio {
    Radio::start(config()).unwrap()
}

/// Opens the stream of channel 0 with a capacity of `capacity` bytes; returns control and stream
/// endpoint.
fn open_stream(radio: &RunningRadio, capacity: u64) -> (HostEndpoint, HostEndpoint) {
    let mut control = HostEndpoint::connect(radio, CONTROL);
    let stream = HostEndpoint::connect(radio, STREAM);
    assert!(matches!(control.adopt(1, SEP).node, Node::StreamEndpoint { control: true, .. }));
    control.set(1, sep::OSTRM_DST_EPID, STREAM.into());
    control.set(1, sep::OSTRM_FC_FREQ_BYTES_LO, (capacity / 32) as u32);
    control.set(1, sep::OSTRM_FC_FREQ_PKTS, 0xff_ffff);
    control.set(1, sep::OSTRM_CTRL_STATUS, 0x0B);
    let init = stream.expect_command();
    assert_eq!((init.op, init.bytes), (CommandOp::Init, capacity / 32));
    stream.send_status(&status(capacity, 0, 0));
    // The status is a datagram of another socket, so a host has to poll.
    while control.get(1, sep::OSTRM_CTRL_STATUS) & sep::STATUS_FC_ENABLED == 0 {}
    (control, stream)
}

fn status(capacity_bytes: u64, count_bytes: u64, count_packets: u64) -> StatusRepr {
    StatusRepr {
        dst_epid: SEP.into(),
        src_epid: STREAM.into(),
        capacity_bytes,
        capacity_packets: 0xff_ffff,
        count_bytes,
        count_packets,
        ..StatusRepr::default()
    }
}

/// Receives until EOB and grants credit for everything but the end; checks every sample. Returns
/// the number of samples, and of statuses sent.
fn receive(stream: &HostEndpoint, capacity: u64) -> (u64, u64) {
    let (mut bytes, mut packets, mut samples, mut next) = (0, 0, 0u64, None);
    let mut buffer = [0; 9000];
    loop {
        let packet = stream.recv(&mut buffer);
        bytes += packet.flow_len() as u64;
        packets += 1;
        if packet.kind() == PacketType::StreamCommand {
            let resync = CommandRepr::parse(&packet).unwrap();
            assert_eq!((resync.bytes, resync.packets), (bytes - 24, packets - 1), "nothing lost");
        } else {
            let data = DataRepr::parse(&packet).unwrap();
            let tick = data.timestamp.unwrap();
            assert_eq!(tick, next.unwrap_or(tick));
            for (sample, at) in packet.payload().in_chunks().0.iter().zip(tick..) {
                assert_eq!(u32::from_le_bytes(*sample), at as u32);
                samples += 1;
                next = Some(at + 1);
            }
            if data.eob {
                return (samples, packets - 1);
            }
        }
        stream.send_status(&status(capacity, bytes, packets));
    }
}

#[test]
fn from_discovery_to_a_hundred_thousand_exact_samples() {
    let radio = start();
    let reply = discover(&radio);
    assert!(
        reply.contains("type=e3xx, product=e320") && reply.contains("claimed=False"),
        "{reply}"
    );

    let mut rpc = Rpc::claim(&radio);
    assert!(discover(&radio).contains("claimed=True"));
    rpc.call("set_device_id", &[Value::from(42)]);
    let links = rpc.call("get_chdr_link_options", &[Value::from("udp")]).to_string();
    assert!(links.contains(&radio.chdr_addr().port().to_string()), "{links}");
    rpc.call("db_0_set_catalina_clock_rate", &[Value::from(5e6)]);

    let mut probe = HostEndpoint::connect(&radio, CONTROL);
    let answer = probe.manage(&[&[Hop::Nop], &[Hop::InfoReq, Hop::Return]]);
    let [Hop::InfoResp(info)] = answer[..] else { panic!("{answer:?}") };
    assert_eq!((info.device_id, info.node), (42, Node::Crossbar { ports: 3, transports: 1 }));

    let capacity = 100_000;
    let (mut control, stream) = open_stream(&radio, capacity);
    assert_eq!(control.control(SEP, 0, Op::Read, client_zero::DEVICE_INFO, 0), 0xE320 << 16 | 42);
    for (address, value) in [(0x1028, 364), (0x101C, 0), (0x1018, 100_000), (0x1014, 1)] {
        control.control(SEP, RADIO_PORT, Op::Write, address, value);
    }
    let (samples, statuses) = receive(&stream, capacity);
    assert_eq!(samples, 100_000);
    // The end of the session drops its routes, so statuses still in flight would be unroutable. The
    // handshake sent one more.
    while radio.counters().rx_status_packets < statuses + 1 {
        std::thread::yield_now();
    }
    rpc.call("unclaim", &[]);

    let counters = radio.stop();
    assert_eq!((counters.rx_packets, counters.rx_bytes), (275, 400_000));
    assert_eq!((counters.rx_overruns, counters.rx_status_invalid), (0, 0));
    assert_eq!((counters.chdr_malformed, counters.chdr_unroutable), (0, 0));
}

#[test]
fn strangers_on_any_port_cost_counters_only() {
    let radio = start();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut garbage = 0u64;
    for length in [0usize, 1, 7, 8, 9, 40, 1472, 8000] {
        for byte in [0x00, 0x20, 0x47, 0x80, 0xff] {
            let datagram = vec![byte; length];
            socket.send_to(&datagram, radio.discovery_addr()).unwrap();
            socket.send_to(&datagram, radio.chdr_addr()).unwrap();
            garbage += 1;
        }
    }
    for bytes in [&[0xc1][..], b"GET / HTTP/1.1\r\n", &[0xdd, 0xff, 0xff, 0xff, 0xff]] {
        let mut stream = TcpStream::connect(radio.rpc_addr()).unwrap();
        stream.write_all(bytes).unwrap();
        let _ = stream.read(&mut [0; 16]);
    }
    // A stream still opens and is exact.
    let mut rpc = Rpc::claim(&radio);
    rpc.call("db_0_set_catalina_clock_rate", &[Value::from(5e6)]);
    let (mut control, stream) = open_stream(&radio, 100_000);
    for (address, value) in [(0x1018, 1_000), (0x1014, 1)] {
        control.control(SEP, RADIO_PORT, Op::Write, address, value);
    }
    assert_eq!(receive(&stream, 100_000).0, 1_000);
    discover(&radio);
    let counters = radio.stop();
    assert_eq!(counters.discovery_malformed, garbage);
    let refused = counters.chdr_malformed
        + counters.chdr_unroutable
        + counters.management_malformed
        + counters.management_unanswered
        + counters.control_malformed
        + counters.stream_malformed;
    assert_eq!(refused, garbage);
    assert_eq!(counters.rpc_malformed, 3);
}

#[test]
fn a_port_in_use_is_named_with_protocol_and_remedy() {
    let first = start();
    let taken = first.chdr_addr().port();
    let text = Radio::start(RadioConfig { chdr_port: taken, ..config() }).unwrap_err().to_string();
    for part in ["CHDR", "UDP", &format!("127.0.0.1:{taken}"), "in use", "stop it"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().port();
    let error = Radio::start(RadioConfig { rpc_port: taken, ..config() }).unwrap_err();
    assert!(matches!(error, Error::Tcp { .. }));
    for part in ["TCP", &format!("127.0.0.1:{taken}"), "in use", "stop it"] {
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
}

#[test]
fn stopping_leaves_no_thread_and_no_port_behind() {
    const NAME: &str = "loopback::stopping_leaves_no_thread_and_no_port_behind";
    // In a separate process, because radios of other tests have threads in this one.
    if std::env::var_os(NAME).is_none() {
        let mut alone = Command::new(std::env::current_exe().unwrap());
        let outcome = alone.args(["--exact", NAME]).env(NAME, "1").output().unwrap();
        assert!(outcome.status.success(), "{}", String::from_utf8_lossy(&outcome.stdout));
        return;
    }
    let threads = || -> Vec<String> {
        let names = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = names.map(|task| std::fs::read_to_string(task.path().join("comm")));
        let ours = |name: &String| name.starts_with("ms-");
        let mut names: Vec<_> = names.flatten().map(|n| n.trim().to_owned()).filter(ours).collect();
        names.sort();
        names
    };
    assert_eq!(threads(), [""; 0]);
    let radio = start();
    // Threads set their own names: all have done so when they answer.
    discover(&radio);
    Rpc::claim(&radio);
    HostEndpoint::connect(&radio, CONTROL);
    assert_eq!(threads(), ["ms-device", "ms-discovery", "ms-rpc"]);
    let ports = (radio.chdr_addr().port(), radio.rpc_addr().port(), radio.discovery_addr().port());
    drop(radio);
    assert_eq!(threads(), [""; 0]);
    let (chdr_port, rpc_port, discovery_port) = ports;
    Radio::start(RadioConfig { chdr_port, rpc_port, discovery_port, ..config() }).unwrap();
}

#[test]
fn a_second_link_answers_echoes_and_carries_what_is_routed_to_it() {
    let second = Ipv4Addr::new(127, 0, 0, 1);
    let radio = Radio::start(RadioConfig {
        device: DeviceKind::N320,
        addr: Ipv4Addr::new(127, 0, 0, 9),
        second_link: Some(SecondLink { addr: second, link: "udp".to_owned() }),
        ..config()
    })
    .unwrap();
    let [first_addr, second_addr] = radio.chdr_addrs() else { panic!("two links") };
    assert_eq!((*first_addr.ip(), *second_addr.ip()), (Ipv4Addr::new(127, 0, 0, 9), second));
    let echo = [&mpm::ECHO_PING[..], &[7; 1400]].concat();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    socket.send_to(&echo, (second, radio.discovery_addr().port())).unwrap();
    let mut buffer = [0; 2048];
    assert_eq!(socket.recv(&mut buffer).unwrap(), echo.len());
    // The second endpoint of the device, over the second link.
    let mut stream = HostEndpoint::connect_by(*second_addr, STREAM, 1);
    stream.adopt(3, SEP);
    stream.set(3, sep::OSTRM_DST_EPID, STREAM.into());
    stream.set(3, sep::OSTRM_FC_FREQ_BYTES_LO, 100);
    stream.set(3, sep::OSTRM_FC_FREQ_PKTS, 10);
    stream.set(3, sep::OSTRM_CTRL_STATUS, 0x0B);
    let init = stream.expect_command();
    assert_eq!((init.op, init.src_epid.0), (CommandOp::Init, SEP));
    assert_eq!(radio.stop().chdr_unroutable, 0);
}
