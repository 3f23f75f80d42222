//! `millstream-lab bench rate` at rates that any machine holds: its counts, not its speed.

use crate::common::{Radio, Running, command, millstream};
use std::path::Path;

/// A buffer of the radio that holds whatever a busy machine is late by.
const LARGE: [&str; 2] = ["--rx-buffer-samples", "8388608"];

/// The fewest samples of 300 000 that a measurement by the wall clock has: a busy machine comes by
/// late.
const FEWEST: u64 = 150_000;

#[test]
fn a_slow_rate_is_received_without_a_loss() {
    let args = ["--rate", "1e6", "--channel", "0,1", "--duration", "0.3", "--json"];
    let outcome = millstream(Path::new("/"), &[&["bench", "rate"][..], &args, &LARGE].concat());
    let results = outcome.succeeds().json()["results"].take();
    let measured = &results["measured"][0]["outcome"];
    assert_eq!(measured["lossless"], true, "{results}");
    assert_eq!(measured["channels"].as_array().unwrap().len(), 2);
    let mut delivered = 0;
    for channel in measured["channels"].as_array().unwrap() {
        assert_eq!((&channel["balances"], &channel["queue_drops"]), (&true.into(), &0.into()));
        assert!(channel["delivered"].as_u64().unwrap() >= FEWEST, "{channel}");
        delivered += channel["delivered"].as_u64().unwrap();
    }
    assert_eq!(measured["samples"].as_u64().unwrap(), delivered);
    assert!(measured["cpu_s_per_gigasample"].as_f64().unwrap() > 0.0);
    assert!(results["radio"]["rx_packets"].as_u64().unwrap() > 0, "the radio was ours");
}

#[test]
fn a_search_ends_at_the_highest_rate_of_its_grid_and_says_what_it_tried() {
    let radio = Radio::start(Path::new("/"), &["--any-rate", "--rx-antenna", "ramp"]);
    let args = ["bench", "rate", "--args", &radio.args(), "--search", "--step", "1e5"];
    let rest = ["--max-rate", "3e5", "--tries", "1", "--duration", "0.1", "--json"];
    let outcome = millstream(Path::new("/"), &[&args[..], &rest].concat());
    let results = outcome.succeeds().json()["results"].take();
    let found = &results["measured"][0];
    assert_eq!(found["rate_hz"], 3e5, "{results}");
    assert_eq!(found["tried"].as_array().unwrap().len(), 1, "2e5 and then 3e5");
    assert!(outcome.stderr.contains("lose nothing"), "{outcome:?}");
    assert!(outcome.stderr.contains("1 of 2: 0.2 MS/s, try 1"), "{outcome:?}");
    assert_eq!(radio.stop()["rx_overruns"], 0);
}

#[test]
fn a_device_with_two_links_is_measured_over_both() {
    let of_kind = |device, links, rate| {
        let args = ["--device", device, "--veth", links, "--rate", rate];
        let rest = ["--direction", "both", "--duration", "0.3", "--json"];
        millstream(Path::new("/"), &[&["bench", "rate"][..], &args, &rest, &LARGE].concat())
    };
    let refused = of_kind("e320", "2", "1e6");
    let error = "--veth is 2, and an e320 has one link: give --veth 1, or --device n310, n320";
    assert!(refused.stderr.contains(error), "{refused:?}");
    for (device, channels) in [("n320", 2), ("n310", 4)] {
        let outcome = of_kind(device, "2", "5e5");
        if !rustix::process::geteuid().is_root() {
            assert!(outcome.stderr.contains("run it with sudo, or leave out --veth"));
            return eprintln!("skipped: network namespaces need root here");
        }
        let results = outcome.succeeds().json()["results"].take();
        let measured = |direction: usize| &results["measured"][direction]["outcome"];
        assert_eq!(measured(0)["lossless"], true, "{results}");
        for direction in [0, 1] {
            let all = measured(direction)["channels"].as_array().unwrap();
            assert_eq!(all.len(), channels, "{results}");
            assert!(all.iter().all(|one| one["balances"] == true), "{results}");
        }
        // A busy machine may come too late with samples, but it sends all.
        for one in measured(1)["channels"].as_array().unwrap() {
            assert_eq!(one["accepted"], 150_000, "{results}");
        }
        assert!(outcome.stderr.contains(&format!("{} emulated", device.to_uppercase())));
        assert!(outcome.stderr.contains("10.77.0.2 and 10.77.1.2"), "{outcome:?}");
    }
}

