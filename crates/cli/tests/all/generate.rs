//! `millstream sim generate`, and its receivers: `run`, `inspect --atsc`.

use crate::common::{graph, millstream, names};
use millstream_dsp::chunks::Chunks;
use std::path::Path;

#[test]
fn a_spoilt_recording_decodes_to_the_packets_that_were_sent() {
    let folder = tempfile::tempdir().unwrap();
    let seed = std::process::id().to_string();
    println!("seed {seed}");
    let channel =
        ["--cn", "28", "--echo", "1.3us:-12dB:80deg", "--offset", "-7e3", "--clock-ppm", "9"];
    let more = ["--seed", &seed, "--duration", "0.3", "--sent", "sent.ts", "--bits", "8", "--json"];
    let outcome = millstream(
        folder.path(),
        &[&["sim", "generate", "--out", "tv.sc16"], &channel[..], &more].concat(),
    );
    let results = outcome.succeeds().json()["results"].take();
    assert_eq!(results["recorded"]["samples"], 1_875_000);
    assert_eq!(names(folder.path()), ["sent.ts", "tv.sc16"]);
    let set = ["--set", "in=tv.sc16", "--set", "out=got.ts", "--json"];
    let run = millstream(folder.path(), &[&["run", &graph("atsc-rx.toml")], &set[..]].concat());
    run.succeeds();
    let [sent, got] = ["sent.ts", "got.ts"].map(|name| std::fs::read(folder.path().join(name)));
    let (sent, got) = (sent.unwrap(), got.unwrap());
    assert_eq!(results["packets_sent"], sent.len() / 188);
    let packets = sent.in_chunks::<188>().0;
    let first = packets.iter().position(|packet| packet[..] == got[..188]);
    let first = first.unwrap_or_else(|| panic!("seed {seed}: the first packet was not sent"));
    assert!(got.len() / 188 > 2500, "seed {seed}: {} packets", got.len() / 188);
    assert!(sent[first * 188..].starts_with(&got), "seed {seed}: the streams differ");

    let report = millstream(folder.path(), &["inspect", "tv.sc16", "--atsc", "--json"]);
    let results = report.succeeds().json()["results"].take();
    let png = std::fs::read(folder.path().join("tv.sc16.png")).unwrap();
    assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
    let survey = &results["survey"];
    assert_eq!(survey["status"]["uncorrected_packets"], 0);
    let echoes = survey["echoes"].as_array().unwrap().iter();
    let mut echoes = echoes.map(|one| (one[0].as_f64().unwrap(), one[1].as_f64().unwrap()));
    // On the grid of symbols, 0.093 µs.
    let level = echoes.find(|(delay_us, _)| (delay_us - 1.3).abs() < 0.05).unwrap().1;
    assert!((level + 12.0).abs() < 2.0, "the echo is seen at {level} dB");

    // The same as SigMF, which has format and rate.
    let [from, to] = ["tv.sc16", "tv.sigmf-data"].map(|name| folder.path().join(name));
    std::fs::rename(from, to).unwrap();
    let meta = r#"{"global": {"core:datatype": "ci16_le", "core:version": "1.0.0",
        "core:sample_rate": 6.25e6}, "captures": [{"core:sample_start": 0}], "annotations": []}"#;
    std::fs::write(folder.path().join("tv.sigmf-meta"), meta).unwrap();
    let again = millstream(folder.path(), &["inspect", "tv.sigmf-meta", "--atsc", "--json"]);
    assert_eq!(again.succeeds().json()["results"]["survey"], *survey);
    let wrong = ["inspect", "tv.sigmf-data", "--rate", "8e6"];
    millstream(folder.path(), &wrong)
        .fails(1, "already contains its sample rate, 6250000 samples a second");
}

