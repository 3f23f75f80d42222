//! `millstream rx`: recordings, and the causes that cut one short.

use crate::common::{
    Outcome, Radio, Running, address, command, eventually, fault, growing, millstream, names,
};
use millstream_dsp::chunks::Chunks;
use millstream_testkit::netns::Namespace;
use std::net::TcpListener;
use std::path::Path;

/// A recording to `out`, with `more` arguments.
fn rx(folder: &Path, radio: &Radio, out: &str, more: &[&str]) -> Outcome {
    start(folder, radio, out, more).wait()
}

fn start(folder: &Path, radio: &Radio, out: &str, more: &[&str]) -> Running {
    let args = radio.args();
    let rx = ["rx", "--json", "--args", &args, "--rate", "1e6", "--out", out];
    Running::start(command(folder, &[&rx[..], more].concat()))
}

#[test]
fn every_format_holds_the_same_samples() {
    let folder = tempfile::tempdir().unwrap();
    let radio =
        Radio::start(folder.path(), &["--rx-antenna", "noise", "--rx-antenna", "tone:1e5,0.5"]);
    let tone = ["--channel", "1", "--nsamps", "20000"];
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();

    rx(folder.path(), &radio, "a.sc16", &tone).succeeds();
    let raw = read("a.sc16");
    assert_eq!(raw.len(), 4 * 20_000);
    let largest = raw.in_chunks().0.iter().map(|part| i16::from_le_bytes(*part)).max().unwrap();
    assert!((16_000..=16_384).contains(&largest), "amplitude 0.5, found {largest}");

    rx(folder.path(), &radio, "b.cf32", &tone).succeeds();
    let floats = read("b.cf32");
    assert_eq!(floats.len(), 8 * 20_000);
    let largest = floats.in_chunks().0.iter().map(|part| f32::from_le_bytes(*part));
    let largest = largest.fold(0.0, f32::max);
    assert!((largest - 0.5).abs() < 0.01, "amplitude 0.5, found {largest}");

    let outcome = rx(folder.path(), &radio, "c.sigmf-meta", &["--duration", "0.02"]);
    let results = &outcome.succeeds().json()["results"];
    assert_eq!((&results["data"], &results["segments"]), (&"c.sigmf-data".into(), &1.into()));
    assert_eq!(read("c.sigmf-data").len(), 4 * 20_000);
    let meta: serde_json::Value = serde_json::from_slice(&read("c.sigmf-meta")).unwrap();
    assert_eq!(meta["global"]["core:datatype"], "ci16_le");
    assert_eq!(meta["global"]["core:sample_rate"], 1e6);
    assert_eq!(meta["captures"][0]["core:sample_start"], 0);

    let outcome = rx(folder.path(), &radio, "d.sc16", &["--channel", "2", "--nsamps", "1"]);
    outcome.fails(1, "there is no receive channel 2: the device has 2 channels, counted from 0");
    let whole = ["a.sc16", "b.cf32", "c.sigmf-data", "c.sigmf-meta"];
    assert_eq!(names(folder.path()), whole, "no part is left");
    radio.stop();
}

/// Records while the radio reboots; `part` is a file that grows until then. Returns the results.
fn over_a_reboot(folder: &Path, part: &str, more: &[&str]) -> serde_json::Value {
    let (radio, control) = Radio::start_with_control(folder, &["--rx-antenna", "noise"]);
    let recording = start(folder, &radio, "a.sigmf-meta", &[&["--reopen", "60"], more].concat());
    let part = folder.join(part);
    growing(&part);
    fault(&control, &["add", "reboot", "silent_ms=300"]).succeeds();
    let counters = || fault(&control, &["counters", "--json"]).succeeds().json();
    eventually("a reboot", || counters()["results"]["counters"]["reboots"] == 1);
    // More than waited in the rings for the disk.
    let length = || part.metadata().unwrap().len();
    let before = length();
    eventually("samples behind it", || length() > before + (4 << 20));
    recording.signal(libc::SIGINT);
    let results = recording.wait().succeeds().json()["results"].take();
    radio.stop();
    assert_eq!(results["segments"], 2, "{results}");
    results
}

