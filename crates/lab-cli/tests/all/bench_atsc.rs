//! `millstream-lab bench atsc`.

use crate::common::{millstream, names};

#[test]
fn the_receiver_is_measured_and_tried() {
    let folder = tempfile::tempdir().unwrap();
    let cost = ["bench", "atsc", "--duration", "0.7", "--repeat", "1", "--no-gnuradio"];
    let cost = [&cost[..], &["--no-echoes", "--json"]].concat();
    let outcome = millstream(folder.path(), &cost);
    assert!(outcome.stderr.contains("writing 0.7 s of signal\n"), "{outcome:?}");
    let outcome = outcome.succeeds().json()["results"]["outcome"].take();
    let entries = outcome["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "{outcome}");
    for entry in entries {
        assert!(entry["cpu_s_per_signal_s"]["median"].as_f64().unwrap() > 0.0, "{entry}");
        assert_eq!(entry["score"]["right"], entry["score"]["expected"], "{entry}");
    }
    let table = ["bench", "atsc", "table", "--cn", "25,8", "--duration", "0.7", "--no-gnuradio"];
    let store = ["--store", "results.jsonl", "--picture", "table.png", "--force"];
    for _ in 0..2 {
        let outcome = millstream(folder.path(), &[&table[..], &store].concat());
        let text = &outcome.succeeds().stdout;
        let rate = |cn: &str| {
            let line = text.lines().find(|line| line.starts_with(cn)).map(str::trim_end);
            line.and_then(|line| line.split(' ').next_back()).map(str::to_owned)
        };
        assert_eq!(rate("C/N 25 dB").as_deref(), Some("0"), "{text}");
        assert_eq!(rate("C/N 8 dB").as_deref(), Some("1"), "{text}");
    }
    let stored = std::fs::read_to_string(folder.path().join("results.jsonl")).unwrap();
    assert_eq!(stored.lines().count(), 2, "what is known is not tried again: {stored}");
    assert!(std::fs::read(folder.path().join("table.png")).unwrap().starts_with(b"\x89PNG"));
    let tx = ["bench", "atsc", "tx", "--rate", "25e6", "--duration", "0.02", "--repeat", "1"];
    let text = millstream(folder.path(), &tx).succeeds().stdout.clone();
    assert!(text.contains("own MER") && text.contains("25.00"), "{text}");
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for (args, status, part) in [
        (&["bench", "atsc", "--duration", "0.1"][..], 1, "give 0.7 to 3600 seconds of signal"),
        (&["bench", "atsc", "--samples-per-symbol", "1"], 2, "give a number from 1.05 to 4"),
        (
            &["bench", "atsc", "table", "--axis", "rain"],
            2,
            "the axes are: noise, echo, doppler, ensemble, carrier, clock",
        ),
        (&["bench", "atsc", "table", "--again"], 2, "--store"),
        (&["bench", "atsc", "--python", "/no/python"], 1, "cannot run /no/python"),
    ] {
        millstream(folder.path(), args).fails(status, part);
    }
    assert!(names(folder.path()).is_empty());
}
