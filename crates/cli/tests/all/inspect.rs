//! `millstream inspect` and `probe`: the content of a recording, and the structure of a radio.

use crate::common::{Radio, command, millstream};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// A tone of a quarter of full scale, of this many samples.
fn tone(samples: usize) -> Vec<u8> {
    let turn = [[8192_i16, 0], [0, 8192], [-8192, 0], [0, -8192]];
    (0..samples).flat_map(|n| turn[n % 4].map(i16::to_le_bytes).concat()).collect()
}

#[test]
fn raw_samples_have_a_length_and_a_power() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("a.sc16"), tone(1000)).unwrap();
    let outcome = millstream(path, &["inspect", "a.sc16"]);
    for part in
        ["raw samples, pairs of 16-bit", "1000 samples, the rate is not known", "-12.0 dBFS"]
    {
        assert!(outcome.succeeds().stdout.contains(part), "{outcome:?}");
    }
    let document = millstream(path, &["inspect", "a.sc16", "--rate", "1k", "--json"]).json();
    let results = &document["results"];
    assert_eq!((&results["seconds"], &results["atsc"]), (&1.0.into(), &false.into()));
    assert_eq!(results["power"]["dc_offset"][0], 0.0);

    // The same from a pipe.
    let mut inspect = command(path, &["inspect", "-", "--format", "sc16"]);
    let mut child = inspect.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&tone(1000)).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("1000 samples"), "{output:?}");
    millstream(path, &["inspect", "-"]).fails(1, "add --format");
    let short = [&tone(10)[..], &[0]].concat();
    std::fs::write(path.join("short.sc16"), short).unwrap();
    millstream(path, &["inspect", "short.sc16"])
        .fails(1, "the file is not complete, or it has another format");
}

#[test]
fn the_metadata_of_a_recording_is_told_with_its_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("a.sigmf-data"), tone(1000)).unwrap();
    let meta = r#"{"global": {"core:datatype": "ci16_le", "core:version": "1.0.0",
        "core:sample_rate": 1e3, "core:hw": "a radio\u001b[2J"}, "captures": [
        {"core:sample_start": 0, "core:global_index": 100, "core:datetime": "2026-01-02T03:04:05Z"},
        {"core:sample_start": 600, "core:global_index": 707}], "annotations": [
        {"core:sample_start": 600, "core:label": "packets lost"}]}"#;
    std::fs::write(path.join("a.sigmf-meta"), meta).unwrap();
    let outcome = millstream(path, &["inspect", "a.sigmf-data"]);
    for part in [
        "SigMF, pairs of 16-bit integers",
        "1000 samples, 1.000 s at 1000 samples a second",
        "core:hw      a radio\u{FFFD}[2J",
        "from sample 0, 100 of the signal, 2026-01-02T03:04:05Z",
        "from sample 600, 707 of the signal, 7 samples missing before it",
        "at sample 600: packets lost",
    ] {
        assert!(outcome.succeeds().stdout.contains(part), "no {part:?}: {outcome:?}");
    }
    let document = millstream(path, &["inspect", "a.sigmf-meta", "--json"]).json();
    assert_eq!(document["results"]["sigmf"]["missing_samples"], 7);
}

/// Our own sink writes it.
#[test]
fn a_wav_file_has_its_header_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let toml = r#"
[[block]]
name = "tone"
type = "signal_source"
item = "f32"
rate_hz = 48000.0
frequency_hz = 1000.0

[[block]]
name = "first"
type = "head"
item = "f32"
count = 48000

[[block]]
name = "sink"
type = "wav_sink"
item = "f32"
path = "a.wav"
rate_hz = 48000

[graph]
connections = ["tone -> first -> sink"]
"#;
    std::fs::write(path.join("g.toml"), toml).unwrap();
    millstream(path, &["run", "g.toml"]).succeeds();
    let outcome = millstream(path, &["inspect", "a.wav"]);
    let told = &outcome.succeeds().stdout;
    assert!(told.contains("48000 samples, 1.000 s at 48000 samples a second"), "{told}");
    millstream(path, &["inspect", "a.wav", "--rate", "8k"])
        .fails(1, "already contains its sample rate, 48000");
    std::fs::write(path.join("b.wav"), "RIFF").unwrap();
    millstream(path, &["inspect", "b.wav"]).fails(1, "b.wav is not a WAV file: it does not begin");
}

