//! `millstream-lab latency radio`: its counts, not its speed.

use crate::common::page::{Page, promtool_is_content};
use crate::common::{Running, command, eventually, millstream};
use serde_json::Value;
use std::path::Path;

const VERB: [&str; 2] = ["latency", "radio"];

#[test]
fn every_turnaround_is_in_the_distribution_and_every_lead_is_tried() {
    let args = ["--count", "20", "--leads", "3", "--count-per-lead", "4", "--json"];
    let outcome = millstream(Path::new("/"), &[&VERB[..], &args].concat());
    assert!(outcome.stderr.contains("1 of 32: turnarounds, 0 of 20 found"), "{outcome:?}");
    // On a busy machine even the longest lead of so few tries may be late; then it says so.
    let document = outcome.json();
    let results = &document["results"];
    assert_eq!(results["tries"], 20, "{document}");
    let classes = results["histogram"]["classes_ns"].as_array().unwrap();
    assert_eq!(classes.iter().map(|class| class[1].as_u64().unwrap()).sum::<u64>(), 20);
    let time = |name: &str| results["turnaround_s"][name].as_f64().unwrap();
    assert!(time("min") > 0.0 && time("min") <= time("median") && time("median") <= time("max"));
    let leads = results["leads"].as_array().unwrap();
    assert_eq!(leads.len(), 3);
    assert!(leads.iter().all(|lead| lead["tries"] == 4), "{document}");
    assert_eq!(leads[0]["late"], 4, "half the shortest turnaround is always too short");
    assert_eq!(results["never_late_s"].is_null(), outcome.status == Some(1));
}

#[test]
fn turnarounds_are_shown_while_they_are_measured() {
    let args = ["--count", "1000000", "--leads", "0", "--duration", "10min", "--web", "0"];
    let line = [&VERB[..], &args, &["--web-control", "--json"]].concat();
    let running = Running::start(command(Path::new("/"), &line));
    let page = Page::of(&running);
    let count = |page: &Page| page.document("/api/status")["latencies"][0]["count"].as_u64();
    eventually("some turnarounds", || count(&page) >= Some(20));
    let latency = page.document("/api/status")["latencies"][0].clone();
    let counts = latency["counts"].as_array().unwrap();
    assert_eq!(counts.iter().map(|count| count.as_u64().unwrap()).sum::<u64>(), latency["count"]);
    assert_eq!(latency["name"], "turnaround");
    let metrics = page.get("/metrics");
    assert!(
        metrics.contains("millstream_turnaround_seconds_count{channel=\"radio\"} "),
        "{metrics}"
    );
    promtool_is_content(&metrics);
    // What it shows is what it measures: the sum over all is that of the result's classes.
    let before = count(&page);
    eventually("more", || count(&page) > before);
    let shown = page.document("/api/report")["results"].clone();
    let reply = page.set("run", "stop", true.into());
    assert_eq!(reply["ok"], true, "{reply}");
    let results = &running.wait().json()["results"];
    // The page has the same document as --json, of what was measured so far.
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&shown), names(results));
    assert_eq!(
        (&shown["plan"], &shown["records"][0]["started"]),
        (&results["plan"], &results["records"][0]["started"])
    );
    assert!(
        shown["tries"].as_u64() >= before && shown["tries"].as_u64() <= results["tries"].as_u64()
    );
    assert!(results["tries"].as_u64() > before, "{results}");
    let most_s = latency["max"].as_f64().unwrap();
    assert!(results["turnaround_s"]["max"].as_f64().unwrap() >= most_s, "{results}");
}

#[test]
fn its_histogram_sizes_a_buffer() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--count", "100", "--leads", "0", "--json"];
    let outcome = millstream(folder.path(), &[&VERB[..], &args].concat());
    std::fs::write(folder.path().join("latency.json"), &outcome.succeeds().stdout).unwrap();
    let args = ["bench", "buffer", "--rate", "10e6", "--histogram", "latency.json", "--json"];
    let sized = millstream(folder.path(), &[&args[..], &["--probability", "0.1"]].concat());
    let p90 = outcome.json()["results"]["turnaround_s"]["p90"].as_f64().unwrap();
    let samples = sized.succeeds().json()["results"]["samples_needed"].as_u64().unwrap();
    assert_eq!(samples, (p90 * 10e6).ceil() as u64);
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for (args, status, part) in [
        (&["--count", "1"][..], 2, "give a whole number from 10 to"),
        (&["--rx-samples", "1001"], 2, "give a whole number from 1 to 1000"),
        (&["--channel", "5"], 1, "channel 5"),
    ] {
        millstream(Path::new("/"), &[&VERB[..], args].concat()).fails(status, part);
    }
}
