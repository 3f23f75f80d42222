//! The television receiver on a live radio that loses packets: what is wrong in the transport
//! stream is what the ledger says was lost, and nothing else.

mod common;

use common::{Radio, graph, millstream};
use millstream_atsc::tx::Numbered;

/// Packets of the transmission, which is repeated without a seam.
const SENT: u64 = 40_000;

/// What a gap may cost, in packets: two fields, of 312 packets each, until field sync is found
/// anew, and the 52 that the interleaver spreads a packet over.
const GAP_PACKETS: u64 = 2 * 312 + 52 + 12;

#[test]
fn after_every_lost_packet_the_receiver_is_back_and_errors_lie_within_the_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut packets = Numbered::new(seed);
    let mut stream = Vec::new();
    for _ in 0..SENT {
        let mut packet = [0; 188];
        packets.next_packet(&mut packet);
        stream.extend(packet);
    }
    std::fs::write(folder.path().join("in.ts"), stream).unwrap();
    let fault = format!("lose to_host data skip=400 p=0.001 seed={seed}");
    let antenna = ["--rx-antenna", "atsc:in.ts", "--time-scale", "0.25", "--fault", &fault];
    let radio = Radio::start(folder.path(), &antenna);
    let args = format!("args={}", radio.args());
    let set = ["--set", &args, "--set", "samples=12500000", "--set", "out=out.ts", "--json"];
    let file = graph("radio-atsc-rx.toml");
    let run = millstream(folder.path(), &[&["run", &file], &set[..]].concat());
    let results = run.succeeds().json()["results"].take();
    radio.stop();
    let ledger = &results["ledgers"][0];
    assert_eq!(ledger["balances"], true, "{ledger}");
    let lost_samples = ledger["expected"].as_u64().unwrap() - ledger["delivered"].as_u64().unwrap();
    let got = std::fs::read(folder.path().join("out.ts")).unwrap();
    let found = judge(&packets, got.as_chunks::<188>().0);
    println!("{lost_samples} samples lost; {found:?}");
    assert_eq!(found.undetected, 0, "what is wrong is flagged");
    // A radio's packets hold about 2000 samples; several in a row are one gap.
    let gaps = lost_samples.div_ceil(1_900);
    assert!(found.runs <= gaps, "{} runs of errors in {gaps} gaps", found.runs);
    assert!(found.missing <= gaps * GAP_PACKETS, "{} packets in {gaps} gaps", found.missing);
    assert!(found.right > 20_000 - gaps * GAP_PACKETS, "{found:?}");
    assert!(found.right_at_end > 100, "it is locked in the end: {found:?}");
}

#[derive(Debug, Default)]
struct Found {
    right: u64,
    /// Sent, and not come out right, from the first right one on.
    missing: u64,
    /// Stretches of those.
    runs: u64,
    /// Neither right nor flagged.
    undetected: u64,
    right_at_end: u64,
}

/// Follows the numbers of the packets.
fn judge(sent: &Numbered, got: &[[u8; 188]]) -> Found {
    let mut found = Found::default();
    let mut last = None;
    for packet in got {
        let Some(number) = sent.number(packet) else {
            found.undetected += u64::from(packet[1] & 0x80 == 0);
            found.right_at_end = 0;
            continue;
        };
        if let Some(last) = last {
            let between = (number + SENT - last - 1) % SENT;
            found.missing += between;
            found.runs += u64::from(between > 0);
        }
        last = Some(number);
        found.right += 1;
        found.right_at_end += 1;
    }
    found
}
