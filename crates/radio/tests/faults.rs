//! Receive streams while packets are lost, repeated, reordered and made up: every sample is
//! accounted for, and the stream goes on.

mod common;

use std::net::{SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Action, Meddler, device, is_data, patient, radio, receive};
use millstream_emulator::{RadioConfig, RunningRadio};
use millstream_radio::{Cause, Complex32, Device, RxArgs, RxError, RxEvent};

const SPP: u64 = 500;

fn meddled(meddler: Meddler, rate_hz: f64) -> (RunningRadio, Device) {
    let (radio, mut args) = radio(patient());
    args.open_port = Some(meddler.open_port());
    let mut device = Device::open(args).expect("the device opens");
    device.set_rate(rate_hz).expect("the rate is taken");
    (radio, device)
}

fn args() -> RxArgs {
    RxArgs::new(0).with_samples_per_packet(SPP as u32)
}

#[test]
fn lost_packets_are_gaps_of_exactly_their_samples() {
    let lost = |n| matches!(n, 3 | 10..15 | 100);
    let meddler = Meddler::data(move |n, _| if lost(n) { Action::Drop } else { Action::Pass });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(200 * SPP, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    let gap = |packets| RxEvent::SequenceGap { packets, samples: packets * SPP };
    assert_eq!(brought.events, [gap(1), gap(5), gap(1)]);
    assert!(brought.ended);
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.delivered), (200 * SPP, 193 * SPP));
    assert_eq!(ledger.lost(Cause::NetworkLoss), 7 * SPP);
}

#[test]
fn the_first_and_the_last_packet_may_be_lost_too() {
    let meddler = Meddler::data(|n, _| if n == 0 || n >= 97 { Action::Drop } else { Action::Pass });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(100 * SPP, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    let gap = |packets| RxEvent::SequenceGap { packets, samples: packets * SPP };
    assert_eq!(brought.events, [gap(1), gap(3)]);
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.lost(Cause::NetworkLoss)), (100 * SPP, 4 * SPP));
    assert_eq!(ledger.balance(), Ok(()));
}

