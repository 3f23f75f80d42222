//! `millstream tx` against emulated radios that record what they transmit.

use crate::common::{Outcome, Radio, Running, address, command, eventually, millstream};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

fn tx(folder: &Path, radio: &Radio, input: &str, more: &[&str]) -> Outcome {
    start(folder, radio, input, more).wait()
}

fn start(folder: &Path, radio: &Radio, input: &str, more: &[&str]) -> Running {
    let args = radio.args();
    let tx = ["tx", "--json", "--args", &args, "--in", input];
    Running::start(command(folder, &[&tx[..], more].concat()))
}

fn ledger(outcome: &Outcome) -> Value {
    outcome.succeeds().json()["results"]["ledger"].take()
}

fn read(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap()
}

fn sc16(samples: impl IntoIterator<Item = [i16; 2]>) -> Vec<u8> {
    samples.into_iter().flatten().flat_map(i16::to_le_bytes).collect()
}

fn ramp(count: i16) -> Vec<u8> {
    sc16((0..count).map(|k| [k, -k]))
}

#[test]
fn a_recording_is_transmitted_bit_by_bit() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &["--rx-antenna", "noise", "--tx-out", "out.sc16"]);
    let args = radio.args();
    let rx = ["rx", "--args", &args, "--rate", "1e6", "--nsamps", "100000", "--out"];
    millstream(folder.path(), &[&rx[..], &["a.sigmf-meta"]].concat()).succeeds();
    let outcome = tx(folder.path(), &radio, "a.sigmf-meta", &["--max-underflows", "1000"]);
    let ledger = ledger(&outcome);
    assert_eq!(ledger["accepted"], 100_000);
    assert_eq!(ledger["balances"], true);
    let results = &outcome.json()["results"];
    assert_eq!((&results["rate_hz"], &results["bursts"]), (&1e6.into(), &1.into()));
    assert_eq!(results["events"]["burst_acks"], 1, "{results}");
    radio.stop();
    let sent = read(folder.path(), "a.sigmf-data");
    assert!(read(folder.path(), "out.sc16") == sent, "{results}");
}

#[test]
fn samples_from_a_pipe_are_one_burst_to_their_end() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &["--tx-out", "out.sc16"]);
    let args = radio.args();
    // The last sample is not whole.
    let whole = sc16((0..200_001).map(|k| [k as i16, (k >> 16) as i16]));
    for (bytes, part) in [
        (&[&whole[..], &[7]].concat(), "bytes left out: 1"),
        (
            &Vec::new(),
            "standard input ended without a sample: connect it to a program that writes samples",
        ),
    ] {
        let tx = ["tx", "--args", &args, "--in", "-", "--format", "sc16", "--rate", "1M"];
        let mut child = command(folder.path(), &tx).stdin(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // Nothing waits for the end of the pipe.
        for piece in bytes.chunks(300_000) {
            input.write_all(piece).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        drop(input);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(part) && output.status.success() != bytes.is_empty(), "{said}");
        if output.status.success() {
            let summary = String::from_utf8(output.stdout).unwrap();
            assert!(summary.contains("standard input: 200001 samples accepted"), "{summary}");
        }
    }
    let tx = ["tx", "--args", &args, "--in", "-", "--rate", "1M"];
    let with = |more: &[&str]| millstream(folder.path(), &[&tx[..], more].concat());
    with(&[]).fails(1, "add --format sc16 or --format cf32");
    for more in [&["--timed"][..], &["--repeat", "2"]] {
        with(&[&["--format", "sc16"][..], more].concat()).fails(1, "need that: give a file");
    }
    radio.stop();
    assert!(read(folder.path(), "out.sc16") == whole);
}

#[test]
fn timed_captures_keep_their_distance() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("g.sigmf-data"), ramp(3000)).unwrap();
    let meta = json!({
        "global": { "core:datatype": "ci16_le", "core:sample_rate": 1e6, "core:version": "1.0.0" },
        "captures": [
            { "core:sample_start": 0, "core:global_index": 70_000 },
            { "core:sample_start": 1000, "core:global_index": 75_000 },
        ],
        "annotations": [],
    });
    std::fs::write(folder.path().join("g.sigmf-meta"), meta.to_string()).unwrap();
    let radio = Radio::start(folder.path(), &["--tx-out", "out.sc16"]);
    let outcome = tx(folder.path(), &radio, "g.sigmf-meta", &["--timed", "--lead", "2"]);
    let results = outcome.succeeds().json()["results"].take();
    assert_eq!((&results["bursts"], &results["events"]["burst_acks"]), (&2.into(), &2.into()));
    let start = results["start_ticks"].as_u64().unwrap();
    radio.stop();
    assert_eq!(read(folder.path(), "out.sc16"), ramp(3000));
    let written: Value = serde_json::from_slice(&read(folder.path(), "out.sigmf-meta")).unwrap();
    let captures = written["captures"].as_array().unwrap();
    let at = |index: usize| captures[index]["core:global_index"].as_u64().unwrap();
    assert_eq!((at(0), at(1)), (start, start + 5000), "{written}");
}