#[test]
fn a_tone_is_transmitted_and_every_sample_is_in_the_books() {
    let args = ["--rate", "1e6", "--channel", "0,1", "--duration", "0.3", "--direction", "both"];
    let outcome = millstream(Path::new("/"), &[&["bench", "rate", "--json"][..], &args].concat());
    let results = outcome.succeeds().json()["results"].take();
    let measured = results["measured"].as_array().unwrap();
    assert_eq!(
        (&measured[0]["direction"], &measured[1]["direction"]),
        (&"rx".into(), &"tx".into())
    );
    for channel in measured[1]["outcome"]["channels"].as_array().unwrap() {
        assert_eq!((&channel["accepted"], &channel["balances"]), (&300_000.into(), &true.into()));
        assert!(channel["trains"].as_u64().unwrap() < 300_000 / 2_000, "many packets a call");
    }
    assert!(results["radio"]["tx_packets"].as_u64().unwrap() > 0, "the radio was ours");
}

#[test]
fn both_ways_at_once_are_in_the_books() {
    let args = ["--rate", "1e6", "--channel", "0,1", "--duration", "0.3", "--duplex"];
    let measure =
        || millstream(Path::new("/"), &[&["bench", "rate", "--json"][..], &args].concat());
    let mut outcome = measure();
    if outcome.stderr.contains("did not answer") {
        // The radio had no CPU for a second.
        outcome = measure();
    }
    let results = outcome.succeeds().json()["results"].take();
    let measured = &results["measured"][0];
    assert_eq!(measured["direction"], "duplex", "{results}");
    for channel in measured["outcome"]["rx"]["channels"].as_array().unwrap() {
        assert_eq!(channel["balances"], true, "{channel}");
        assert!(channel["expected"].as_u64().unwrap() >= FEWEST, "{channel}");
    }
    for channel in measured["outcome"]["tx"]["channels"].as_array().unwrap() {
        assert_eq!((&channel["accepted"], &channel["balances"]), (&300_000.into(), &true.into()));
    }
    for packets in ["rx_packets", "tx_packets"] {
        assert!(results["radio"][packets].as_u64().unwrap() > 0, "the radio was ours");
    }
}

#[test]
fn the_networks_mtu_decides_the_packets() {
    let args = ["--rate", "1e6", "--duration", "0.2", "--mtu", "1500", "--json"];
    // On a busy machine the echoes of larger packets may come too late.
    let found: Vec<_> = std::iter::repeat_with(|| {
        let outcome = millstream(Path::new("/"), &[&["bench", "rate"][..], &args].concat());
        let radio = outcome.succeeds().json()["results"]["radio"].take();
        let count = |name: &str| radio[name].as_u64().unwrap();
        assert!(count("discovery_oversized") > 0, "{radio}");
        // 364 samples in 1472 bytes, and perhaps a shorter packet at the end.
        let full_packets = count("rx_bytes").div_ceil(364 * 4);
        assert!(count("rx_packets") >= full_packets, "{radio}");
        (full_packets, count("rx_packets"))
    })
    .take(5)
    .take_while(|(full_packets, packets)| full_packets != packets)
    .collect();
    assert!(found.len() < 5, "the packets were never full: {found:?}");
}

#[test]
fn what_cannot_be_measured_is_refused() {
    for (args, status, part) in [
        (&["--channel", "0"][..], 2, "--rate <HZ>"),
        (&["--rate", "1e6", "--search"], 2, "cannot be used with"),
        (&["--rate", "1e6", "--duplex", "--direction", "tx"], 2, "cannot be used with"),
        (&["--rate", "1e6", "--cpu", "5000"], 2, "give the number of a CPU"),
        (&["--rate", "1e6", "--duration", "0.001"], 1, "give 0.1 to 86400 seconds"),
        (
            &["--search", "--max-rate", "1e6"],
            1,
            "--max-rate is 1000000, which is below --step 5000000: give a higher --max-rate or a \
             smaller --step",
        ),
        (&["--rate", "1e6", "--channel", "7"], 1, "channel 7"),
        (&["--rate", "1e6", "--cpu", "1023"], 1, "cannot run on CPU 1023"),
    ] {
        millstream(Path::new("/"), &[&["bench", "rate"][..], args].concat()).fails(status, part);
    }
}

#[test]
fn who_asks_for_an_end_gets_it_with_the_measurement_so_far() {
    let args = ["bench", "rate", "--json", "--no-pin", "--rate", "1e6", "--duration", "86400"];
    let running = Running::start(command(Path::new("/"), &args));
    running.line("place");
    running.signal(libc::SIGINT);
    let document = running.wait().fails(1, "interrupted").json();
    // The request may come while the radio is being opened: then nothing is measured.
    let began = !document["error"].as_str().unwrap().contains("worked on");
    let measured = &document["results"]["measured"][0]["direction"];
    assert!(!began || measured == "rx", "{document}");
}
