//! `millstream-lab bench buffer`: the talk's figures, as a user asks for them.

use crate::common::millstream;
use std::path::Path;

const RATE: [&str; 4] = ["bench", "buffer", "--rate", "250e6"];

#[test]
fn a_buffer_of_64k_samples_holds_for_80_us_and_fails_for_300_us() {
    let folder = Path::new("/");
    let ask = |latency| {
        let rest = ["--buffer-samples", "65536", "--latency", latency, "--json"];
        millstream(folder, &[&RATE[..], &rest].concat())
    };
    let holds = ask("80e-6").succeeds().json()["results"].take();
    assert_eq!((&holds["holds"], &holds["samples_needed"]), (&true.into(), &20_000.into()));
    assert_eq!(holds["bytes"], 262_144);
    assert!((holds["slack_s"].as_f64().unwrap() - 262.144e-6).abs() < 1e-12);
    let outcome = ask("300e-6");
    let fails = outcome
        .fails(1, "the buffer is too small for 250 MS/s: it is enough up to 218.5 MS/s")
        .json();
    assert_eq!(fails["results"]["samples_needed"], 75_000);
}

#[test]
fn a_link_says_what_two_channels_take_of_it() {
    let rest = ["--latency", "80e-6", "--streams", "2", "--link-rate", "20G"];
    let outcome = millstream(Path::new("/"), &[&RATE[..], &rest].concat());
    let text = &outcome.succeeds().stdout;
    assert!(text.contains("80.0 µs at 250 MS/s take 20000 samples (78 KiB)"), "{text}");
    assert!(
        text.contains("2 channels use 80.7 % of a link of 20 Gb/s (80.0 % are samples"),
        "{text}"
    );
}

#[test]
fn a_histogram_and_a_probability_give_the_buffer() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"results": {"histogram":
        {"min_ns": 1000, "max_ns": 300000, "classes_ns": [[1000, 999], [300000, 1]]}}}"#;
    std::fs::write(folder.path().join("latency.json"), text).unwrap();
    let ask = |probability| {
        let rest = ["--histogram", "latency.json", "--probability", probability];
        millstream(folder.path(), &[&RATE[..], &rest].concat())
    };
    // The upper edge of a histogram's class: 1007 ns.
    let outcome = ask("1e-2");
    let text = &outcome.succeeds().stdout;
    assert!(text.starts_with("1.0 µs at 250 MS/s take 252 samples"), "{text}");
    ask("1e-6").fails(1, "1000 measured latencies are too few to find one in 1000000");
    let failed = r#"{"command": [], "environment": {}, "error": "10 captures in a row"}"#;
    std::fs::write(folder.path().join("latency.json"), failed).unwrap();
    ask("1e-2")
        .fails(1, "latency.json is the output of a command that failed (10 captures in a row)");
    std::fs::write(folder.path().join("latency.json"), "{}").unwrap();
    ask("1e-2").fails(1, "latency.json contains no histogram: give a file");
}

/// Figures of 300 digits are useless.
#[test]
fn what_no_radio_has_is_refused() {
    for (args, part) in [
        (["1e300", "--latency", "1"], "--rate is 1000000000000000"),
        (["0.5", "--latency", "1"], "--rate is 0.5: give 1 to 1e12 samples a second"),
        (["1e6", "--latency", "1e9"], "--latency is 1000000000 s: give at most a day"),
    ] {
        let args = [&["bench", "buffer", "--rate"][..], &args].concat();
        millstream(Path::new("/"), &args).fails(1, part);
    }
}

#[test]
fn a_question_without_an_unknown_is_refused() {
    for (args, part) in [
        (&[][..], "--buffer-samples <N>"),
        (&["--histogram", "x"], "--probability <P>"),
        (&["--latency", "1", "--mtu", "0"], "give a whole number from 1 to 65535"),
        (&["--latency", "-1"], "give a number of seconds above 0"),
    ] {
        millstream(Path::new("/"), &[&RATE[..], args].concat()).fails(2, part);
    }
    let small = [&RATE[..], &["--latency", "1", "--mtu", "47"]].concat();
    millstream(Path::new("/"), &small).fails(1, "an MTU of 47 bytes leaves no room");
}