#[test]
fn copies_are_passed_over_and_late_packets_stay_lost() {
    let meddler = Meddler::data(|n, _| match n {
        5 | 50 => Action::Twice,
        20 => Action::Later(1),
        30 => Action::Later(4),
        _ => Action::Pass,
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(100 * SPP, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    let gap = RxEvent::SequenceGap { packets: 1, samples: SPP };
    assert_eq!(brought.events, [gap, gap]);
    let counters = *stream.counters();
    assert_eq!((counters.duplicates, counters.late, counters.packets), (2, 2, 98));
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.delivered), (100 * SPP, 98 * SPP));
    assert_eq!(ledger.balance(), Ok(()));
}

#[test]
fn random_faults_leave_every_sample_in_one_place() {
    let seed = std::process::id();
    println!("seed {seed}");
    let mut state = u64::from(seed) | 1;
    let meddler = Meddler::data(move |_, packet| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match state >> 58 {
            0 => Action::Drop,
            1 => Action::Twice,
            2 => Action::Later((state >> 50 & 7) as usize),
            3 => Action::Replace(packet[..packet.len() / 2].to_vec()),
            4 => Action::Before(packet[..12].to_vec()),
            _ => Action::Pass,
        }
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(1000 * SPP, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    let counters = *stream.counters();
    let ledger = stream.finish();
    println!("{counters:?}\n{ledger}");
    assert_eq!(ledger.balance(), Ok(()));
    assert_eq!((ledger.expected, ledger.delivered), (1000 * SPP, brought.samples));
    assert_eq!(brought.missing, ledger.lost_total());
    assert!(counters.malformed > 0 && counters.duplicates > 0 && counters.late > 0);
    assert!(ledger.lost(Cause::Malformed) > 0 && ledger.lost(Cause::NetworkLoss) > 0);
}

#[test]
fn lost_management_and_control_packets_are_repeated() {
    fn every_fifth() -> impl FnMut(&[u8]) -> Action + Send + 'static {
        let mut turn = 0;
        move |packet| {
            turn += 1;
            let noise = turn % 5 == 0 && !packet.starts_with(b"MPM-ECHO");
            if noise { Action::Drop } else { Action::Pass }
        }
    }
    let mut received = every_fifth();
    let meddler =
        Meddler::new(
            move |packet| {
                if common::is_data(packet) { Action::Pass } else { received(packet) }
            },
        )
        .sent(every_fifth());
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(100 * SPP, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    assert_eq!((brought.samples, brought.events.len()), (100 * SPP, 0));
    assert!(device.control().counters().retries.load(Ordering::Relaxed) > 0);
}

#[test]
fn hostile_datagrams_are_counted_and_change_nothing() {
    let meddler = Meddler::data(|n, packet| {
        let mut other = packet.to_vec();
        match n {
            10 => Action::Before(vec![]),
            11 => Action::Before(vec![0xFF; 7]),
            12 => Action::Before(vec![0xFF; 9000]),
            // A length that is not whole samples.
            13 => {
                other[2] = other[2].wrapping_add(1);
                other.push(0);
                Action::Before(other)
            }
            // Another endpoint.
            14 => {
                other[0] ^= 0x55;
                Action::Before(other)
            }
            // A control packet.
            15 => {
                other[6] = 4 << 5;
                Action::Before(other)
            }
            // A time of the far future under the right number.
            16 => {
                other[15] = 0x7F;
                Action::Before(other)
            }
            _ => Action::Pass,
        }
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stream.start_finite(100 * SPP, None).unwrap();
    for size in [0, 1, 8, 16, 1000, 2016] {
        let to = ("127.0.0.1", stream.local().port());
        stranger.send_to(&vec![0xA5; size], to).unwrap();
    }
    let brought = receive(&mut stream, u64::MAX);
    assert_eq!((brought.samples, brought.events.len()), (100 * SPP, 0));
    let counters = stream.counters();
    assert_eq!(counters.foreign, 6);
    assert_eq!((counters.malformed, counters.misaddressed, counters.unexpected), (5, 1, 1));
    assert_eq!(stream.finish().lost_total(), 0);
}

#[test]
fn a_device_that_dies_is_named_and_nothing_hangs() {
    let (radio, device) = device(2e6);
    let address = radio.chdr_addr().to_string();
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_continuous(None).unwrap();
    receive(&mut stream, 20_000);
    radio.stop();
    let mut buffer = vec![Complex32::default(); 4096];
    let error = loop {
        match stream.recv(&mut buffer, Duration::from_millis(100)) {
            Ok(meta) => assert!(meta.samples > 0 || meta.event == RxEvent::Timeout),
            Err(error) => break error,
        }
    };
    let RxError::DeviceSilent { silent_ms, .. } = error else { panic!("{error}") };
    assert!(silent_ms >= 500, "{silent_ms}");
    let text = error.to_string();
    assert!(text.contains(&address) && text.contains("stopped answering"), "{text}");
    assert_eq!(stream.finish().balance(), Ok(()));
}

/// Sends nonsense to `to`, far more often than a stream has patience for, until it is dropped.
struct Flood(Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);

impl Flood {
    fn of(to: SocketAddrV4) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            while !seen.load(Ordering::Relaxed) {
                let _ = socket.send_to(&[0xA5; 20], ("127.0.0.1", to.port()));
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Self(stop, Some(thread))
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.take().unwrap().join().unwrap();
    }
}

#[test]
fn a_flood_from_elsewhere_does_not_hide_that_the_device_is_gone() {
    let (radio, device) = device(2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_continuous(None).unwrap();
    receive(&mut stream, 20_000);
    let _flood = Flood::of(stream.local());
    radio.stop();
    let mut buffer = vec![Complex32::default(); 4096];
    let step = Duration::from_millis(100);
    let error = (0..200).find_map(|_| stream.recv(&mut buffer, step).err());
    assert!(matches!(error, Some(RxError::DeviceSilent { .. })), "{error:?}");
}

#[test]
fn a_flood_from_elsewhere_does_not_hold_up_a_start() {
    let lose = Arc::new(AtomicBool::new(true));
    let lost = Arc::clone(&lose);
    // The answer to the first start command: address 0x1014 and the value 2.
    let meddler = Meddler::new(move |packet| {
        let start = packet.len() >= 24
            && packet[6] >> 5 == 4
            && (packet[16..18] == [0x14, 0x10] && packet[20..24] == [2, 0, 0, 0]);
        if start && lost.swap(false, Ordering::Relaxed) { Action::Drop } else { Action::Pass }
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    let _flood = Flood::of(stream.local());
    let (done, started) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        stream.start_continuous(None).unwrap();
        let brought = receive(&mut stream, 20_000);
        done.send((brought, stream.finish())).unwrap();
    });
    let (brought, ledger) = started.recv_timeout(2 * common::PATIENCE).expect("it starts");
    assert!(!lose.load(Ordering::Relaxed) && brought.samples >= 20_000);
    assert_eq!(ledger.balance(), Ok(()));
}

#[test]
fn a_second_copy_of_init_takes_no_credit_back() {
    use millstream_wire::stream::{CommandOp, CommandRepr};
    use millstream_wire::{Epid, Width};
    let mut resyncs = 0;
    let meddler = Meddler::new(move |packet| {
        let resync = packet.len() >= 24 && packet[6] >> 5 == 2 && packet[10] & 0xF == 2;
        resyncs += u32::from(resync);
        // Right behind a RESYNC, when the next one is farthest away.
        if !is_data(packet) || resyncs != 5 {
            return Action::Pass;
        }
        resyncs += 1;
        let init = CommandRepr {
            dst_epid: Epid(u16::from_le_bytes([packet[0], packet[1]])),
            seq: 0,
            src_epid: Epid(2),
            op: CommandOp::Init,
            op_data: 0,
            packets: 0xFF_FFFF,
            bytes: 5000,
        };
        let mut bytes = vec![0; 24];
        init.emit(Width::W64, &mut bytes).unwrap();
        Action::Before(bytes)
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args().with_recv_queue_bytes(128 << 10)).unwrap();
    stream.start_finite(1000 * SPP, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    assert_eq!((brought.samples, brought.events.len()), (1000 * SPP, 0), "{brought:?}");
    assert_eq!(stream.counters().stalls, 0);
}

#[test]
fn totals_that_make_no_sense_do_no_harm() {
    let mut sent = false;
    let meddler = Meddler::new(move |packet| {
        let resync = packet.len() >= 24 && packet[6] >> 5 == 2 && packet[10] & 0xF == 2;
        if !resync || sent {
            return Action::Pass;
        }
        sent = true;
        let mut wild = packet.to_vec();
        wild[11..24].fill(0xFF);
        Action::Before(wild)
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args().with_recv_queue_bytes(128 << 10)).unwrap();
    stream.start_finite(1000 * SPP, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    assert_eq!((brought.samples, brought.events.len()), (1000 * SPP, 0), "{brought:?}");
}

#[test]
fn the_last_event_of_a_burst_is_waited_for() {
    let meddler = Meddler::data(|n, packet| {
        if n != 50 {
            return Action::Pass;
        }
        // The device gives up half way: EOB.
        let mut last = packet.to_vec();
        last[7] |= 0x02;
        Action::Replace(last)
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(100 * SPP, None).unwrap();
    let mut events = Vec::new();
    let mut buffer = vec![Complex32::default(); 4096];
    while stream.is_running() {
        let meta = stream.recv(&mut buffer, common::PATIENCE).unwrap();
        events.extend(Some(meta.event).filter(|event| *event != RxEvent::None));
    }
    assert_eq!(events, [RxEvent::Overrun { samples: 49 * SPP }]);
    let ledger = stream.finish();
    assert_eq!((ledger.expected, ledger.delivered), (100 * SPP, 51 * SPP));
    assert_eq!(ledger.balance(), Ok(()));
}

#[test]
fn a_slow_consumer_loses_samples_and_not_the_stream() {
    let (radio, args_of) = radio(RadioConfig { rx_buffer_samples: 1 << 18, ..patient() });
    let mut device = Device::open(args_of).unwrap();
    device.set_rate(4e6).unwrap();
    let mut stream = device.rx_stream(args().with_recv_queue_bytes(256 << 10)).unwrap();
    stream.start_continuous(None).unwrap();
    let first = receive(&mut stream, 50_000);
    // Far longer than the queue and the device's buffer last.
    std::thread::sleep(Duration::from_secs(1));
    let after = receive(&mut stream, 800_000);
    let counters = *stream.counters();
    let ledger = stream.finish();
    println!("{counters:?}\n{ledger}");
    assert!(after.events.iter().any(|event| matches!(event, RxEvent::Overrun { .. })));
    assert!(counters.overruns >= 1 && after.missing > 0);
    assert_eq!(ledger.lost(Cause::DeviceOverrun), first.missing + after.missing);
    assert_eq!(ledger.lost(Cause::NetworkLoss) + ledger.lost(Cause::HostQueueDrop), 0);
    assert_eq!(ledger.balance(), Ok(()));
    drop(device);
    assert!(radio.stop().rx_overruns >= 1);
}

#[test]
fn a_restart_that_comes_too_late_is_tried_further_ahead() {
    let slow = Arc::new(AtomicBool::new(false));
    let is_slow = Arc::clone(&slow);
    let meddler = Meddler::new(|_| Action::Pass).sent(move |packet| {
        let control = packet.get(6).is_some_and(|byte| byte >> 5 == 4);
        if control && is_slow.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(30));
        }
        Action::Pass
    });
    let (radio, mut args_of) = radio(RadioConfig { rx_buffer_samples: 1 << 18, ..patient() });
    args_of.open_port = Some(meddler.open_port());
    let mut device = Device::open(args_of).unwrap();
    device.set_rate(4e6).unwrap();
    let mut stream = device.rx_stream(args().with_recv_queue_bytes(256 << 10)).unwrap();
    stream.start_continuous(None).unwrap();
    let first = receive(&mut stream, 50_000);
    slow.store(true, Ordering::Relaxed);
    std::thread::sleep(Duration::from_secs(1));
    let after = receive(&mut stream, 800_000);
    slow.store(false, Ordering::Relaxed);
    let ledger = stream.finish();
    assert_eq!(ledger.lost(Cause::DeviceOverrun), first.missing + after.missing);
    assert_eq!(ledger.balance(), Ok(()));
    drop(device);
    let counters = radio.stop();
    assert!(counters.rx_overruns >= 1 && counters.rx_late_commands >= 1, "{counters:?}");
}

#[test]
fn a_stream_that_lost_all_its_credit_is_set_up_anew() {
    let cut = Arc::new(AtomicBool::new(false));
    let (received, sent) = (Arc::clone(&cut), Arc::clone(&cut));
    let meddler = Meddler::new(move |packet| {
        let stream = common::is_data(packet) || packet.get(6).is_some_and(|byte| byte >> 5 == 2);
        if stream && received.load(Ordering::Relaxed) { Action::Drop } else { Action::Pass }
    })
    .sent(move |packet| {
        let status = packet.get(6).is_some_and(|byte| byte >> 5 == 1);
        if status && sent.load(Ordering::Relaxed) { Action::Drop } else { Action::Pass }
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args().with_recv_queue_bytes(128 << 10)).unwrap();
    stream.start_continuous(None).unwrap();
    receive(&mut stream, 50_000);
    cut.store(true, Ordering::Relaxed);
    let mut buffer = vec![Complex32::default(); 4096];
    while stream.recv(&mut buffer, Duration::from_millis(200)).unwrap().event != RxEvent::Timeout {}
    cut.store(false, Ordering::Relaxed);
    let missing = receive(&mut stream, 100_000).missing;
    let counters = *stream.counters();
    let ledger = stream.finish();
    println!("{counters:?}\n{ledger}");
    assert!(missing > 0);
    assert_eq!(ledger.lost_total() - ledger.lost(Cause::Discarded), missing);
    assert_eq!(ledger.balance(), Ok(()));
}

#[test]
fn drops_of_the_hosts_own_queue_are_booked_as_such() {
    for link in ["udp:gro=off", "udp"] {
        let meddler = Meddler::new(|_| Action::Pass).claim_queue_bytes(64 << 20).link(link);
        let (_radio, device) = meddled(meddler, 2e6);
        let mut stream = device.rx_stream(args().with_recv_queue_bytes(64 << 10)).unwrap();
        stream.start_continuous(None).unwrap();
        receive(&mut stream, 50_000);
        std::thread::sleep(Duration::from_millis(200));
        let brought = receive(&mut stream, 200_000);
        let drops = stream.queue_drops();
        let ledger = stream.finish();
        println!("{link}: {drops} drops\n{ledger}");
        assert!(drops > 0 && brought.missing > 0, "{link}");
        assert_eq!(ledger.lost(Cause::HostQueueDrop), brought.missing, "{link}");
        assert_eq!(ledger.balance(), Ok(()));
    }
}
