//! `--web-control`: what a browser changes.

use super::rx;
use crate::common::page::{Page, control, say, text};
use crate::common::{Radio, Running, command, eventually, millstream};
use serde_json::{Value, json};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;
use tungstenite::{Message, WebSocket};

/// A radio that waits seconds for a host without a CPU.
const PATIENT: &str = "--rx-buffer-samples";
const BUFFER: &str = "16777216";

/// Starts a flowgraph with its dashboard.
pub fn run_graph(folder: &Path, file: &str) -> (Running, Page) {
    std::fs::write(folder.join("g.toml"), file).unwrap();
    let running = Running::start(command(folder, &["run", "--json", "g.toml", "--web", "0"]));
    let page = Page::of(&running);
    (running, page)
}

/// Writes a scene with one tone.
fn write_scene(folder: &Path) {
    let scene = "[[station]]\nkind = 'tone'\nfrequency = 98.6e6\nlevel = -20\n";
    std::fs::write(folder.join("scene.toml"), scene).unwrap();
}

#[test]
fn a_radio_is_tuned_from_the_page_and_the_tone_moves() {
    let folder = tempfile::tempdir().unwrap();
    write_scene(folder.path());
    let device = ["--device", "e320", "--scene", "scene.toml"];
    let radio = Radio::start(folder.path(), &device);
    let more = ["--freq", "98.5e6", "--web", "0", "--web-control"];
    let running = rx(folder.path(), &radio, &more);
    let page = Page::of(&running);
    let mut socket = page.socket();
    text(&mut socket, "hello");
    say(&mut socket, &json!({"type": "subscribe", "stream": 0, "bins": 1024, "lines_per_s": 10}));
    assert!((tone_hz(&mut socket, 98.5e6) - 98.6e6).abs() <= 1e6 / 1024.0);
    say(&mut socket, &control("radio", "freq_hz", json!(98.8e6)));
    assert_eq!(text(&mut socket, "reply")["ok"], true);
    retuned(&mut socket, 0);
    assert!((tone_hz(&mut socket, 98.8e6) - 98.6e6).abs() <= 1e6 / 1024.0);
    running.signal(libc::SIGINT);
    running.wait().succeeds();
    radio.stop();
}

fn ledger(page: &Page) -> Value {
    page.document("/api/status")["ledgers"][0].clone()
}

/// Waits for some samples.
fn samples_come(page: &Page) {
    eventually("samples", || ledger(page)["delivered"].as_u64() > Some(10_000));
}

/// Stops a reception, waits until nothing more comes, and starts it again.
fn stop_and_start(page: &Page) {
    assert_eq!(page.set("radio", "stop", json!(true))["ok"], true);
    let mut before = ledger(page);
    eventually("nothing more comes until the start", || {
        // A status is a second old at most.
        std::thread::sleep(Duration::from_millis(1200));
        let last = std::mem::replace(&mut before, ledger(page));
        last == before
    });
    assert_eq!(page.set("radio", "start", json!(true))["ok"], true);
    eventually("more samples", || {
        ledger(page)["delivered"].as_u64() > before["delivered"].as_u64()
    });
}

#[test]
fn each_channel_is_tuned_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    write_scene(folder.path());
    let device = ["--device", "e320", "--scene", "scene.toml"];
    let radio = Radio::start(folder.path(), &device);
    let more = ["--channel", "0,1", "--freq", "98.5e6", "--web", "0", "--web-control"];
    let running = rx(folder.path(), &radio, &more);
    let page = Page::of(&running);
    let mut socket = page.socket();
    text(&mut socket, "hello");
    say(&mut socket, &json!({"type": "subscribe", "stream": 1, "bins": 1024, "lines_per_s": 10}));
    samples_come(&page);
    say(&mut socket, &control("radio", "freq_hz1", json!(98.8e6)));
    assert_eq!(text(&mut socket, "reply")["ok"], true);
    let streams = retuned(&mut socket, 1);
    assert!((streams[0]["centre_hz"].as_f64().unwrap() - 98.5e6).abs() < 100.0, "{streams}");
    assert!((tone_hz(&mut socket, 98.8e6) - 98.6e6).abs() <= 1e6 / 1024.0);
    // What cannot change while it runs is refused, and so is a channel that is not received.
    for (name, why) in [("rate_hz", "have one rate"), ("freq_hz2", "has no `freq_hz2`; ")] {
        say(&mut socket, &control("radio", name, json!(1e6)));
        let reply = text(&mut socket, "reply");
        assert!(reply["ok"] == false && reply["text"].as_str().unwrap().contains(why), "{reply}");
    }
    // The times of a busy emulated radio's samples are behind its clock, but not behind a start.
    stop_and_start(&page);
    running.signal(libc::SIGINT);
    running.wait().succeeds();
    // The recordings say where their samples come from.
    for (channel, last_hz) in [(0, 98.5e6), (1, 98.8e6)] {
        let meta = std::fs::read(folder.path().join(format!("a-ch{channel}.sigmf-meta"))).unwrap();
        let meta: Value = serde_json::from_slice(&meta).unwrap();
        let captures = meta["captures"].as_array().unwrap().iter();
        let hz: Vec<_> = captures.map(|one| one["core:frequency"].as_f64().unwrap()).collect();
        let near = |hz: f64, wanted_hz: f64| (hz - wanted_hz).abs() < 100.0;
        assert!(near(hz[0], 98.5e6) && near(*hz.last().unwrap(), last_hz), "{meta}");
    }
    radio.stop();
}

