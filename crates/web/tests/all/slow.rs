//! Clients that do not keep up: they lose lines, and nobody else loses anything.

use crate::bench::{Bench, PATIENCE};
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn a_client_that_never_reads_loses_lines_and_the_stream_nothing() {
    let bench = Bench::usual();
    let mut asleep = bench.open();
    let wish = json!({
        "type": "subscribe", "stream": 0, "bins": 2048, "lines_per_s": 60, "format": "f32",
    });
    asleep.say(&wish);
    let mut awake = bench.open();
    awake.say(&json!({"type": "subscribe", "stream": 0, "bins": 256, "lines_per_s": 30}));
    let began = Instant::now();
    let dropped = loop {
        let status = awake.text("status");
        let dropped = status["server"]["lines_dropped"].as_u64().unwrap();
        if dropped > 20 {
            break dropped;
        }
        assert!(began.elapsed() < PATIENCE, "{}", status["server"]);
    };
    let passed = bench.passed();
    awake.line();
    // The stream went on in real time, as far as the machine let it.
    let began = Instant::now();
    while bench.passed() < passed + 20_000 {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
    // When it wakes up, it sees what it missed.
    let mut line = asleep.line();
    while line.dropped == 0 {
        line = asleep.line();
    }
    assert!(u64::from(line.dropped) <= dropped + 10_000);
    assert!(line.seq >= line.dropped);
}

#[test]
fn the_end_of_the_run_is_told_to_everyone() {
    let mut bench = Bench::usual();
    let mut client = bench.open();
    client.text("hello");
    bench.running.take().unwrap().abandon(Duration::from_secs(1));
    let url = bench.server.url().to_owned();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    let board = bench.server.board().clone();
    let report = std::sync::Arc::new(|| json!({"run": 1}));
    board.publish(millstream_web::Status { ended: true, ..Default::default() }, report);
    assert_eq!(bench.document("/api/report")["results"], json!({"run": 1}));
    drop(bench);
    let began = Instant::now();
    while client.text("status")["ended"] != true {
        assert!(began.elapsed() < PATIENCE);
    }
    assert_eq!(client.close_code(), 1001);
}