/// The samples that are missing between the two parts of a recording, by its metadata.
fn gap(meta: &Path) -> u64 {
    let meta: serde_json::Value = serde_json::from_slice(&std::fs::read(meta).unwrap()).unwrap();
    let captures = meta["captures"].as_array().unwrap();
    assert_eq!(captures.len(), 2);
    let annotations = meta["annotations"].to_string();
    assert!(annotations.contains("reopened"), "{annotations}");
    let place = |index: usize, name: &str| captures[index][name].as_u64().unwrap();
    let (start, time) = ("core:sample_start", "core:global_index");
    place(1, time) - place(0, time) - place(1, start)
}

#[test]
fn a_recording_survives_a_reboot_of_the_radio() {
    let folder = tempfile::tempdir().unwrap();
    let results = over_a_reboot(folder.path(), "a.sigmf-data.part", &[]);
    let lost = results["ledger"]["lost"]["reopened"].as_u64().unwrap();
    assert!(lost > 100_000 && results["ledger"]["balances"] == true, "{results}");
    assert_eq!(gap(&folder.path().join("a.sigmf-meta")), lost);
}

#[test]
fn a_recording_of_two_channels_survives_a_reboot_of_the_radio() {
    let folder = tempfile::tempdir().unwrap();
    let results = over_a_reboot(folder.path(), "a-ch1.sigmf-data.part", &["--channel", "0,1"]);
    let channels = results["channels"].as_array().unwrap();
    let lost = |channel: usize| channels[channel]["ledger"]["lost"]["reopened"].as_u64().unwrap();
    assert!(lost(0) > 100_000 && lost(0) == lost(1), "{results}");
    for meta in ["a-ch0.sigmf-meta", "a-ch1.sigmf-meta"] {
        assert_eq!(gap(&folder.path().join(meta)), lost(0));
    }
}

#[test]
fn where_nothing_can_be_written_says_why_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &[]);
    let few = ["--nsamps", "100000"];
    let refused = |out: &str, more: &[&str], part: &str| {
        rx(folder.path(), &radio, out, more).fails(1, part);
    };
    refused("no/x.sc16", &few, "cannot write no/x.sc16: No such file or directory");
    refused("no/x.sc16", &few, "; make its folder first");
    // The names of this verb's blocks must not show.
    let outcome = rx(folder.path(), &radio, "no/x.sc16", &few);
    let plain = |line: &str| line.starts_with("millstream: cannot write no/x.sc16");
    assert!(outcome.stderr.lines().any(plain), "{outcome:?}");
    refused("/dev/full", &["--nsamps", "100000", "--format", "sc16"], "; free some space");
    refused("x.wav", &few, "use .sc16, .cf32 or .sigmf-meta, or add --format");
    refused("x.sc16", &["--format", "cf32"], "the file extension means sc16, but --format is cf32");
    assert!(names(folder.path()).is_empty());
    radio.stop();
}

#[test]
fn an_interface_that_is_down_is_named() {
    let Some(namespace) = Namespace::alone() else { return };
    namespace.sh("ip link add ms-down type veth peer name ms-peer");
    namespace.sh("ip address add 192.168.10.1/24 dev ms-down");
    let folder = tempfile::tempdir().unwrap();
    let args = "addr=192.168.10.2,link=packet:ms-down";
    let rx = ["rx", "--args", args, "--rate", "1e6", "--nsamps", "1", "--out", "x.sc16"];
    let outcome = namespace.run(|| millstream(folder.path(), &rx));
    outcome.fails(1, "the interface ms-down is down: bring it up with `ip link set ms-down up`");
}

