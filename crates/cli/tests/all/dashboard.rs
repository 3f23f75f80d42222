//! `--web`: what a browser, a script and Prometheus get from a running command.

mod control;

use crate::common::page::{Page, promtool_is_content, say, text};
use crate::common::{Radio, Running, command, eventually, graph, millstream};
use millstream_dsp::chunks::Chunks;
use serde_json::{Value, json};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;
use tungstenite::{Message, WebSocket};

/// The sum of the samples of a family of metrics.
fn sum(metrics: &str, family: &str) -> u64 {
    let of_family = |line: &&str| line.strip_prefix(family).is_some_and(|l| l.starts_with('{'));
    let values = metrics.lines().filter(of_family).map(|line| line.rsplit(' ').next().unwrap());
    values.map(|value| value.parse::<u64>().unwrap()).sum()
}

fn rx(folder: &Path, radio: &Radio, more: &[&str]) -> Running {
    let args = radio.args();
    let usual = ["rx", "--json", "--args", &args, "--rate", "1e6", "--out", "a.sigmf-meta"];
    Running::start(command(folder, &[&usual[..], more].concat()))
}

#[test]
fn what_is_sent_is_what_arrives_and_what_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let faults = ["--rx-antenna", "tone:1e5,0.5", "--fault", "lose to_host data p=0.02 seed=7"];
    let radio = Radio::start(folder.path(), &faults);
    let running = rx(folder.path(), &radio, &["--freq", "98.5e6", "--web", "0"]);
    let page = Page::of(&running);
    let mut scrapes = 0;
    eventually("ten scrapes with losses", || {
        let metrics = page.get("/metrics");
        let (all, arrived) = (
            sum(&metrics, "millstream_samples_total"),
            sum(&metrics, "millstream_samples_delivered_total"),
        );
        let lost = sum(&metrics, "millstream_samples_lost_total");
        assert_eq!(all, arrived + lost, "{metrics}");
        scrapes += usize::from(lost > 0);
        if scrapes == 10 {
            promtool_is_content(&metrics);
        }
        std::thread::sleep(Duration::from_millis(100));
        scrapes >= 10
    });
    // The tone is at its bin, at the tuned place.
    let mut socket = page.socket();
    let hello = text(&mut socket, "hello");
    assert_eq!((&hello["verb"], &hello["control"]), (&json!("rx"), &json!(false)));
    assert_eq!(hello["streams"][0]["centre_hz"], 98.5e6);
    say(&mut socket, &json!({"type": "subscribe", "stream": 0, "bins": 4096, "format": "f32"}));
    let line = loop {
        if let Message::Binary(line) = socket.read().unwrap() {
            break line;
        }
    };
    let levels: Vec<_> =
        line[72..].in_chunks().0.iter().map(|level| f32::from_le_bytes(*level)).collect();
    let strongest = (0..4096).max_by(|a, b| levels[*a].total_cmp(&levels[*b])).unwrap();
    let wanted = 2048.0 + 0.1 * 4096.0;
    assert!((strongest as f64 - wanted).abs() <= 1.0, "bin {strongest}, not {wanted}");
    assert!((levels[strongest] + 6.02).abs() < 1.5, "{} dB", levels[strongest]);
    // A gap is an event with its cause and time, and the status shows a ledger that balances.
    let events = text(&mut socket, "events");
    let gap = events["events"].as_array().unwrap().iter().find(|event| event["kind"] == "gap");
    let gap = gap.expect("a gap");
    assert!(gap["items"].as_u64() > Some(0) && gap["ticks"].is_u64(), "{gap}");
    let status = text(&mut socket, "status");
    assert_eq!(status["ledgers"][0]["balances"], true, "{status}");
    assert!(status["latencies"][0]["count"].as_u64() > Some(0), "{status}");
    running.signal(libc::SIGINT);
    // The last status says that it is over; then the connection ends.
    while text(&mut socket, "status")["ended"] != true {}
    let results = &running.wait().succeeds().json()["results"];
    assert!(results["ledger"]["lost"]["network_loss"].as_u64() > Some(0), "{results}");
    radio.stop();
}

#[test]
fn behind_a_radio_with_another_time_nothing_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let radio = Radio::start(folder.path(), &["--rx-antenna", "noise", "--time-scale", "0.5"]);
    let running = rx(folder.path(), &radio, &["--web", "0"]);
    let page = Page::of(&running);
    eventually("samples", || {
        let status = page.document("/api/status");
        assert_eq!(status["latencies"], json!([]), "{status}");
        status["ledgers"][0]["delivered"].as_u64() > Some(500_000)
    });
    running.signal(libc::SIGINT);
    let outcome = running.wait();
    assert!(outcome.succeeds().stderr.contains("the dashboard shows no delays"), "{outcome:?}");
    radio.stop();
}

