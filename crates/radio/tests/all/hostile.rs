//! Tests of receive streams with packets of strangers and implausible packets of the device: their
//! only effect is a count.

use std::net::{SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::{Action, Meddler, SPP, args, device, is_data, meddled, receive};
use millstream_radio::{Complex32, RxError};
use millstream_wire::stream::{CommandOp, CommandRepr};
use millstream_wire::{Epid, Width};

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
            // A time in the far future with the right number.
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
        let to = ("127.0.0.1", stream.members()[0].local().port());
        stranger.send_to(&vec![0xA5; size], to).unwrap();
    }
    let brought = receive(&mut stream, u64::MAX);
    assert_eq!((brought.samples, brought.events.len()), (100 * SPP, 0));
    let counters = stream.counters();
    assert_eq!(counters.foreign, 6);
    assert_eq!((counters.malformed, counters.misaddressed, counters.unexpected), (5, 1, 1));
    assert_eq!(stream.finish().lost_total(), 0);
}

/// Sends invalid packets to `to`, far more often than the limits of a stream, until it is dropped.
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
    let _flood = Flood::of(stream.members()[0].local());
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
    let _flood = Flood::of(stream.members()[0].local());
    let (done, started) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        stream.start_continuous(None).unwrap();
        let brought = receive(&mut stream, 20_000);
        done.send((brought, stream.finish())).unwrap();
    });
    let (brought, ledger) = started.recv_timeout(2 * crate::common::PATIENCE).expect("it starts");
    assert!(!lose.load(Ordering::Relaxed) && brought.samples >= 20_000);
    assert_eq!(ledger.balance(), Ok(()));
}

#[test]
fn a_second_copy_of_init_takes_no_credit_back() {
    let mut resyncs = 0;
    let meddler = Meddler::new(move |packet| {
        let resync = packet.len() >= 24 && packet[6] >> 5 == 2 && packet[10] & 0xF == 2;
        resyncs += u32::from(resync);
        // Right behind a RESYNC, as far as possible from the next one.
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

/// Returns a data packet with another number.
fn numbered(packet: &[u8], flip: u16) -> Action {
    let mut packet = packet.to_vec();
    let seq = u16::from_le_bytes([packet[4], packet[5]]) ^ flip;
    packet[4..6].copy_from_slice(&seq.to_le_bytes());
    Action::Replace(packet)
}

#[test]
fn a_packet_whose_number_is_damaged_is_told_by_its_time() {
    let meddler = Meddler::data(|n, packet| match n % 10 {
        5 => numbered(packet, 1 << (n / 10 % 16)),
        _ => Action::Pass,
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(200 * SPP, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    assert_eq!((brought.samples, &brought.events[..]), (200 * SPP, &[][..]));
    let counters = stream.counters();
    assert_eq!((counters.reordered, counters.clock_jumps), (0, 0), "it does not wait");
    assert_eq!((stream.finish().lost_total(), counters.malformed), (0, 0));
}

#[test]
fn a_packet_that_waits_under_the_number_of_another_one_costs_that_one() {
    // All of those wait for the lost one.
    let meddler = Meddler::data(|n, packet| match n {
        20 => Action::Drop,
        25 => numbered(packet, 25 ^ 29),
        _ => Action::Pass,
    });
    let (_radio, device) = meddled(meddler, 2e6);
    let mut stream = device.rx_stream(args()).unwrap();
    stream.start_finite(100 * SPP, None).unwrap();
    let brought = receive(&mut stream, u64::MAX);
    assert_eq!((brought.samples, brought.missing), (98 * SPP, 2 * SPP), "{brought:?}");
    assert_eq!(stream.counters().duplicates, 1);
    let ledger = stream.finish();
    assert_eq!((ledger.lost_total(), ledger.balance()), (2 * SPP, Ok(())));
}