#[test]
fn a_device_that_is_not_there_or_does_not_answer_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let addr = address();
    let args = format!("addr={addr}");
    let rx = ["rx", "--args", &args, "--rate", "1e6", "--nsamps", "1", "--out", "x.sc16"];
    let outcome = millstream(folder.path(), &rx);
    outcome.fails(
        1,
        &format!("cannot connect to the management server of the device at {addr}:49601"),
    );
    outcome.fails(1, "check the address, and that the device (or emulated radio) runs");
    // The system accepts connections, but no process reads them.
    let _silent = TcpListener::bind((addr, millstream_wire::mpm::RPC_PORT)).unwrap();
    let outcome = millstream(folder.path(), &rx);
    outcome.fails(1, "did not answer the call \"claim\" within 2000 ms");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_claimed_device_is_left_to_its_holder() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &[]);
    let holder = start(folder.path(), &radio, "a.sc16", &[]);
    growing(&folder.path().join("a.sc16.part"));
    let outcome = rx(folder.path(), &radio, "b.sc16", &["--nsamps", "1"]);
    outcome
        .fails(1, "refused the call \"claim\"")
        .fails(1, "another program holds the device: end it");
    let addr = radio.addr.to_string();
    let found = millstream(folder.path(), &["find", "--addr", &addr, "--timeout", "60s"]);
    assert!(found.succeeds().stdout.contains(", claimed by another program\n"), "{found:?}");
    holder.signal(libc::SIGINT);
    holder.wait().succeeds();
    assert_eq!(names(folder.path()), ["a.sc16"]);
    radio.stop();
}

#[test]
fn an_interrupted_recording_is_whole_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &[]);
    for (signal, more, status) in
        [(libc::SIGINT, &[][..], 0), (libc::SIGTERM, &["--nsamps", "100000000000"], 1)]
    {
        let recording =
            start(folder.path(), &radio, "x.sigmf-data", &[&["--force"], more].concat());
        growing(&folder.path().join("x.sigmf-data.part"));
        recording.signal(signal);
        let outcome = recording.wait();
        assert_eq!(outcome.status, Some(status), "{outcome:?}");
        let document = outcome.json();
        let ledger = &document["results"]["ledger"];
        assert_eq!(ledger["balances"], true);
        let bytes = folder.path().join("x.sigmf-data").metadata().unwrap().len();
        assert_eq!(ledger["delivered"], bytes / 4);
        if status == 1 {
            let reason = document["error"].as_str().unwrap();
            assert!(reason.ends_with("of the 100000000000 samples asked for"), "{reason}");
        }
        assert_eq!(names(folder.path()), ["x.sigmf-data", "x.sigmf-meta"]);
    }
    radio.stop();
}

#[test]
fn a_recording_without_a_sample_leaves_no_older_one_of_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &["--time-scale", "1e-6"]);
    for name in ["x.sigmf-data", "x.sigmf-meta"] {
        std::fs::write(folder.path().join(name), "old").unwrap();
    }
    rx(folder.path(), &radio, "x.sigmf-meta", &[]).fails(1, "--force");
    for name in ["x.sigmf-data", "x.sigmf-meta"] {
        assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), b"old", "{name}");
    }
    let recording = start(folder.path(), &radio, "x.sigmf-meta", &["--force"]);
    eventually("the start", || folder.path().join("x.sigmf-data.part").exists());
    recording.signal(libc::SIGINT);
    let document = recording.wait().json();
    assert_eq!(document["results"]["ledger"]["delivered"], 0, "{document}");
    assert_eq!(document["results"]["meta"], "x.sigmf-meta", "{document}");
    assert_eq!(std::fs::read(folder.path().join("x.sigmf-data")).unwrap(), b"");
    let meta = std::fs::read(folder.path().join("x.sigmf-meta")).unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(&meta).is_ok());
    assert_eq!(names(folder.path()), ["x.sigmf-data", "x.sigmf-meta"]);
    radio.stop();
}

#[test]
fn a_radio_that_dies_ends_the_recording_and_keeps_what_came() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &[]);
    let recording = start(folder.path(), &radio, "x.sc16", &[]);
    growing(&folder.path().join("x.sc16.part"));
    radio.running.signal(libc::SIGKILL);
    let outcome = recording.wait();
    outcome.fails(1, "stopped answering").fails(1, ", then open it again");
    let reason = outcome.json()["error"].take();
    assert!(
        reason
            .as_str()
            .unwrap()
            .ends_with("; the file x.sc16.part contains the data up to that point"),
        "{reason}"
    );
    assert_eq!(names(folder.path()), ["x.sc16.part"]);
    let bytes = folder.path().join("x.sc16.part").metadata().unwrap().len();
    assert!(bytes > 0 && bytes % 4 == 0, "whole samples: {bytes} bytes");
}

