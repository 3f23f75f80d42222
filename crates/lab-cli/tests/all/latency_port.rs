//! `millstream-lab latency port`: the waits for other frames, not the machine's speed.

use crate::common::{Outcome, millstream};
use serde_json::Value;
use std::path::Path;

const VERB: [&str; 2] = ["latency", "port"];

fn measure(args: &[&str]) -> Outcome {
    millstream(Path::new("/"), &[&VERB[..], args, &["--json"]].concat())
}

/// Whether private networks and `htb` are available.
fn is_possible(outcome: &Outcome) -> bool {
    let error = outcome.json()["error"].as_str().unwrap_or_default().to_owned();
    // A kernel without the module says so; any other refusal is our error.
    let no_htb = error.contains("htb") && error.contains("No such file");
    let refused = no_htb || error.contains("cannot make a network namespace");
    if refused {
        eprintln!("skipped: {error}");
    }
    !refused
}

/// Round trips that came back, and those that did not.
fn came_and_lost(row: &Value) -> (u64, u64) {
    let classes = row["histogram"]["classes_ns"].as_array().unwrap();
    let all: u64 = classes.iter().map(|class| class[1].as_u64().unwrap()).sum();
    let lost = row["lost"].as_u64().unwrap();
    (all - lost, lost)
}

/// Upper bound of the class that holds the quantile of the returned round trips, nanoseconds.
fn quantile_ns(row: &Value, quantile: f64) -> f64 {
    let number = |value: &Value| value.as_f64().unwrap();
    let classes = row["histogram"]["classes_ns"].as_array().unwrap();
    let all: f64 = classes.iter().map(|class| number(&class[1])).sum();
    let mut left = (all - number(&row["lost"])) * quantile;
    let class = classes.iter().find(|class| {
        left -= number(&class[1]);
        left <= 0.0
    });
    number(&class.unwrap()[0])
}

#[test]
fn a_full_queue_is_waited_for_and_priority_goes_past_it() {
    // A frame takes 1.2 ms, a queue of 100 takes 123 ms: no machine is slow enough to hide that.
    let args =
        ["--link-rate", "10M", "--topology", "bulk,priority", "--share", "1.5", "--queue", "100"];
    let outcome =
        measure(&[&args[..], &["--count", "100", "--packet-rate", "50", "--repeat", "1"]].concat());
    if !is_possible(&outcome) {
        return;
    }
    let document = outcome.succeeds().json();
    let rows = document["results"]["rows"].as_array().unwrap();
    let topologies: Vec<_> = rows.iter().map(|row| &row["case"]["topology"]).collect();
    assert_eq!(topologies, ["separate", "bulk", "priority"]);
    let [apart, full, first] = &rows[..] else { panic!("three rows") };
    assert_eq!((&full["bound"]["frames"], &full["bound"]["by"]), (&100.into(), &"queue".into()));
    assert_eq!((&first["bound"]["frames"], &first["bound"]["by"]), (&1.into(), &"wire".into()));
    assert!(full["drops"].as_u64() > Some(0), "more is offered than it takes: {full}");
    for row in [apart, first] {
        let (came, lost) = came_and_lost(row);
        assert!(came + lost == 100 && lost < came, "{row}");
    }
    // A full queue drops most of the packets that come at moments independent of the bulk's.
    assert!(came_and_lost(full).0 >= 10, "{full}");
    // Even if bulk was late for half of the time.
    let bound_ns = full["bound"]["wait_ns"].as_f64().unwrap();
    assert!((bound_ns - 123_040_000.0).abs() < 1.0, "{bound_ns}");
    assert!(quantile_ns(full, 0.9) > bound_ns / 2.0, "{full}");
    // A probe ahead of the bulk waits less than one behind it, beside the same bulk.
    for quick in [apart, first] {
        assert!(quantile_ns(quick, 0.5) < quantile_ns(full, 0.9), "{quick}");
    }
    let records = document["results"]["records"].as_array().unwrap();
    let queue = |record: &Value| record["details"]["queue"].as_str().unwrap().to_owned();
    assert_eq!(records.iter().map(queue).collect::<Vec<_>>(), ["pfifo", "pfifo", "pfifo_fast"]);
    assert_eq!(records[1]["parameters"]["queue_packets"], 100);
}

#[test]
fn what_is_sent_is_counted_by_the_queue_as_frames() {
    let bulk = ["--link-rate", "50M", "--topology", "bulk", "--share", "0.5", "--burst", "8"];
    let probes = ["--queue", "5000", "--count", "100", "--packet-rate", "200", "--repeat", "1"];
    let outcome = measure(&[&bulk[..], &probes].concat());
    if !is_possible(&outcome) {
        return;
    }
    let document = outcome.succeeds().json();
    let record = &document["results"]["records"][0];
    assert_eq!(record["parameters"]["topology"], "separate");
    let details = &record["details"];
    let count = |name: &str| details[name].as_u64().unwrap();
    // The other port carries only bulk, a frame a packet: no train was sent.
    assert_eq!(count("port_sent_bytes"), 1514 * count("port_sent_packets"));
    assert!(count("port_sent_packets") <= count("bulk_offered") && count("bulk_offered") > 0);
    // Half of the port's rate: a queue for 1.2 s is full only if the shaper stands still for longer
    // than any machine delays it.
    assert_eq!(record["counters"]["dropped by the port's queue"], 0);
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (args, part) in [
        (&["--share", "0"][..], "give a number above 0"),
        (&["--share", "1.01"], "give less than 1, or at least 1.02"),
        (&["--queue", "5001"], "give a whole number from 1 to 5000"),
        (&["--link-rate", "0.01M"], "give 100k to 100G"),
        (&["--topology", "ring"], "possible values: separate, shared, bulk, priority"),
        (&["--size", "9000"], "give a whole number from 60 to 1514"),
    ] {
        millstream(Path::new("/"), &[&VERB[..], args].concat()).fails(2, part);
    }
    for (args, part) in [
        (&["--link-rate", "1M"][..], "more than a tenth of a port of 1 Mbit/s; give 142 or less"),
        (
            &["--link-rate", "10M", "--queue", "5000", "--share", "1.02"],
            "would need 308 s to fill: give a smaller --queue",
        ),
    ] {
        millstream(Path::new("/"), &[&VERB[..], args].concat()).fails(1, part);
    }
}
