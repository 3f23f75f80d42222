//! Tests of transmit streams over a path with every fault, in either direction.

use std::sync::Arc;
use std::time::Instant;

use crate::common::{PATIENCE, patient, radio};
use millstream_emulator::{CounterSnapshot, RadioConfig};
use millstream_link::fault::{FaultEffect, FaultRule, FaultSwitch, Select};
use millstream_radio::{Device, TxArgs, TxCause, TxLedger, TxMetadata};

const SAMPLES: usize = 1_000_007;

/// Packet type, bits 55 to 53 of the header.
fn kind(packet: &[u8]) -> u8 {
    packet.get(6).map_or(0, |byte| byte >> 5)
}

const STATUS: u8 = 1;
const DATA: u8 = 6;

/// Sends a burst with `effect` on packets of `of`, and returns the ledger and the device's count.
fn send(of: u8, effect: &FaultEffect, every: u64) -> (TxLedger, CounterSnapshot) {
    let (radio, mut args) = radio(RadioConfig { tx_buffer_samples: 1 << 16, ..patient() });
    let start = Instant::now();
    let switch = FaultSwitch::new(move || start.elapsed().as_nanos() as u64);
    let wrap = switch.clone();
    args.open_port = Some(Arc::new(move |bind, options| {
        let mut port = millstream_link::open("udp", bind, options)?;
        port.tx = wrap.wrap_tx(port.tx);
        port.rx = wrap.wrap_rx(port.rx);
        Ok(port)
    }));
    let mut device = Device::open(args).unwrap();
    device.set_rate(4e6).unwrap();
    let mut stream = device.tx_stream(TxArgs::new(0).with_samples_per_packet(500)).unwrap();
    let rule = FaultRule::new(move |bytes| kind(bytes) == of, effect.clone());
    let id = switch.add(rule.select(Select { every, ..Select::default() })).unwrap();
    let samples = vec![[1i16, 2]; SAMPLES];
    let sent = stream.send(&samples, TxMetadata::now().ending(), PATIENCE).unwrap();
    assert_eq!((sent.samples, sent.end_of_burst), (SAMPLES, true), "{effect:?}");
    // The packets for the end of the stream are not lost.
    let hit = switch.remove(id).unwrap().hit;
    assert!(hit > 0, "{effect:?}");
    assert!(stream.drain(PATIENCE).unwrap());
    let counters = stream.counters();
    let ledger = stream.finish();
    println!("{of} {effect:?} {:?} {counters:?}\n{ledger}", start.elapsed());
    assert_eq!((ledger.accepted, ledger.balance()), (SAMPLES as u64, Ok(())), "{effect:?}");
    (ledger, radio.counters())
}

#[test]
fn lost_packets_of_any_kind_leave_a_ledger_within_its_bounds() {
    for (of, every) in [(DATA, 50), (DATA, 3), (STATUS, 4)] {
        let (ledger, counters) = send(of, &FaultEffect::Lose, every);
        let missing = SAMPLES as u64 - counters.tx_samples;
        let (lost, unknown) = (ledger.lost_total(), ledger.unknown);
        let bounds = lost + unknown.lost_min..=lost + unknown.lost_max;
        assert!(bounds.contains(&missing), "{of} {every}: {missing} of {bounds:?}");
        if of == DATA {
            assert_eq!((unknown.samples, ledger.lost(TxCause::NetworkLoss)), (0, missing));
        }
    }
}

#[test]
fn packets_that_come_twice_late_or_damaged_end_no_stream() {
    let effects = [
        FaultEffect::Duplicate { copies: 1 },
        FaultEffect::Reorder { datagrams: 3 },
        FaultEffect::Delay { ns: 3_000_000 },
        FaultEffect::Corrupt { bits: 9, bytes: 0..16 },
        FaultEffect::Truncate { bytes: 11 },
    ];
    for effect in effects {
        for of in [DATA, STATUS] {
            send(of, &effect, 7);
        }
    }
}
