//! `millstream-lab latency launch`: every packet is counted once, on the right side of its time.

use crate::common::{Outcome, millstream};
use serde_json::Value;
use std::path::Path;

const VERB: [&str; 2] = ["latency", "launch"];

fn measure(args: &[&str]) -> Outcome {
    millstream(Path::new("/"), &[&VERB[..], args, &["--repeat", "1", "--json"]].concat())
}

/// Whether private networks are available.
fn is_possible(outcome: &Outcome) -> bool {
    let error = outcome.json()["error"].as_str().unwrap_or_default().to_owned();
    let refused = error.contains("cannot make a network namespace");
    if refused {
        eprintln!("skipped: {error}");
    }
    !refused
}

/// Packets that came: early, in time and late ones.
fn came(row: &Value) -> u64 {
    let side = |name: &str| {
        let classes = row["offsets"][name]["classes_ns"].as_array().unwrap();
        classes.iter().map(|class| class[1].as_u64().unwrap()).sum::<u64>()
    };
    side("before") + side("after")
}

fn count(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or_else(|| panic!("{name}: {row}"))
}

#[test]
fn without_a_queue_that_knows_launch_times_packets_leave_at_once() {
    // So far ahead that no machine is so busy that they would leave in time by chance.
    let args = ["--via", "thread,none", "--count", "32", "--interval", "10ms", "--lead", "800ms"];
    let outcome = measure(&[&args[..], &["--batch", "16"]].concat());
    if !is_possible(&outcome) {
        return;
    }
    let document = outcome.succeeds().json();
    let [thread, none] = &document["results"]["rows"].as_array().unwrap()[..] else {
        panic!("two rows: {document}")
    };
    assert_eq!((&thread["via"], &none["via"]), (&"thread".into(), &"none".into()));
    for row in [thread, none] {
        assert_eq!(count(row, "sent"), 32, "{row}");
        assert_eq!(came(row) + count(row, "dropped") + count(row, "lost"), 32, "{row}");
        assert!(came(row) > 16, "{row}");
    }
    assert_eq!(count(thread, "early"), 0, "a thread never sends before the time: {thread}");
    assert_eq!(count(none, "early"), came(none), "{none}");
    let records = document["results"]["records"].as_array().unwrap();
    assert_eq!(records.len(), 2);
    let earliest_ns = records[1]["details"]["offset_ns"]["min"].as_f64().unwrap();
    assert!(earliest_ns < -500e6 && earliest_ns > -1000e6, "{earliest_ns}");
}

#[test]
fn a_queue_keeps_the_times_or_the_kernel_has_none() {
    for queue in ["fq", "etf"] {
        let outcome = measure(&["--via", queue, "--count", "100", "--tolerance", "10ms"]);
        if !is_possible(&outcome) {
            return;
        }
        let document = outcome.json();
        let row = &document["results"]["rows"][0];
        if let Some(reason) = row["refused"].as_str() {
            // One sentence, which is also the error of the command.
            let sentence =
                format!("this kernel has no queue `{queue}`: load the module sch_{queue}");
            assert!(reason.starts_with(&sentence), "{reason}");
            assert_eq!(document["error"], row["refused"]);
            eprintln!("skipped: {reason}");
            continue;
        }
        assert_eq!(count(row, "sent"), 100, "{row}");
        assert_eq!(came(row) + count(row, "dropped") + count(row, "lost"), 100, "{row}");
        // `fq` sends nothing before its time, `etf` nothing earlier than its delta before it.
        assert_eq!(count(row, "early"), 0, "{row}");
        if queue == "fq" {
            assert_eq!(row["offsets"]["before"]["classes_ns"], Value::Array(Vec::new()), "{row}");
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (args, status, part) in [
        (&["--via", "tbf"][..], 2, "possible values: thread, fq, etf, none"),
        (&["--batch", "65"], 2, "give a whole number from 1 to 64"),
        (&["--interval", "11s"], 1, "--interval is 11 s: give 1us to 10s"),
        (&["--lead", "1s"], 1, "1008 packets would wait in the queue, but fq keeps 100"),
    ] {
        millstream(Path::new("/"), &[&VERB[..], args].concat()).fails(status, part);
    }
}