/// The 32-bit counter of a ramp antenna, sample by sample.
fn ramp(path: &Path) -> Vec<u32> {
    let bytes = std::fs::read(path).unwrap();
    bytes.in_chunks().0.iter().map(|sample| u32::from_le_bytes(*sample)).collect()
}

/// Checks that every capture has the time of its first sample.
fn check_ramp(samples: &[u32], meta: &serde_json::Value) {
    let captures = meta["captures"].as_array().unwrap();
    let place = |one: &serde_json::Value, name: &str| one[name].as_u64().unwrap();
    let starts = captures.iter().map(|one| place(one, "core:sample_start") as usize);
    let ends = starts.clone().skip(1).chain([samples.len()]);
    for ((capture, start), end) in captures.iter().zip(starts).zip(ends) {
        let first = place(capture, "core:global_index") as u32;
        assert!(samples[start..end].iter().copied().eq((0..).map(|k| first + k).take(end - start)));
    }
}

#[test]
fn a_recording_goes_on_behind_an_overrun_on_every_channel() {
    let folder = tempfile::tempdir().unwrap();
    for (channels, files) in [("1", &["x"][..]), ("0,1", &["x-ch0", "x-ch1"])] {
        let antennas = ["--rx-antenna", "ramp", "--rx-antenna", "ramp"];
        let small = ["--rx-buffer-samples", "32768", "--control", "0"];
        let (radio, said) = Radio::start_and_hear(folder.path(), &[&antennas[..], &small].concat());
        let control = said[0].strip_prefix("control: ").unwrap().split(',').next().unwrap();
        let more = ["--nsamps", "3000000", "--channel", channels, "--max-lost", "100"];
        let recording = start(folder.path(), &radio, "x.sigmf-meta", &more);
        // Twice, the radio does nothing for 150 ms, and its buffer holds 32 ms.
        let stall = ["sim", "fault", control, "add", "stall", "ms=150"];
        let part = folder.path().join(format!("{}.sigmf-data.part", files[0]));
        let length = || part.metadata().map_or(0, |data| data.len());
        let mut written = 0;
        for _ in 0..2 {
            eventually("more samples in the file", || length() > written);
            millstream(folder.path(), &stall).succeeds();
            written = length();
        }
        let outcome = recording.wait();
        outcome.fails(1, "samples were lost, and 100 were allowed");
        let results = outcome.json()["results"].take();
        assert!(results["segments"].as_u64().unwrap() > 1, "{results}");
        let ledgers: Vec<_> = match results["channels"].as_array() {
            Some(channels) => channels.iter().map(|one| &one["ledger"]).collect(),
            None => vec![&results["ledger"]],
        };
        let mut all = Vec::new();
        for (file, ledger) in files.iter().zip(&ledgers) {
            assert_eq!(ledger["balances"], true, "{ledger}");
            assert_eq!(ledger["expected"], 3_000_000, "{ledger}");
            let samples = ramp(&folder.path().join(format!("{file}.sigmf-data")));
            assert_eq!(samples.len() as u64, ledger["delivered"]);
            let meta = std::fs::read(folder.path().join(format!("{file}.sigmf-meta"))).unwrap();
            check_ramp(&samples, &serde_json::from_slice(&meta).unwrap());
            all.push(samples);
        }
        assert!(all.iter().all(|samples| *samples == all[0]), "the same moments");
        assert_eq!(ledgers.len(), files.len());
        radio.stop();
    }
}