/// Where the buffer holds, the radio's time runs 10 000 times slower: no delay of this machine
/// takes 2.6 s. Where it does not, no delay of this machine makes it hold.
#[test]
fn a_radio_agrees_with_the_law_on_both_sides_of_it() {
    let folder = Path::new("/");
    let ask = |latency, duration, scale| {
        let buffer = ["--buffer-samples", "65536", "--latency", latency, "--check", "--json"];
        let check = ["--time-scale", scale, "--check-duration", duration];
        millstream(folder, &[&RATE[..], &buffer, &check].concat())
    };
    for (latency, duration, scale, holds) in
        [("20e-6", "300us", "1e-4", true), ("600e-6", "6ms", "2e-3", false)]
    {
        let results = ask(latency, duration, scale).succeeds().json()["results"].take();
        assert_eq!(results["holds"], holds);
        let trials = results["trials"].as_array().unwrap();
        assert_eq!(trials.len(), 2, "{results}");
        for trial in trials {
            assert_eq!(trial["outcome"]["holds"], holds, "{trial}");
            let samples = trial["outcome"]["buffer_samples"].as_u64().unwrap();
            assert!(samples.abs_diff(65_536) <= 2_000, "{trial}");
        }
    }
}

/// A delay of this machine only makes a larger buffer necessary: nothing lets a smaller one hold.
#[test]
fn the_smallest_buffer_that_holds_is_searched_beside_the_calculated_one() {
    let search = ["--latency", "100us", "--search", "--direction", "tx", "--json"];
    let trial = ["--time-scale", "1e-3", "--check-duration", "500us"];
    let args = [&RATE[..], &search, &trial].concat();
    // A radio that the machine does not let run is not there.
    let is_there = |outcome: &crate::common::Outcome| !outcome.stdout.contains("did not answer");
    let outcome = (0..5).map(|_| millstream(Path::new("/"), &args)).find(is_there);
    let outcome = outcome.expect("a radio that answers");
    let results = outcome.succeeds().json()["results"].take();
    assert_eq!(results["calculated_samples"], 25_000);
    let found = &results["found"][0];
    let least = found["samples"].as_u64().unwrap();
    assert!(least >= 22_500, "{found}");
    let tried: Vec<(u64, bool)> = serde_json::from_value(found["tried"].clone()).unwrap();
    assert!(tried.contains(&(least, true)), "{found}");
    let below = tried.iter().filter(|(_, holds)| !holds).map(|(samples, _)| samples).max();
    assert!(below.is_some_and(|below| least - below <= least / 20), "{found}");
}

#[test]
fn a_change_comes_later_by_the_length_of_the_buffer() {
    let folder = tempfile::tempdir().unwrap();
    let series = ["--latency", "30us", "--series", "--time-scale", "3e-4", "--json"];
    let picture = ["--picture", "delays.svg", "--force"];
    let args = [&RATE[..], &series, &picture].concat();
    // A stall of 100 ms empties the smallest buffer: the command says so, and its figures do not
    // count.
    let run = || Some(millstream(folder.path(), &args)).filter(|run| run.status == Some(0));
    let outcome = (0..5).find_map(|_| run()).expect("one of five runs without a long stall");
    let results = outcome.json()["results"].take();
    let slope = results["delay_per_buffer"].as_f64().unwrap();
    assert!((0.7..1.15).contains(&slope), "{results}");
    let delays: Vec<f64> = results["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["median_s"].as_f64().unwrap())
        .collect();
    assert!(delays.len() == 4 && delays.is_sorted(), "{results}");
    let drawn = std::fs::read_to_string(folder.path().join("delays.svg")).unwrap();
    assert!(drawn.contains("delay, ms"), "{drawn}");
}
