//! Streams to a third host: a socket that neither the radio nor its host knows otherwise.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};

use crate::common::{PATIENCE, patient, radio};
use millstream_emulator::{DeviceKind, RadioConfig, UhdGeneration};
use millstream_radio::{Device, RemoteDestination, RxArgs, RxError};
use millstream_wire::chdr::{DataRepr, Packet};

/// The samples of a stream: more than one segmented send.
const SAMPLES: u64 = 100_123;

fn third() -> (UdpSocket, SocketAddrV4) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let SocketAddr::V4(address) = socket.local_addr().unwrap() else { panic!("not IPv4") };
    (socket, address)
}

fn samples_of(payload: &[u8]) -> Vec<u32> {
    let parts = payload.chunks_exact(4);
    parts.map(|part| u32::from_le_bytes(part.try_into().unwrap())).collect()
}

#[test]
fn a_third_host_gets_every_sample_in_each_mode_from_radios_of_each_kind_of_calls() {
    for uhd in [UhdGeneration::V4_4, UhdGeneration::V4_9, UhdGeneration::V4_11] {
        let (radio, args) = radio(RadioConfig { uhd, ..patient() });
        let mut device = Device::open(args).unwrap();
        // A socket of the usual size has room for all, or the reader keeps up with it.
        device.set_rate(1e6).unwrap();
        let (socket, address) = third();
        for full_packets in [false, true] {
            let to = RemoteDestination::new(address);
            let to = if full_packets { to.with_full_packets() } else { to };
            let args = RxArgs::new(1).with_samples_per_packet(350);
            let mut stream = device.remote_rx_stream(args, &to).unwrap();
            assert_eq!(stream.samples_per_packet(), 350);
            let at = device.time_ticks().unwrap() + device.tick_rate_hz() as u64 / 10;
            stream.start_finite(SAMPLES, Some(at)).unwrap();
            let (mut heard, mut buffer, mut packets) = (Vec::new(), [0; 9000], 0_u16);
            while (heard.len() as u64) < SAMPLES {
                let (length, from) = socket.recv_from(&mut buffer).unwrap();
                assert_eq!(from.port(), radio.chdr_addr().port());
                if full_packets {
                    let packet = Packet::parse(&buffer[..length], device.width()).unwrap();
                    let data = DataRepr::parse(&packet).unwrap();
                    let due = at + heard.len() as u64;
                    heard.extend(samples_of(packet.payload()));
                    let eob = heard.len() as u64 == SAMPLES;
                    assert_eq!((data.seq, data.timestamp, data.eob), (packets, Some(due), eob));
                } else {
                    heard.extend(samples_of(&buffer[..length]));
                }
                packets += 1;
            }
            let want = (at..at + SAMPLES).map(|tick| tick as u32);
            assert!(heard.iter().copied().eq(want), "{uhd:?} {full_packets}");
            assert_eq!((stream.overruns(), stream.late_commands()), (0, 0));
        }
        // The next stream of the channel comes to this host again.
        let mut stream = device.rx_stream(RxArgs::new(1)).unwrap();
        stream.start_finite(500, None).unwrap();
        let mut samples = [[0i16; 2]; 1];
        let meta = stream.recv(&mut samples, PATIENCE).unwrap();
        assert_eq!(meta.samples, 1, "{uhd:?}");
    }
}

#[test]
fn a_stream_without_an_end_stops_when_it_is_stopped() {
    let (_radio, args) = radio(patient());
    let mut device = Device::open(args).unwrap();
    device.set_rate(1e6).unwrap();
    let (socket, address) = third();
    let to = RemoteDestination::new(address);
    let mut stream = device.remote_rx_stream(RxArgs::new(0), &to).unwrap();
    let error = stream.start_finite(0, None).unwrap_err();
    assert!(matches!(error, RxError::BadLength { samples: 0, .. }), "{error}");
    assert_eq!((stream.start_ticks(), stream.samples_about(u64::MAX)), (None, 0));
    stream.start_continuous(None).unwrap();
    let now = device.time_ticks().unwrap();
    assert!(
        stream.is_running(now) && stream.samples_about(now) <= now - stream.start_ticks().unwrap()
    );
    let again = [stream.start_continuous(None), stream.start_finite(500, None)];
    assert!(again.iter().all(|again| matches!(again, Err(RxError::Running))), "{again:?}");
    let mut buffer = [0; 9000];
    let mut next = None;
    for _ in 0..100 {
        let length = socket.recv(&mut buffer).unwrap();
        for sample in samples_of(&buffer[..length]) {
            assert!(next.is_none_or(|next| next == sample));
            next = Some(sample.wrapping_add(1));
        }
    }
    stream.stop().unwrap();
    // What was sent before the stop is in the socket; behind it comes nothing.
    socket.set_nonblocking(true).unwrap();
    let until = device.time_ticks().unwrap() + 100_000;
    while device.time_ticks().unwrap() < until {
        while socket.recv(&mut buffer).is_ok() {}
    }
    assert!(socket.recv(&mut buffer).is_err());
    // A start that comes too late sends nothing, and ends the run; then there may be another.
    stream.start_finite(500, Some(until - 100_000)).unwrap();
    while stream.late_commands() == 0 {
        std::thread::yield_now();
    }
    let now = device.time_ticks().unwrap();
    assert_eq!((stream.is_running(now), stream.samples_about(now)), (false, 0));
    let at = now + 1_000_000;
    stream.start_finite(500, Some(at)).unwrap();
    assert_eq!((stream.samples_about(at + 100), stream.samples_about(at + 1000)), (100, 500));
    assert!(stream.is_running(at + 499) && !stream.is_running(at + 500));
}

#[test]
fn a_stream_to_another_host_starts_with_a_cycle_of_its_radio() {
    let config =
        RadioConfig { device: DeviceKind::X410Wide, master_clock_rate_hz: 4e6, ..patient() };
    let (_radio, args) = radio(config);
    let device = Device::open(args).unwrap();
    let (socket, address) = third();
    let to = RemoteDestination::new(address).with_full_packets();
    let mut stream = device.remote_rx_stream(RxArgs::new(0), &to).unwrap();
    for ahead in 0..4 {
        let at = device.time_ticks().unwrap() + 2_000_000 + ahead;
        stream.start_finite(400, Some(at)).unwrap();
        let begin = stream.start_ticks().unwrap();
        assert!((at..at + 4).contains(&begin), "{at} {begin}");
        let mut buffer = [0; 9000];
        let length = socket.recv(&mut buffer).unwrap();
        let packet = Packet::parse(&buffer[..length], device.width()).unwrap();
        assert_eq!(DataRepr::parse(&packet).unwrap().timestamp, Some(begin));
        while stream.is_running(device.time_ticks().unwrap()) {}
    }
}

#[test]
fn a_device_that_cannot_send_elsewhere_says_what_to_do() {
    let to = RemoteDestination::new(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 9));
    let old = RadioConfig { uhd: UhdGeneration::V4_3, ..patient() };
    let none = RadioConfig { device: DeviceKind::E310, ..patient() };
    for (config, part) in [
        (old, "its MPM 4.2 cannot send samples to another host: update its file system to UHD 4.4"),
        (none, "no transport adapter that sends samples to another host"),
    ] {
        let (_radio, args) = radio(config);
        let device = Device::open(args).unwrap();
        let error = device.remote_rx_stream(RxArgs::new(0), &to).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        device.rx_stream(RxArgs::new(0)).expect("the channel is free");
    }
}