#[test]
fn raw_floats_are_scaled_and_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let floats = [[0.5f32, -0.25], [1.0, 2.0]];
    let bytes: Vec<u8> = floats.as_flattened().iter().flat_map(|x| x.to_le_bytes()).collect();
    std::fs::write(folder.path().join("f.cf32"), bytes).unwrap();
    std::fs::write(folder.path().join("s.raw"), sc16([[16384, -32768], [1, 3]])).unwrap();
    let radio = Radio::start(folder.path(), &["--tx-out", "a.sc16", "--tx-out", "b.sc16"]);
    let more = ["--rate", "1e6", "--scale", "0.5", "--repeat", "3"];
    assert_eq!(ledger(&tx(folder.path(), &radio, "f.cf32", &more))["accepted"], 6);
    let more = [&more[..4], &["--channel", "1", "--format", "sc16"]].concat();
    assert_eq!(ledger(&tx(folder.path(), &radio, "s.raw", &more))["accepted"], 2);
    radio.stop();
    // 0.5 × 0.5 × 32767 = 8191.75, and so on; 2 × 0.5 is full scale.
    let once = [[8192, -4096], [16384, 32767]];
    assert_eq!(read(folder.path(), "a.sc16"), sc16([once; 3].concat()));
    assert_eq!(read(folder.path(), "b.sc16"), sc16([[8192, -16384], [0, 2]]));
}

#[test]
fn two_channels_begin_together_at_a_pps_edge() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.sc16"), ramp(30_000)).unwrap();
    let slow = ["--time-scale", "0.25", "--tx-out", "a.sc16", "--tx-out", "b.sc16"];
    let radio = Radio::start(folder.path(), &slow);
    let more = ["--rate", "1e6", "--channel", "0,1", "--at-pps"];
    let results = tx(folder.path(), &radio, "x.sc16", &more).succeeds().json()["results"].take();
    assert_eq!(results["ledger"]["transmitted"], 60_000);
    assert_eq!((&results["bursts"], &results["events"]["burst_acks"]), (&2.into(), &2.into()));
    let wrong = ["--rate", "1e6", "--channel", "0,2"];
    tx(folder.path(), &radio, "x.sc16", &wrong).fails(1, "there is no transmit channel 2");
    radio.stop();
    let start = results["start_ticks"].as_u64().unwrap();
    for name in ["a", "b"] {
        assert!(read(folder.path(), &format!("{name}.sc16")) == ramp(30_000), "{name}");
        let meta = read(folder.path(), &format!("{name}.sigmf-meta"));
        let meta: Value = serde_json::from_slice(&meta).unwrap();
        assert_eq!(meta["captures"][0]["core:global_index"], start, "{meta}");
    }
}

#[test]
fn without_end_it_goes_on_until_somebody_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.sc16"), ramp(5000)).unwrap();
    let radio = Radio::start(folder.path(), &["--tx-out", "out.sc16"]);
    let more = ["--rate", "1e6", "--repeat", "0"];
    let playing = start(folder.path(), &radio, "x.sc16", &more);
    let out = folder.path().join("out.sc16.part");
    eventually("many repetitions", || out.metadata().is_ok_and(|data| data.len() > 200_000));
    playing.signal(libc::SIGINT);
    let outcome = playing.wait();
    let ledger = ledger(&outcome);
    assert_eq!(outcome.json()["results"]["interrupted"], true);
    assert_eq!(outcome.json()["results"]["bursts"], 1);
    assert!(ledger["accepted"].as_u64().unwrap() >= 50_000, "{ledger}");
    radio.stop();
}

