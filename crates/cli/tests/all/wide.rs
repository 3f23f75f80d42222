//! Several stations out of one wide recording.

use crate::common::{graph, millstream};

#[test]
fn four_stations_of_one_recording_are_received() {
    let folder = tempfile::tempdir().unwrap();
    let run = |file: &str, set: &[&str]| {
        let set: Vec<_> = set.iter().flat_map(|set| ["--set", *set]).collect();
        millstream(folder.path(), &[&["run", &graph(file), "--json"], &set[..]].concat())
            .succeeds()
            .json()["results"]
            .take()
    };
    run("atsc-wide-signal.toml", &["out=wide.cf32", "samples=7200000"]);
    // Without a device `auto` is the CPU.
    let results = run("atsc-wide.toml", &["in=wide.cf32", "out=station", "domain=auto"]);
    let signals = results["signals"].as_array().unwrap();
    assert_eq!(signals.len(), 4);
    for signal in signals {
        assert_eq!(signal["uncorrected_packets"], 0, "{signal}");
    }
    let stream = |n: usize| std::fs::read(folder.path().join(format!("station{n}.ts"))).unwrap();
    let streams = [0, 1, 2, 3].map(stream);
    for (n, stream) in streams.iter().enumerate() {
        assert!(stream.len() >= 3000 * 188, "station {n}: {} bytes", stream.len());
        assert!(stream.chunks(188).all(|packet| packet[0] == 0x47), "station {n}");
        // The stations send different packets.
        assert!(streams[..n].iter().all(|other| other != stream), "station {n}");
    }
}

#[test]
fn rate_and_latency_of_a_bank_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let set = ["--set", "rate_hz=1e6", "--set", "samples=200000", "--set", "domain=auto"];
    let run = [&["run", &graph("offload-latency.toml"), "--json"], &set[..]].concat();
    let report = millstream(folder.path(), &run).succeeds().json();
    let blocks = report["results"]["run"]["blocks"].as_array().unwrap();
    let block = |name: &str| blocks.iter().find(|block| block["name"] == name).unwrap();
    assert_eq!(block("bank")["items_in"], 200_000);
    let metrics = &block("probe")["metrics"];
    assert!(metrics["marks"].as_f64().unwrap() >= 200_000.0 / 4096.0 - 2.0, "{metrics}");
    // From a mark to the probe a bank has worked.
    let (p50, max) = (metrics["p50_ms"].as_f64().unwrap(), metrics["max_ms"].as_f64().unwrap());
    assert!(p50 > 0.0 && max >= p50, "{metrics}");
}