#[test]
fn the_same_seed_is_the_same_recording_and_the_picture_is_sent_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let generate = |out: &str, more: &[&str]| {
        let args =
            [&["sim", "generate", "--out", out, "--duration", "0.02", "--cn", "20"], more].concat();
        millstream(folder.path(), &args).succeeds();
        std::fs::read(folder.path().join(out)).unwrap()
    };
    let first = generate("a.cf32", &[]);
    assert_eq!((first.len(), &first), (125_000 * 8, &generate("b.cf32", &[])));
    assert_ne!(first, generate("c.cf32", &["--seed", "2"]));
    generate("d.sc16", &["--test-picture", "--sent", "sent.ts"]);
    let sent = std::fs::read(folder.path().join("sent.ts")).unwrap();
    assert!(sent.starts_with(&[0x47]) && sent.len() > 188 * 200);
}

#[test]
fn the_channel_as_a_flowgraph_is_received() {
    let folder = tempfile::tempdir().unwrap();
    let set = ["--set", "out=tv.cf32", "--set", "samples=1250000", "--set", "offset=-3e3"];
    let file = graph("atsc-channel.toml");
    let channel = [&["run", &file], &set[..]].concat();
    millstream(folder.path(), &channel).succeeds();
    let report = millstream(folder.path(), &["inspect", "tv.cf32", "--atsc", "--picture", "x.png"]);
    let text = &report.succeeds().stdout;
    assert!(text.contains("locked") && text.contains(" 0 damaged"), "{text}");
    assert_eq!(names(folder.path()), ["tv.cf32", "x.png"]);
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("empty.sc16"), []).unwrap();
    for (args, status, part) in [
        (
            &["sim", "generate", "--out", "x.wav"][..],
            1,
            "x.wav: the sample format is unknown: add --format sc16 or cf32, or use a name that \
             ends in .sc16 or .cf32",
        ),
        (&["sim", "generate", "--out", "x.sc16", "--format", "sc8"], 2, "give sc16 or cf32"),
        (
            &["sim", "generate", "--out", "x.sc16", "--rate", "1e6"],
            1,
            "the sample rate is 1000000 Hz, at which an ATSC channel cannot be transmitted",
        ),
        (
            &["sim", "generate", "--out", "x.sc16", "--echo", "5us"],
            2,
            "`5us` is not an echo: write DELAY:LEVEL",
        ),
        (
            &["sim", "generate", "--out", "x.sc16", "--echo", "1s:-3dB"],
            1,
            "too late at this sample rate",
        ),
        (
            &["sim", "generate", "--out", "x.sc16", "--adjacent", "1:20dB"],
            1,
            "needs a sample rate of at least 18000000 Hz",
        ),
        (
            &["sim", "generate", "--out", "x.sc16", "--adjacent", "0.5:20dB"],
            2,
            "give a whole number of channels",
        ),
        (
            &["sim", "generate", "--out", "x.sc16", "--bits", "1"],
            1,
            "a number of bits is 1: give a number from 2",
        ),
        (
            &["sim", "generate", "--out", "x.sc16", "--iq", "1"],
            2,
            "write two numbers, for example 0.5dB:2deg",
        ),
        (&["sim", "generate", "--out", "x.sc16", "--duration", "1e9"], 1, "give at most a day"),
        (
            &["sim", "generate", "--out", "x.sc16", "--ts", "no.ts"],
            1,
            "cannot read the transport stream no.ts",
        ),
        (&["sim", "generate", "--out", "no/x.sc16"], 1, "no/x.sc16"),
        (&["inspect", "x"], 1, "or give --format sc16 or --format cf32"),
        (&["inspect", "x.sc16"], 1, "cannot read x.sc16: No such file"),
        (&["inspect", "empty.sc16"], 1, "empty.sc16"),
        (&["inspect", "x.sc16", "--format", "wav"], 2, "give sc16 or cf32"),
        (&["inspect", "x.sc16", "--atsc", "--picture", "p.jpg"], 1, "use a name that ends in .png"),
    ] {
        millstream(folder.path(), args).fails(status, part);
    }
    assert_eq!(names(folder.path()), ["empty.sc16"]);
    millstream(Path::new("/"), &["sim", "generate", "--help"]).succeeds();
}