#[test]
fn a_reception_is_stopped_and_goes_on_in_a_capture_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &["--rx-antenna", "noise", PATIENT, BUFFER]);
    let running = rx(folder.path(), &radio, &["--web", "0", "--web-control"]);
    let page = Page::of(&running);
    samples_come(&page);
    stop_and_start(&page);
    running.signal(libc::SIGINT);
    let results = &running.wait().succeeds().json()["results"];
    assert_eq!((&results["segments"], &results["ledger"]["balances"]), (&json!(2), &json!(true)));
    let lost = results["ledger"]["lost"].as_object().unwrap();
    assert!(lost.values().all(|lost| lost.as_u64() == Some(0)), "{lost:?}");
    let meta = std::fs::read(folder.path().join("a.sigmf-meta")).unwrap();
    let meta: Value = serde_json::from_slice(&meta).unwrap();
    let index = |capture: usize, name: &str| meta["captures"][capture][name].as_u64().unwrap();
    let passed = index(1, "core:global_index") - index(0, "core:global_index");
    let missing = passed - index(1, "core:sample_start");
    assert!(missing > 0, "{meta}");
    assert_eq!(meta["annotations"][0]["core:label"], "stopped by the user");
    let comment = format!("{missing} samples missing before this one");
    assert_eq!(meta["annotations"][0]["core:comment"], comment.as_str());
    radio.stop();
}

#[test]
fn a_reception_that_keeps_nothing_takes_another_rate() {
    let folder = tempfile::tempdir().unwrap();
    write_scene(folder.path());
    let scene = ["--device", "e320", "--scene", "scene.toml", PATIENT, BUFFER];
    let radio = Radio::start(folder.path(), &scene);
    let args = ["rx", "--json", "--args", &radio.args(), "--rate", "1e6", "--freq", "98.5e6"];
    let more = ["--channel", "0,1", "--out", "/dev/null", "--web", "0", "--web-control"];
    let running = Running::start(command(folder.path(), &[&args[..], &more].concat()));
    let page = Page::of(&running);
    let mut socket = page.socket();
    text(&mut socket, "hello");
    say(&mut socket, &json!({"type": "subscribe", "stream": 1, "bins": 1024, "lines_per_s": 10}));
    assert!((tone_hz(&mut socket, 98.5e6) - 98.6e6).abs() <= 1e6 / 1024.0);
    say(&mut socket, &control("radio", "rate_hz", json!(500e3)));
    while text(&mut socket, "hello")["streams"][1]["rate_hz"] != 500e3 {}
    // At another span the tone is at the same frequency.
    assert!((tone_hz(&mut socket, 98.5e6) - 98.6e6).abs() <= 500e3 / 1024.0);
    say(&mut socket, &control("radio", "rate_hz", json!(300_001.0)));
    eventually("a refusal", || {
        let events = page.document("/api/events").to_string();
        let nearest = "the nearest at its clock of 16000000 Hz is ";
        events.contains(&format!("the radio has no sample rate of 300001 Hz: {nearest}"))
    });
    running.signal(libc::SIGINT);
    let results = &running.wait().succeeds().json()["results"];
    assert_eq!(results["segments"], 2, "{results}");
    for channel in results["channels"].as_array().unwrap() {
        assert_eq!(channel["ledger"]["balances"], true, "{channel}");
    }
    radio.stop();
}

/// The streams of the hello that tells of 98.8 MHz; others may come before, such as that of the
/// plan.
fn retuned(socket: &mut WebSocket<TcpStream>, stream: usize) -> Value {
    loop {
        let hello = text(socket, "hello");
        let centre_hz = hello["streams"][stream]["centre_hz"].as_f64().unwrap_or(0.0);
        if (centre_hz - 98.8e6).abs() < 100.0 {
            return hello["streams"].clone();
        }
    }
}