#[test]
fn a_graph_behind_a_radio_with_another_time_shows_no_delays() {
    let folder = tempfile::tempdir().unwrap();
    for (scale, is_shown) in [("1", true), ("0.5", false)] {
        let radio = Radio::start(folder.path(), &["--rx-antenna", "noise", "--time-scale", scale]);
        let file = format!(
            "[[block]]
            name = 'radio'
            type = 'radio_rx'
            args = '{}'
            rate_hz = 1e6
            [[block]]
            name = 'sink'
            type = 'null_sink'
            item = 'cf32'
            [graph]
            connections = ['radio -> sink']",
            radio.args()
        );
        let (running, page) = control::run_graph(folder.path(), &file);
        eventually("samples", || {
            let status = page.document("/api/status");
            let delivered = status["ledgers"][0]["delivered"].as_u64();
            assert!(is_shown || status["latencies"] == json!([]), "{status}");
            delivered > Some(200_000) && (status["latencies"] != json!([])) == is_shown
        });
        let events = page.document("/api/events").to_string();
        let told = events.contains("the radio's clock runs 0.");
        assert_eq!(told, !is_shown, "{events}");
        running.signal(libc::SIGINT);
        running.wait().succeeds();
        radio.stop();
    }
}

#[test]
fn a_graph_is_shown_with_its_loads_and_obeys_only_if_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let file = "
        [[block]]
        name = 'tone'
        type = 'signal_source'
        item = 'cf32'
        rate_hz = 1e6
        frequency_hz = 1e5
        [[block]]
        name = 'clock'
        type = 'throttle'
        item = 'cf32'
        rate_hz = 1e6
        [[block]]
        name = 'gain'
        type = 'multiply_const'
        factor = 0.5
        [[block]]
        name = 'sink'
        type = 'null_sink'
        item = 'cf32'
        [graph]
        connections = ['tone -> clock -> gain -> sink']";
    std::fs::write(folder.path().join("g.toml"), file).unwrap();
    for may in [false, true] {
        let mut args = vec!["run", "--json", "g.toml", "--web", "0"];
        args.extend(if may { &["--web-control", "--plan", "measured"][..] } else { &[] });
        let running = Running::start(command(folder.path(), &args));
        let page = Page::of(&running);
        let mut socket = page.socket();
        let hello = text(&mut socket, "hello");
        assert_eq!(hello["graph"]["blocks"].as_array().unwrap().len(), 4);
        assert_eq!(hello["streams"][0]["rate_hz"], 1e6, "{hello}");
        let (mut loads, mut cpu) = (0.0, 0.0);
        for _ in 0..6 {
            let status = text(&mut socket, "status");
            let total = |list: &str| -> f64 {
                status[list]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|one| one["load"].as_f64().unwrap())
                    .sum()
            };
            (loads, cpu) = (loads + total("blocks"), cpu + total("partitions"));
        }
        assert!(loads > 0.0 && loads <= cpu * 1.001, "blocks {loads}, threads {cpu}");
        check_expected_load(&mut socket, &page, may);
        let message = json!({
            "type": "control", "id": 1, "target": "gain", "name": "factor", "value": 0.25,
        });
        say(&mut socket, &message);
        let reply = text(&mut socket, "reply");
        assert_eq!(reply["ok"], may, "{reply}");
        let report = page.document("/api/report");
        assert_eq!(report["results"]["run"]["blocks"][0]["name"], "tone");
        if may {
            let wrong = json!({
                "type": "control", "id": 2, "target": "gain", "name": "factor", "value": "loud",
            });
            say(&mut socket, &wrong);
            assert_eq!(text(&mut socket, "reply")["ok"], false);
            let stop =
                json!({"type": "control", "id": 3, "target": "run", "name": "stop", "value": true});
            say(&mut socket, &stop);
        } else {
            running.signal(libc::SIGINT);
        }
        let results = &running.wait().succeeds().json()["results"];
        assert_eq!(results["run"]["interrupted"], true);
    }
}