#[test]
fn what_cannot_be_transmitted_is_told_before_the_radio_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("odd.sc16", &[0; 7]);
    write("empty.sc16", &[]);
    write("some.sc16", &[0; 8]);
    write("x.wav", &[0; 8]);
    write("bad.sigmf-meta", b"{");
    write("short.sigmf-data", &[0; 8]);
    let captures = json!([{ "core:sample_start": 9 }]);
    let short = json!({ "global": { "core:datatype": "ci16_le" }, "captures": captures });
    write("short.sigmf-meta", short.to_string().as_bytes());
    let args = format!("addr={}", address());
    let refused = |input: &str, more: &[&str], part: &str| {
        let tx = ["tx", "--args", &args, "--in", input];
        millstream(folder.path(), &[&tx[..], more].concat()).fails(1, part);
    };
    refused("none.sc16", &[], "cannot read none.sc16: No such file or directory");
    refused("none.sigmf-meta", &[], "cannot read none.sigmf-meta: No such file");
    refused("odd.sc16", &[], "odd.sc16 has 7 bytes, but each sample takes 4 bytes");
    refused("empty.sc16", &[], "empty.sc16 is empty");
    refused("x.wav", &[], "or give --format sc16 or --format cf32");
    refused("bad.sigmf-meta", &[], "bad.sigmf-meta is not valid SigMF metadata");
    refused("bad.sigmf-meta", &["--format", "sc16"], "leave --format out");
    refused("short.sigmf-meta", &[], "a capture begins behind the end of the data");
    refused("some.sc16", &[], "some.sc16 does not contain its sample rate: add --rate");
    refused("some.sc16", &["--timed", "--rate", "1e6"], "no core:global_index");
    refused(
        "some.sc16",
        &["--rate", "1e6"],
        "cannot connect to the management server of the device",
    );
    refused(".", &["--format", "sc16", "--rate", "1e6"], "it is not a regular file");
}

#[test]
fn a_start_that_has_passed_is_refused_and_one_on_the_way_is_late() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.sc16"), ramp(100)).unwrap();
    let radio = Radio::start(folder.path(), &[]);
    for passed in ["1", "1us"] {
        let outcome = tx(folder.path(), &radio, "x.sc16", &["--rate", "1e6", "--at", passed]);
        outcome.fails(1, "has passed, its clock stands at");
        assert!(outcome.json().get("results").is_none(), "nothing was sent: {outcome:?}");
    }
    let outcome = tx(folder.path(), &radio, "x.sc16", &["--rate", "1e6", "--at", "+100ms"]);
    assert!(outcome.succeeds().stderr.contains(" s on the device's clock, start at "));
    let more = ["--rate", "1e6", "--at", "+1us", "--max-lates", "0"];
    let outcome = tx(folder.path(), &radio, "x.sc16", &more);
    outcome.fails(1, "late packets, and 0 were allowed");
    let ledger = &outcome.json()["results"]["ledger"];
    assert_eq!((&ledger["lost"]["late"], &ledger["balances"]), (&100.into(), &true.into()));
    radio.stop();
}

#[test]
fn a_radio_that_dies_ends_the_transmission_with_one_reason() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.sc16"), ramp(5000)).unwrap();
    let radio = Radio::start(folder.path(), &["--tx-out", "out.sc16"]);
    let playing = start(folder.path(), &radio, "x.sc16", &["--rate", "1e6", "--repeat", "0"]);
    let out = folder.path().join("out.sc16.part");
    eventually("samples", || out.metadata().is_ok_and(|data| data.len() > 100_000));
    radio.running.signal(libc::SIGKILL);
    playing.wait().fails(1, "stopped answering").fails(1, ", then open it again");
}

#[test]
fn a_burst_whose_time_is_far_away_does_not_keep_who_asks_to_end() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.sc16"), ramp(1000)).unwrap();
    let radio = Radio::start(folder.path(), &[]);
    let playing = start(folder.path(), &radio, "x.sc16", &["--rate", "1e6", "--lead", "1e6"]);
    // All is in the radio, and only its time has to pass.
    playing.line("100 %");
    // As `timeout` does: to the process, and to its group.
    playing.signal(libc::SIGTERM);
    playing.signal(libc::SIGTERM);
    let document = playing.wait().json();
    let ledger = &document["results"]["ledger"];
    assert_eq!((&ledger["accepted"], &ledger["balances"]), (&json!(1000), &json!(true)));
    assert_eq!(document["results"]["interrupted"], true, "{document}");
}