/// The frequency of the strongest bin of a line around `centre_hz`, once samples are from there.
fn tone_hz(socket: &mut WebSocket<TcpStream>, centre_hz: f64) -> f64 {
    let mut seen = 0;
    loop {
        let Message::Binary(line) = socket.read().unwrap() else { continue };
        let f64_at = |at: usize| f64::from_le_bytes(line[at..at + 8].try_into().unwrap());
        // The radio takes the nearest frequency that it has.
        seen += usize::from((f64_at(32) - centre_hz).abs() < 100.0);
        // The first lines after tuning may be of samples from before.
        if seen == 10 {
            let values = &line[72..];
            let strongest = (0..values.len()).max_by_key(|bin| values[*bin]).unwrap();
            return centre_hz + (strongest as f64 / values.len() as f64 - 0.5) * f64_at(40);
        }
    }
}

#[test]
fn an_emulated_radio_shows_what_it_sends_where_a_host_tunes_it() {
    let folder = tempfile::tempdir().unwrap();
    write_scene(folder.path());
    let device = ["--device", "e320", "--scene", "scene.toml", "--web", "0"];
    let (radio, _) = Radio::start_and_hear(folder.path(), &device);
    let page = Page::of(&radio.running);
    let mut socket = page.socket();
    let names = |streams: &Value| {
        let streams = streams.as_array().unwrap().iter();
        streams.map(|stream| stream["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&text(&mut socket, "hello")["streams"]), ["rx0", "rx1"]);
    say(&mut socket, &json!({"type": "subscribe", "stream": 1, "bins": 1024, "lines_per_s": 10}));
    let running = rx(folder.path(), &radio, &["--channel", "1", "--freq", "98.8e6"]);
    let streams = loop {
        let streams = text(&mut socket, "hello")["streams"].clone();
        if (streams[1]["centre_hz"].as_f64().unwrap_or(0.0) - 98.8e6).abs() < 100.0 {
            break streams;
        }
    };
    assert_eq!((&streams[1]["rate_hz"], &streams[0]["rate_hz"]), (&json!(1e6), &Value::Null));
    assert!((tone_hz(&mut socket, 98.8e6) - 98.6e6).abs() <= 1e6 / 1024.0);
    running.signal(libc::SIGINT);
    running.wait().succeeds();
    radio.stop();
}

#[test]
fn an_emulated_radio_takes_faults_from_its_page() {
    let folder = tempfile::tempdir().unwrap();
    let (radio, said) = Radio::start_and_hear(
        folder.path(),
        &["--rx-antenna", "noise", "--web", "0", "--web-control"],
    );
    assert!(said.is_empty(), "{said:?}");
    let page = Page::of(&radio.running);
    let mut socket = page.socket();
    say(&mut socket, &control("faults", "add", json!("lose to_host data skip=5 count=1")));
    assert_eq!(text(&mut socket, "reply")["ok"], true);
    let args = ["rx", "--json", "--args", &radio.args(), "--rate", "1e6", "--nsamps", "100000"];
    let outcome = millstream(folder.path(), &[&args[..], &["--out", "a.sc16"]].concat());
    let results = &outcome.succeeds().json()["results"];
    assert!(results["ledger"]["lost"]["network_loss"].as_u64() > Some(0), "{results}");
    eventually("the counters", || {
        let status = text(&mut socket, "status");
        status["blocks"][0]["metrics"]
            .as_object()
            .is_some_and(|all| all.values().any(|value| value.as_u64() > Some(0)))
    });
    radio.stop();
}

#[test]
fn a_recording_is_stopped_and_goes_on_at_another_time() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &["--rx-antenna", "noise"]);
    rx(folder.path(), &radio, &["--nsamps", "200000", "--freq", "1e9"]).wait().succeeds();
    radio.stop();
    let view = ["view", "a.sigmf-meta", "--web", "0", "--web-control"];
    let running = Running::start(command(folder.path(), &view));
    let page = Page::of(&running);
    let mut socket = page.socket();
    let hello = text(&mut socket, "hello");
    let seek = |control: &&Value| control["name"] == "position_s";
    let seek = hello["controls"].as_array().unwrap().iter().find(seek).unwrap().clone();
    assert_eq!((&seek["min"], &seek["max"]), (&json!(0.0), &json!(0.2)));
    let shown = |page: &Page| page.document("/api/status")["blocks"][2]["items_in"].as_u64();
    // At its end the run goes on, because it can go back.
    eventually("all samples", || shown(&page) == Some(200_000));
    let mut ask = |target: &str, name: &str, value: Value| {
        say(&mut socket, &control(target, name, value));
        text(&mut socket, "reply")["ok"] == true
    };
    assert!(ask("clock", "stop", json!(true)) && ask("recording", "position_s", json!(0.05)));
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(shown(&page), Some(200_000), "nothing passes until the start");
    assert!(ask("clock", "start", json!(true)));
    eventually("three quarters again", || shown(&page) == Some(350_000));
    // The block refuses a time that is not there; the reason is an event.
    assert!(ask("recording", "position_s", json!(7)));
    eventually("a refusal", || {
        let events = page.document("/api/events").to_string();
        events.contains("the recording has 0 to 0.2 s, but got 7 s")
    });
    assert!(!ask("recording", "start", json!(true)));
    running.signal(libc::SIGINT);
    running.wait().succeeds();
}

#[test]
fn a_transmission_shows_what_it_sends_and_is_held() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.sc16"), vec![1; 4 * 100_000]).unwrap();
    let radio = Radio::start(folder.path(), &[]);
    let args = ["tx", "--json", "--args", &radio.args(), "--rate", "1e6", "--in", "a.sc16"];
    let more = ["--repeat", "0", "--scale", "0.5", "--web", "0", "--web-control"];
    let running = Running::start(command(folder.path(), &[&args[..], &more].concat()));
    let page = Page::of(&running);
    let mut socket = page.socket();
    text(&mut socket, "hello");
    say(&mut socket, &json!({"type": "subscribe", "stream": 0, "bins": 256, "format": "f32"}));
    let line = loop {
        if let Message::Binary(line) = socket.read().unwrap() {
            break line;
        }
    };
    // Every sample is 257 + 257i, halved.
    let level = f32::from_le_bytes(line[72 + 4 * 128..][..4].try_into().unwrap());
    let wanted = 20.0 * (0.5 * 257.0 * 2f32.sqrt() / 32768.0).log10();
    assert!((level - wanted).abs() < 0.1, "{level} dBFS, not {wanted} dBFS");
    say(&mut socket, &control("radio", "stop", json!(true)));
    assert_eq!(text(&mut socket, "reply")["ok"], true);
    let mut before = ledger(&page);
    eventually("nothing more is sent until the start", || {
        std::thread::sleep(Duration::from_millis(600));
        let last = std::mem::replace(&mut before, ledger(&page));
        last == before && before["delivered"].as_u64() > Some(0)
    });
    say(&mut socket, &control("radio", "start", json!(true)));
    assert_eq!(text(&mut socket, "reply")["ok"], true);
    eventually("more samples", || {
        ledger(&page)["delivered"].as_u64() > before["delivered"].as_u64()
    });
    say(&mut socket, &control("radio", "freq_hz", json!(true)));
    assert_eq!(text(&mut socket, "reply")["ok"], false);
    let latency = page.document("/api/status")["latencies"][0].clone();
    assert!(latency["count"].as_u64() > Some(0), "{latency}");
    assert_eq!(
        (&latency["name"], &latency["stream"]),
        (&json!("transmit_delay"), &json!("radio.in"))
    );
    // What comes by the page and at the end has one shape.
    let shown = page.document("/api/report")["results"].clone();
    running.signal(libc::SIGINT);
    let results = &running.wait().succeeds().json()["results"];
    let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&shown), names(results));
    assert_eq!(names(&shown["ledger"]), names(&results["ledger"]));
    radio.stop();
}

#[test]
fn a_graph_that_transmits_shows_the_ledger_of_its_samples_and_their_delay() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &[]);
    let file = format!(
        "[[block]]
        name = 'tone'
        type = 'signal_source'
        item = 'cf32'
        rate_hz = 1e6
        frequency_hz = 1e5
        [[block]]
        name = 'sender'
        type = 'radio_tx'
        args = '{}'
        rate_hz = 1e6
        [graph]
        connections = ['tone -> sender']",
        radio.args()
    );
    let (running, page) = run_graph(folder.path(), &file);
    eventually("samples and delays", || {
        let status = page.document("/api/status");
        let (ledger, delay) = (&status["ledgers"][0], &status["latencies"][0]);
        assert!(ledger.is_null() || ledger["balances"] == true, "{status}");
        let has_delay = delay["name"] == "transmit_delay" && delay["stream"] == "sender.in";
        let is_sent = ledger["delivered"].as_u64() > Some(0) && ledger["held"].is_u64();
        is_sent && has_delay && delay["count"].as_u64() > Some(0)
    });
    running.signal(libc::SIGINT);
    running.wait().succeeds();
    radio.stop();
}
