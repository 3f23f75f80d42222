//! The file of lines.

use crate::{Bench, options};
use millstream_flow::{TagTime, keys};
use millstream_publish::{JsonlOutlet, PublishOptions};
use millstream_testkit::allocations;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_file_has_items_and_tags_in_order_each_with_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    let mut bench = Bench::new(Box::new(JsonlOutlet::new(&path)), options());
    let start = TagTime { seconds: 10, fraction: 0 };
    bench.mock.tag("in", 0, keys::RX_TIME, start);
    bench.mock.tag("in", 0, keys::RX_RATE_HZ, 8.0);
    // Within the second message: the message comes first, and has the time from before.
    let late = TagTime { seconds: 20, fraction: 0 };
    bench.mock.tag("in", 5, keys::LOSS_ITEMS, 7u64);
    bench.mock.tag("in", 5, keys::RX_TIME, late);
    bench.mock.feed("in", &[1u8, 2, 3, 4, 5, 6, 7, 8, 9]);
    bench.mock.run().unwrap();
    bench.mock.send("event", "a \"note\"").unwrap();
    assert!(!path.exists(), "it has its name when it is complete");
    let ledger = bench.end();
    assert_eq!((ledger.offered, ledger.acknowledged), (8, 8));
    let lines = lines(&path);
    let brief: Vec<_> = lines
        .iter()
        .map(|line| (line["kind"].as_str().unwrap(), &line["item"], line["time"].as_str()))
        .collect();
    let (zero, four, five, eight) = (json!(0), json!(4), json!(5), json!(8));
    assert_eq!(
        brief,
        [
            ("tag", &zero, Some("10.000000000")),
            ("tag", &zero, Some("10.000000000")),
            ("packet", &zero, Some("10.000000000")),
            ("packet", &four, Some("10.500000000")),
            ("tag", &five, Some("10.625000000")),
            ("tag", &five, Some("20.000000000")),
            ("event", &eight, Some("20.375000000")),
            ("packet", &eight, Some("20.375000000")),
        ]
    );
    assert_eq!(crate::numbers(&lines), Vec::from_iter(0..8));
    assert_eq!(lines[2]["data"], "AQIDBA==");
    assert_eq!((&lines[7]["data"], &lines[7]["bytes"]), (&json!("CQ=="), &json!(1)), "the rest");
    assert_eq!(lines[4]["value"], 7);
}

#[test]
fn metrics_are_published_when_they_are_due() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    let every = std::time::Duration::from_secs(1);
    let settings = PublishOptions { metrics_every: every, items: 0, ..options() };
    let mut bench = Bench::new(Box::new(JsonlOutlet::new(&path)), settings);
    for ms in [500, 1000, 1900, 2000] {
        let elapsed = std::time::Duration::from_millis(ms);
        bench.publications.feed(elapsed, || json!({ "ms": ms }).to_string());
    }
    bench.mock.feed("in", &[0u8; 100]);
    bench.mock.run().unwrap();
    assert_eq!(bench.end().acknowledged, 2, "no items, as they were not wanted");
    let metrics: Vec<_> = lines(&path).iter().map(|line| line["metrics"]["ms"].clone()).collect();
    assert_eq!(metrics, [1000, 2000]);
}

#[test]
fn a_file_that_cannot_be_written_ends_the_graph_at_its_start() {
    let mut bench =
        Bench::new(Box::new(JsonlOutlet::new(Path::new("/no/such/out.jsonl"))), options());
    bench.mock.feed("in", &[0u8; 4]);
    let error = bench.mock.run().unwrap_err().to_string();
    let expected = "cannot write /no/such/out.jsonl: ";
    assert!(error.starts_with(expected) && error.ends_with("; make its folder first"), "{error}");
}

#[test]
fn a_sink_does_not_allocate_while_it_works() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    let mut bench = Bench::new(Box::new(JsonlOutlet::new(&path)), options());
    bench.publish(0..100);
    let mut counted = 0;
    for round in 0..20 {
        let bytes: Vec<u8> = (0..100u32).flat_map(u32::to_le_bytes).collect();
        bench.mock.feed("in", &bytes);
        bench.mock.tag("in", 400 + 400 * round, keys::LOSS_CAUSE, 1.5);
        let before = allocations();
        bench.mock.call().unwrap();
        counted += allocations() - before;
    }
    assert_eq!(counted, 0);
    assert_eq!(bench.end().acknowledged, 100 + 20 * 101);
}