/// The expected load of `gain` is its cost in the plan at the rate of its items. The throttle waits
/// in its calls, so its cost is not known; without measured costs no block has an expected load.
fn check_expected_load(socket: &mut WebSocket<TcpStream>, page: &Page, measured: bool) {
    let hello = page.document("/api/hello");
    let cost_ns = hello["plan"]["ns_per_item"]["gain"].as_f64();
    assert_eq!(cost_ns.is_some(), measured, "{hello}");
    // A status that was replaced by a later one is missing in the sum: then once more.
    let close = |(core_s, wanted_s): &(f64, f64)| {
        assert_eq!(*wanted_s > 0.0, measured);
        (core_s - wanted_s).abs() <= 0.2 * wanted_s
    };
    let mut tries = (0..20).map(|_| loads_of_four(socket, cost_ns.unwrap_or(0.0)));
    assert!(tries.any(|sums| close(&sums)), "the expected load is not that of the cost");
}

/// The core time of `gain` over four statuses, by its expected load and by its cost, seconds.
fn loads_of_four(socket: &mut WebSocket<TcpStream>, cost_ns: f64) -> (f64, f64) {
    let first = text(socket, "status");
    let (mut last, mut core_s) = (first.clone(), 0.0);
    for _ in 0..4 {
        let status = text(socket, "status");
        let block = |name| &status["blocks"][name];
        assert!(block(1)["name"] == "clock" && block(1)["expected_load"].is_null(), "{status}");
        let between_s = status["elapsed_s"].as_f64().unwrap() - last["elapsed_s"].as_f64().unwrap();
        core_s += block(2)["expected_load"].as_f64().unwrap_or(0.0) * between_s;
        last = status;
    }
    let items = |status: &Value| status["blocks"][2]["items_in"].as_f64().unwrap();
    (core_s, cost_ns * (items(&last) - items(&first)) / 1e9)
}

#[test]
fn a_recording_is_shown_with_its_gaps_and_its_end_is_not_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let faults = ["--rx-antenna", "noise", "--fault", "lose to_host data skip=20 count=1"];
    let radio = Radio::start(folder.path(), &faults);
    rx(folder.path(), &radio, &["--nsamps", "500000", "--freq", "1e9"]).wait().succeeds();
    radio.stop();
    let view = ["view", "a.sigmf-meta", "--json", "--web", "0", "--time-scale", "0.5"];
    let running = Running::start(command(folder.path(), &view));
    let page = Page::of(&running);
    let mut socket = page.socket();
    assert_eq!(text(&mut socket, "hello")["streams"][0]["centre_hz"], 1e9);
    let gap = loop {
        let events = text(&mut socket, "events");
        let all = events["events"].as_array().unwrap().clone();
        if let Some(gap) = all.into_iter().find(|event| event["kind"] == "gap") {
            break gap;
        }
    };
    assert!(gap["items"].as_u64() > Some(0) && gap["item"].as_u64() > Some(0), "{gap}");
    while text(&mut socket, "status")["ended"] != true {}
    running.line("the recording has ended");
    assert_eq!(page.document("/api/report")["results"]["run"]["blocks"][0]["name"], "recording");
    running.signal(libc::SIGINT);
    let results = &running.wait().succeeds().json()["results"];
    assert_eq!(results["samples"].as_u64(), results["run"]["blocks"][0]["items_out"].as_u64());
}

#[test]
fn a_transmission_shows_its_ledger() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.sc16"), vec![1; 4 * 100_000]).unwrap();
    let radio = Radio::start(folder.path(), &[]);
    let args = ["tx", "--json", "--args", &radio.args(), "--rate", "1e6", "--in", "a.sc16"];
    let running = Running::start(command(
        folder.path(),
        &[&args[..], &["--repeat", "0", "--web", "0"]].concat(),
    ));
    let page = Page::of(&running);
    eventually("transmitted samples", || {
        let status = page.document("/api/status");
        let ledger = &status["ledgers"][0];
        let number = |name: &str| ledger[name].as_u64().unwrap_or(0);
        let lost: u64 =
            ledger["lost"].as_object().into_iter().flatten().filter_map(|one| one.1.as_u64()).sum();
        assert_eq!(number("expected"), number("delivered") + number("held") + lost, "{ledger}");
        number("delivered") > 100_000
    });
    promtool_is_content(&page.get("/metrics"));
    running.signal(libc::SIGINT);
    running.wait().succeeds();
    radio.stop();
}

#[test]
fn a_port_that_is_taken_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let outcome =
        millstream(folder.path(), &["sim", "radio", "--addr", "127.0.12.77", "--web", &port]);
    outcome.fails(1, &format!("cannot serve the dashboard at 127.0.0.1:{port}"));
    let graph = graph("spectrum.toml");
    millstream(folder.path(), &["run", &graph, "--web-control"]).fails(2, "--web <[ADDR:]PORT>");
    millstream(folder.path(), &["run", &graph, "--web", "x"]).fails(2, "write PORT");
}