#[test]
fn television_is_recognised() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    millstream(path, &["sim", "generate", "--out", "tv.sc16", "--duration", "0.6", "--cn", "25"])
        .succeeds();
    let outcome = millstream(path, &["inspect", "tv.sc16", "--rate", "6.25M"]);
    assert!(outcome.succeeds().stdout.contains("ATSC television (8-VSB)"), "{outcome:?}");
    millstream(path, &["inspect", "-", "--format", "sc16", "--atsc"]).fails(1, "to a file first");
}

#[test]
fn a_radio_tells_what_it_consists_of_and_is_given_back() {
    let radio = Radio::start(Path::new("/"), &["--serial", "1A2B", "--name", "roof"]);
    let outcome = millstream(Path::new("/"), &["probe", "--args", &radio.args()]);
    for part in [
        &format!("e320 at {}\n", radio.addr),
        "serial             1A2B",
        "radio_clk",
        "internal (there are: internal, external)",
        "rx 1               Radio#0:1 > endpoint 1",
        "RFNoC              1.0, device type E320",
    ] {
        assert!(outcome.succeeds().stdout.contains(part), "no {part:?}: {}", outcome.stdout);
    }
    let document = millstream(Path::new("/"), &["probe", "--json", "--args", &radio.args()]).json();
    assert_eq!(document["results"]["rx_channels"], 2);
    // It has no claim now.
    let find = ["find", "--addr", &radio.addr.to_string(), "--json"];
    assert_eq!(millstream(Path::new("/"), &find).json()["results"]["radios"][0]["claimed"], false);
    radio.stop();
}

#[test]
fn a_capture_says_what_was_lost_on_the_way_and_what_the_radio_did_not_send() {
    // Seven packets are lost on their way, and the radio overruns while reports are lost.
    let faults = ["lose to_host data skip=100 count=7", "lose to_device status skip=60 count=20"];
    let faults = ["--fault", faults[0], "--fault", faults[1]];
    let small = ["--rx-buffer-samples", "100000", "--rx-antenna", "ramp"];
    let radio = Radio::start(Path::new("/"), &[&small[..], &faults].concat());
    let folder = tempfile::tempdir().unwrap();
    let link = "recv_queue_bytes=400000,link=udp:capture=radio.pcapng";
    let device = format!("{},{link}", radio.args());
    let rx = ["rx", "--json", "--args", &device, "--rate", "2e6", "--nsamps", "3000000"];
    let rx = millstream(folder.path(), &[&rx[..], &["--out", "x.sc16"]].concat()).json();
    let ledger = &rx["results"]["ledger"];
    let inspect = ["inspect", "radio.pcapng"];
    let found = millstream(folder.path(), &[&inspect[..], &["--json"]].concat()).succeeds().json();
    let found = &found["results"];
    let flow = found["flows"].as_array().unwrap().iter().find(|flow| flow["from_radio"] == true);
    let flow = flow.unwrap();
    assert_eq!(flow["lost_before"], 7, "{found}");
    assert!(ledger["lost"]["device_overrun"].as_u64().unwrap() > 0, "{ledger}");
    // A busy machine overruns while those packets are lost: the ledger cannot tell one from the
    // other then.
    let lost = |cause: &str| ledger["lost"][cause].as_u64().unwrap();
    let not_sent = lost("device_overrun") + lost("network_loss") + lost("unknown") - 7 * 2000;
    assert_eq!(flow["samples_not_sent"], not_sent, "{found} {ledger}");
    let told = millstream(folder.path(), &inspect);
    let text = &told.succeeds().stdout;
    assert!(text.contains("7 packets (") && text.contains("lost between the radio and"), "{text}");
    radio.stop();
}
