//! `millstream-lab bench wait`: spinning costs a CPU, sleeping does not, and no mode loses packets.

use crate::common::millstream;
use serde_json::Value;
use std::path::Path;

#[test]
fn each_wait_mode_has_its_price() {
    let args = ["bench", "wait", "--packet-rate", "100", "--measure", "500ms", "--repeat", "1"];
    let outcome = millstream(Path::new("/"), &[&args[..], &["--json"]].concat());
    let document = outcome.json();
    let error = document["error"].as_str().unwrap_or_default();
    if error.contains("cannot make a network namespace") {
        eprintln!("skipped: {error}");
        return;
    }
    let rows = outcome.succeeds().json()["results"]["rows"].as_array().unwrap().clone();
    let modes: Vec<_> = rows.iter().map(|row| row["wait"].as_str().unwrap()).collect();
    assert_eq!(modes, ["spin", "adaptive", "park"]);
    let number = |row: &Value, name: &str| row[name].as_f64().unwrap();
    for row in &rows {
        // A sender without a CPU leaves packets out, and the kernel delivers none without one.
        assert!(number(row, "sent") >= 1.0, "{row}");
        let classes = row["delays"]["classes_ns"].as_array().unwrap();
        let came: f64 = classes.iter().map(|class| class[1].as_f64().unwrap()).sum();
        assert!((1.0..=number(row, "sent")).contains(&came), "{row}");
    }
    // At 100 packets a second an adaptive thread sleeps like a parked one. The one that spins shows
    // its price only where it gets a CPU.
    let share = |row: &Value| row["cpu_share"]["median"].as_f64();
    if let [Some(spin), Some(adaptive), Some(park)] = [&rows[0], &rows[1], &rows[2]].map(share) {
        assert!(spin < 0.5 || adaptive.max(park) < spin / 2.0, "{spin} {adaptive} {park}");
    }
    let sleeps = |row: &Value| row["sleeps_hz"].as_f64();
    if let (Some(spin), Some(park)) = (sleeps(&rows[0]), sleeps(&rows[2])) {
        assert!(spin < park, "{spin} {park}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (args, status, part) in [
        (&["--packet-rate", "2M"][..], 1, "--packet-rate is 2000000: give 1 to 1M"),
        (&["--packet-rate", "0.5,100"], 1, "--packet-rate is 0.5: give 1 to 1M"),
        (&["--measure", "1ms"], 1, "--measure is 0.001 s: give 50ms to 60s"),
        (&["--repeat", "0"], 2, "give a whole number from 1 to 1000"),
    ] {
        let args = [&["bench", "wait"][..], args].concat();
        millstream(Path::new("/"), &args).fails(status, part);
    }
}
