//! The television receiver on a live radio that loses packets: the errors of the transport stream
//! are exactly the ledger's losses, packet by packet.

use crate::common::{Radio, graph, millstream};
use millstream_atsc::params::{FIELD_DATA_SEGMENTS, FIELD_SEGMENTS, SEGMENT_SYMBOLS};
use millstream_atsc::params::{PACKET_BYTES, SYMBOL_RATE_HZ};
use millstream_atsc::tx::Numbered;
use millstream_dsp::chunks::Chunks;
use serde_json::Value;
use std::ops::RangeInclusive;

/// Packets of the transmission, which repeats without a break.
const SENT: u64 = 312 * 128;

const RATE_HZ: f64 = 6.25e6;

/// Samples of the recording.
const SAMPLES: u64 = 12_500_000;

/// Segments that the interleaver spreads a packet over.
const SPREAD: i64 = 52;

/// Segments by which the receiver's events may be late (samples go in chunks of 2048), that the
/// trellis decoder needs to recover, and a packet begun within each.
const SLACK: i64 = 8;

#[test]
fn after_every_lost_packet_the_receiver_is_back_and_errors_lie_within_the_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let sent = Numbered::new(seed);
    let stream: Vec<u8> = (0..SENT).flat_map(|n| sent.packet(n)).collect();
    std::fs::write(folder.path().join("in.ts"), stream).unwrap();
    let fault = format!("lose to_host data skip=400 p=0.001 seed={seed}");
    let antenna = ["--rx-antenna", "atsc:in.ts", "--time-scale", "0.1", "--fault", &fault];
    let radio = Radio::start(folder.path(), &antenna);
    let args = format!("args={}", radio.args());
    let samples = format!("samples={SAMPLES}");
    let set = ["--set", &args, "--set", &samples, "--set", "out=out.ts", "--json"];
    let file = graph("radio-atsc-rx.toml");
    let run = millstream(folder.path(), &[&["run", &file], &set[..]].concat());
    let results = run.succeeds().json()["results"].take();
    radio.stop();
    let got = std::fs::read(folder.path().join("out.ts")).unwrap();
    let got = got.in_chunks::<PACKET_BYTES>().0;
    let gaps = gaps(&results);
    let found = follow(&sent, got);
    println!("{gaps:?}; {found:?}; {} packets", got.len());
    assert!(found.unflagged.is_empty(), "wrong and not flagged: {:?}", found.unflagged);
    let place = Place::of_first(&results, found.first);
    let windows: Vec<_> = gaps.iter().map(|gap| place.harmed_by(*gap)).collect();
    let outside =
        |number: &&i64| !windows.iter().any(|w: &RangeInclusive<i64>| w.contains(*number));
    let strays: Vec<_> = found.wrong.iter().filter(outside).collect();
    assert!(strays.is_empty(), "wrong without a gap: {strays:?}, gaps harm {windows:?}");
    // A lost packet of the radio is 16 bytes of each of some 50 codewords, and ten are corrected.
    for (gap, window) in gaps.iter().zip(&windows) {
        let counts = gap[1] > 1500 && found.first < *window.start() && *window.end() < found.last;
        let harmed = found.wrong.iter().filter(|number| window.contains(*number)).count();
        assert!(!counts || harmed > 0, "{gap:?} harmed nothing of {window:?}");
    }
    let harmed: i64 = windows.iter().map(|window| window.end() - window.start() + 1).sum();
    assert!(found.right + harmed > 24_000, "{} right", found.right);
    // After a gap at the very end no packets come.
    let last = place.number(SAMPLES) - SPREAD - SLACK;
    let complete = windows.iter().rev().find(|window| *window.end() + 50 < last);
    assert!(complete.is_none_or(|window| *window.end() < found.last), "it is back after each");
    assert_eq!(results["signals"][0]["relocks"], 0, "its place is kept over every gap");
}

/// Gaps as they were reported to the receiver: samples of time before, and samples missing. They
/// equal the ledger's losses.
fn gaps(results: &Value) -> Vec<[u64; 2]> {
    let ledger = &results["ledgers"][0];
    assert_eq!(ledger["balances"], true, "{ledger}");
    let mut missing_before = 0;
    let gap = |gap: &Value| {
        let [taken, missing] = ["at_sample", "missing"].map(|key| gap[key].as_u64().unwrap());
        missing_before += missing;
        [taken + missing_before - missing, missing]
    };
    let gaps = results["signals"][0]["gaps"].as_array().unwrap();
    let gaps: Vec<[u64; 2]> = gaps.iter().map(gap).collect();
    let [expected, delivered] = ["expected", "delivered"].map(|key| ledger[key].as_u64().unwrap());
    let lost = expected - delivered;
    // A gap after the last sample is not reported.
    let told: u64 = gaps.iter().map(|[_, missing]| missing).sum();
    assert!(told == lost || lost - told < 4000, "{told} samples missing, the ledger lost {lost}");
    gaps
}

/// Times of packets.
struct Place {
    /// Samples of time before the field sync in front of the packet `first`.
    field_sync: f64,
    first: i64,
}

impl Place {
    /// The first packet is the first of the field whose sync made the lock.
    fn of_first(results: &Value, first: i64) -> Self {
        let events = results["signals"][0]["events"].as_array().unwrap();
        let locked = events.iter().find(|event| event["state"] == "locked").unwrap();
        assert_eq!(first % FIELD_DATA_SEGMENTS as i64, 0, "the first of a field");
        Self { field_sync: locked["at_sample"].as_f64().unwrap() - samples(1.0), first }
    }

    /// Numbers of the packets that a gap may harm.
    fn harmed_by(&self, [at, missing]: [u64; 2]) -> RangeInclusive<i64> {
        self.number(at) - SPREAD - SLACK..=self.number(at + missing) + SLACK
    }

    /// The number of the packet that is sent at a sample.
    fn number(&self, sample: u64) -> i64 {
        let segment = ((sample as f64 - self.field_sync) / samples(1.0)).floor() as i64;
        let [field, place] =
            [segment.div_euclid(FIELD_SEGMENTS as i64), segment.rem_euclid(FIELD_SEGMENTS as i64)];
        self.first + field * FIELD_DATA_SEGMENTS as i64 + place - 1
    }
}

/// Samples of this many segments.
fn samples(segments: f64) -> f64 {
    segments * SEGMENT_SYMBOLS as f64 / SYMBOL_RATE_HZ * RATE_HZ
}

/// The received packets; numbers continue over the end of the transmission.
#[derive(Debug, Default)]
struct Found {
    first: i64,
    last: i64,
    right: i64,
    /// Sent between the first and the last right one, and not received right.
    wrong: Vec<i64>,
    /// Numbers before packets that are neither right nor flagged.
    unflagged: Vec<i64>,
}

/// Follows the numbers of the packets.
fn follow(sent: &Numbered, got: &[[u8; PACKET_BYTES]]) -> Found {
    let mut found = Found::default();
    for packet in got {
        let Some(number) = sent.number(packet).map(|number| number as i64) else {
            if packet[1] & 0x80 == 0 {
                found.unflagged.push(found.last);
            }
            continue;
        };
        if found.right == 0 {
            (found.first, found.last) = (number, number - 1);
        }
        let next = found.last + 1;
        let number = next + (number - next).rem_euclid(SENT as i64);
        found.wrong.extend(next..number);
        found.last = number;
        found.right += 1;
    }
    found
}