#[test]
fn two_channels_begin_together_at_a_pps_edge() {
    let folder = tempfile::tempdir().unwrap();
    // A slow second leaves a busy machine time for the command.
    let slow = ["--time-scale", "0.25", "--rx-antenna", "ramp", "--rx-antenna", "ramp"];
    let radio = Radio::start(folder.path(), &slow);
    let more = ["--nsamps", "30001", "--channel", "1", "--channel", "0", "--at-pps"];
    let outcome = rx(folder.path(), &radio, "x.sc16", &more);
    let results = outcome.succeeds().json()["results"].take();
    let start = results["start_ticks"].as_u64().unwrap() as u32;
    for name in ["x-ch0.sc16", "x-ch1.sc16"] {
        let samples = ramp(&folder.path().join(name));
        assert!(samples.iter().copied().eq(start..start + 30_001), "{name}: {}", samples.len());
    }
    assert_eq!(results["channels"][0]["data"], "x-ch1.sc16");
    assert_eq!(names(folder.path()), ["x-ch0.sc16", "x-ch1.sc16"]);
    for (channels, part) in [
        ("0,0", "channel 0 is given twice: give each channel once"),
        ("0,2", "no receive channel 2"),
    ] {
        rx(folder.path(), &radio, "y.sc16", &["--channel", channels]).fails(1, part);
    }
    let twice = ["--channel", "0,1", "--format", "sc16"];
    rx(folder.path(), &radio, "/dev/zero", &twice)
        .fails(1, "each of several channels needs its own file");
    radio.stop();
}

#[test]
fn a_disk_that_is_too_slow_costs_samples_and_not_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("slow");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let radio = Radio::start(folder.path(), &["--rx-antenna", "ramp"]);
    let more = ["--format", "sc16", "--buffer", "1", "--rate", "4e6"];
    let args = radio.args();
    let rx = ["rx", "--json", "--args", &args, "--out", "slow"];
    let recording = Running::start(command(folder.path(), &[&rx[..], &more].concat()));
    let mut reader = std::fs::File::open(&pipe).unwrap();
    // The pipe is not read until samples are lost.
    while recording.line("").ends_with(" 0 lost") {}
    let drain = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut bytes).unwrap();
        bytes
    });
    recording.line("");
    recording.signal(libc::SIGINT);
    let document = recording.wait().succeeds().json();
    let ledger = &document["results"]["ledger"];
    assert_eq!(ledger["balances"], true);
    assert!(ledger["lost"]["consumer_full"].as_u64().unwrap() > 0, "{ledger}");
    assert_eq!(ledger["lost"]["device_overrun"], 0, "the device need not stop: {ledger}");
    assert!(document["results"]["segments"].as_u64().unwrap() > 1, "{document}");
    assert_eq!(drain.join().unwrap().len() as u64, 4 * ledger["delivered"].as_u64().unwrap());
    radio.stop();
}

#[test]
fn the_front_end_is_set_for_each_channel_and_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &["--rx-antenna", "ramp"]);
    let more = ["--nsamps", "1000", "--channel", "0,1", "--freq", "915M", "--gain", "30,70"];
    let more = [&more[..], &["--antenna", "TX/RX", "--bandwidth", "5M"]].concat();
    let document = rx(folder.path(), &radio, "x.sigmf-meta", &more).succeeds().json();
    let channels = &document["results"]["channels"];
    for (index, gain_db) in [(0, 30.0), (1, 70.0)] {
        let tuned = &channels[index]["tuned"];
        assert!((tuned["freq_hz"].as_f64().unwrap() - 915e6).abs() < 10.0, "{tuned}");
        assert_eq!((&tuned["gain_db"], &tuned["antenna"]), (&gain_db.into(), &"TX/RX".into()));
        let name = format!("x-ch{index}.sigmf-meta");
        let meta = std::fs::read(folder.path().join(name)).unwrap();
        let meta: serde_json::Value = serde_json::from_slice(&meta).unwrap();
        assert_eq!(meta["captures"][0]["core:frequency"], tuned["freq_hz"]);
    }
    let one = ["--nsamps", "1000", "--freq", "915M,1G"];
    let error = "--freq has 2 values, and there are 1 channels";
    rx(folder.path(), &radio, "y.sc16", &one).fails(1, error);
    radio.stop();
}
