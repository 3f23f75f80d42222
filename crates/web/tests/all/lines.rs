//! Lines, statuses and events of a client that behaves.

use crate::bench::{Bench, CENTRE_HZ, RATE_HZ, TONE_HZ};
use serde_json::json;
use std::time::Duration;

#[test]
fn a_tone_is_at_its_bin_and_lines_say_what_they_show() {
    let bench = Bench::usual();
    let mut client = bench.open();
    let hello = client.text("hello");
    assert_eq!((&hello["protocol"], &hello["verb"]), (&json!("millstream.v1"), &json!("test")));
    assert_eq!(hello["streams"][0]["name"], "tone");
    for (bins, format) in [(64, "u8"), (1024, "f32"), (4096, "u8")] {
        let wish = json!({
            "type": "subscribe", "stream": 0, "bins": bins, "lines_per_s": 20, "format": format,
        });
        client.say(&wish);
        let mut lines = vec![];
        while lines.len() < 4 {
            let line = client.line();
            if line.bins == bins {
                lines.push(line);
            }
        }
        for line in &lines {
            let (hz, level) = line.peak();
            assert!((hz - CENTRE_HZ - TONE_HZ).abs() <= RATE_HZ / f64::from(bins), "{hz}");
            assert!((level + 20.0).abs() < 2.0, "{level} dB, {bins} bins");
            assert_eq!((line.levels.len(), line.span_hz), (bins as usize, RATE_HZ));
            assert_eq!((line.flags, line.ticks), (2, 1_000_000 + line.item));
        }
        for pair in lines.windows(2) {
            let [before, line] = pair else { unreachable!() };
            assert_eq!(line.seq, before.seq + 1 + (line.dropped - before.dropped));
            assert!(line.item >= before.item + u64::from(bins), "no sample is in two lines");
            if line.dropped == before.dropped {
                let passed = line.item - before.item;
                let share = f64::from(bins) / passed as f64;
                assert!((f64::from(line.share) - share).abs() < 1e-3, "{} {share}", line.share);
            }
        }
    }
    client.say(&json!({"type": "unsubscribe", "stream": 0}));
    // Lines on their way may still come before the second status from here.
    client.text("status");
    let status = client.text("status");
    let sent = status["server"]["lines_sent"].as_u64().unwrap();
    assert!(sent >= 12);
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(bench.document("/api/status")["server"]["lines_sent"], sent, "no wish, no line");
}

#[test]
fn gaps_are_events_with_their_time_and_flags_of_lines() {
    let bench = Bench::new("0", false, true);
    let mut client = bench.open();
    client.say(&json!({"type": "subscribe", "stream": 0, "bins": 64, "lines_per_s": 60}));
    let (mut gap, mut flagged) = (None, None);
    while gap.is_none() || flagged.is_none() {
        match client.next() {
            tungstenite::Message::Text(text) => {
                let value: serde_json::Value = serde_json::from_str(text.as_str()).unwrap();
                if value["type"] == "events" {
                    gap = gap.or_else(|| value["events"].get(0).cloned());
                }
            }
            tungstenite::Message::Binary(bytes) if bytes[3] & 1 != 0 => flagged = Some(bytes),
            _ => (),
        }
    }
    let gap = gap.unwrap();
    assert_eq!(
        (&gap["kind"], &gap["stream"], &gap["items"]),
        (&json!("gap"), &json!(0), &json!(500))
    );
    let (item, ticks) = (gap["item"].as_u64().unwrap(), gap["ticks"].as_u64().unwrap());
    assert_eq!((item % 1000, gap["lost"]["network_loss"].as_u64()), (0, Some(500)));
    let second = item / 200_000 + 1;
    assert_eq!(ticks, 1_000_000 + item + 500 * second);
    // A client that comes later gets it, too.
    assert_eq!(bench.open().text("events")["events"][0]["item"], gap["item"]);
}

#[test]
fn documents_are_those_of_the_socket() {
    let bench = Bench::usual();
    let status = bench.document("/api/status");
    assert_eq!((&status["type"], &status["server"]["clients"]), (&json!("status"), &json!(0)));
    assert_eq!(bench.document("/api/hello")["streams"][0]["rate_hz"], RATE_HZ);
    assert_eq!(bench.document("/api/events")["type"], "events");
    let _client = bench.open();
    assert_eq!(bench.document("/api/status")["server"]["clients"], 1);
    let report = bench.document("/api/report");
    let members: Vec<_> = report.as_object().unwrap().keys().cloned().collect();
    assert_eq!(members, ["command", "environment", "results"]);
    let metrics = bench.get("/metrics", "");
    assert!(metrics.contains("# TYPE millstream_dashboard_clients gauge"), "{metrics}");
    let page = bench.get("/", "");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html"), "{page}");
    let etag = page.lines().find_map(|line| line.strip_prefix("ETag: ")).unwrap();
    let again = bench.get("/", &format!("If-None-Match: {etag}\r\n"));
    assert!(again.starts_with("HTTP/1.1 304 "), "{again}");
}

#[test]
fn what_is_set_needs_the_run_to_allow_it() {
    let wish = json!({"type": "control", "id": 5, "target": "tone", "name": "gain", "value": 2.5});
    let bench = Bench::usual();
    let mut client = bench.open();
    client.say(&wish);
    let reply = client.text("reply");
    assert_eq!((&reply["id"], &reply["ok"]), (&json!(5), &json!(false)));
    assert!(reply["text"].as_str().unwrap().contains("--web-control"));
    assert!(bench.server.board().take_control().is_none());

    let bench = Bench::new("0", true, false);
    let mut client = bench.open();
    client.say(&wish);
    let request = loop {
        if let Some(request) = bench.server.board().take_control() {
            break request;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!((request.target.as_str(), &request.value), ("tone", &json!(2.5)));
    bench.server.board().reply(&request, Ok("done".to_owned()));
    assert_eq!(client.text("reply"), json!({"type": "reply", "id": 5, "ok": true, "text": "done"}));
}
