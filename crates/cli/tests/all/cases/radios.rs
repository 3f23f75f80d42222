//! Recordings of a radio.

use super::case;
use crate::common::{Radio, Running, command, fault, growing, millstream};
use serde_json::Value;

/// Whether a capture has the frequency that was asked for, but for the steps of the radio.
fn is_tuned(capture: &Value) -> bool {
    let frequency = capture["core:frequency"].as_f64();
    frequency.is_some_and(|frequency| (frequency - 433.9e6).abs() < 1.0)
}

#[test]
fn a_gap_that_reaches_past_the_end_is_cut_there() {
    let folder = tempfile::tempdir().unwrap();
    for (skip, lost) in [("48", 4000), ("45", 10_000)] {
        let (radio, control) = Radio::start_with_control(folder.path(), &["--any-rate"]);
        let lose = ["add", "lose", "to_host", "data", &format!("skip={skip}"), "count=200"];
        fault(&control, &lose).succeeds();
        let args = ["rx", "--args", &radio.args(), "--rate", "1e6", "--nsamps", "100000"];
        let rest = ["--out", &format!("{skip}.sc16"), "--json"];
        let outcome = millstream(folder.path(), &[&args[..], &rest].concat());
        let ledger = outcome.json()["results"]["ledger"].take();
        assert_eq!(ledger["expected"], 100_000, "{outcome:?}");
        let losses = ledger["lost"].as_object().unwrap().values().filter_map(Value::as_u64);
        let all = losses.sum::<u64>();
        assert_eq!(all + ledger["delivered"].as_u64().unwrap(), 100_000, "{ledger}");
        assert!(all >= lost / 2, "something was lost: {ledger}");
    }
}

#[test]
fn a_gain_that_the_radio_does_not_have_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &["--device", "e320"]);
    for gain in ["999", "-3"] {
        let args = ["rx", "--args", &radio.args(), "--rate", "1e6", "--nsamps", "1000"];
        let gain_text = format!("--gain={gain}");
        let rest = [&gain_text, "--out", &format!("x{gain}.sc16")];
        let outcome = millstream(folder.path(), &[&args[..], &rest].concat());
        assert!(outcome.stderr.contains("gain") && outcome.stderr.contains(gain), "{outcome:?}");
    }
}

#[test]
fn a_graph_knows_the_rate_and_the_frequency_of_its_radio() {
    let folder = case("radio-rx-to-sigmf-sink-without-rate");
    let radio = Radio::start(folder.path(), &["--device", "e320"]);
    let graph = folder.path().join("graph.toml");
    let text = std::fs::read_to_string(&graph).unwrap();
    std::fs::write(&graph, text.replace("127.77.0.2", &radio.addr.to_string())).unwrap();
    millstream(folder.path(), &["run", "graph.toml"]).succeeds();
    let meta = std::fs::read(folder.path().join("g.sigmf-meta")).unwrap();
    let meta: Value = serde_json::from_slice(&meta).unwrap();
    assert_eq!(meta["global"]["core:sample_rate"].as_f64(), Some(1e6), "{meta}");
    assert!(is_tuned(&meta["captures"][0]), "{meta}");
    assert!(meta["captures"][0]["core:global_index"].is_u64(), "{meta}");
}

#[test]
fn a_radio_that_dies_leaves_a_recording_with_its_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &["--device", "e320"]);
    let args = ["rx", "--args", &radio.args(), "--rate", "1e6", "--freq", "433.9e6"];
    let rest = ["--duration", "600", "--out", "rec.sigmf-meta"];
    let running = Running::start(command(folder.path(), &[&args[..], &rest].concat()));
    growing(&folder.path().join("rec.sigmf-data.part"));
    radio.running.signal(libc::SIGKILL);
    let outcome = running.wait();
    assert_ne!(outcome.status, Some(0), "{outcome:?}");
    let inspected = millstream(folder.path(), &["inspect", "rec.sigmf-data.part", "--json"]);
    let results = inspected.succeeds().json()["results"].take();
    assert_eq!(results["rate_hz"].as_f64(), Some(1e6), "{results}");
    assert!(results["samples"].as_u64() > Some(0), "{results}");
    assert!(is_tuned(&results["sigmf"]["metadata"]["captures"][0]), "{results}");
}
