//! What a SigMF recording says stays true through a graph.

use millstream_blocks::Sample;
use millstream_blocks::sigmf::{Capture, SigmfRecording, SigmfSink, SigmfSource};
use millstream_flow::{
    Block, BlockFacts, Graph, ItemRatio, Mock, Plan, Registry, TagRule, TagTime, keys,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Numbers from a seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn registry() -> Registry {
    let mut registry = Registry::builtin();
    millstream_blocks::register(&mut registry);
    registry
}

pub fn write(path: &Path, meta: &Value, bytes: usize) {
    std::fs::write(path.with_extension("sigmf-data"), vec![0; bytes]).unwrap();
    std::fs::write(path, meta.to_string()).unwrap();
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Plays a recording through blocks into another.
fn copy(from: &Path, through: Option<Box<dyn Block>>, to: &Path) -> Option<()> {
    let mut graph = Graph::new();
    graph.add("source", SigmfSource::open(from).unwrap()).unwrap();
    graph.add("sink", SigmfSink::<Sample>::new(to, None).unwrap().overwrite()).unwrap();
    match through {
        Some(block) => {
            graph.add("block", block).unwrap();
            graph.chain(&["source", "block", "sink"]).ok()?;
        }
        None => graph.chain(&["source", "sink"]).unwrap(),
    }
    graph.run(&Plan::default()).unwrap();
    Some(())
}

#[test]
fn a_copy_says_all_that_the_recording_says() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("a.sigmf-meta"), folder.path().join("b.sigmf-meta"));
    let extension = json!({ "name": "antenna", "version": "1.0.0", "optional": true });
    let meta = json!({
        "global": {
            "core:datatype": "cf32_le", "core:sample_rate": 1e6, "core:version": "1.0.0",
            "core:author": "A", "core:description": "D", "core:license": "L", "core:hw": "H",
            "core:data_doi": "10.1/x", "core:meta_doi": "10.1/y", "core:collection": "C",
            "core:geolocation": { "type": "Point", "coordinates": [1.0, 2.0] },
            "core:extensions": [extension], "core:num_channels": 1, "core:offset": 7,
            "antenna:gain": 3.5, "other:field": { "deep": [1, 2.5, "x", null] },
            "core:dataset": "a.sigmf-data", "core:sha512": "00",
        },
        "captures": [
            { "core:sample_start": 0, "core:global_index": 500, "core:frequency": 433.92e6,
              "core:datetime": "2019-03-01T10:00:00Z", "core:geolocation": { "a": 1 },
              "other:gain": 7 },
            { "core:sample_start": 6, "core:global_index": 516, "core:frequency": 434e6,
              "core:datetime": "2019-03-01T10:00:00.000016Z" },
            { "core:sample_start": 8, "core:global_index": 518, "core:datetime": "unreadable" },
        ],
        "annotations": [
            { "core:sample_start": 2, "core:sample_count": 3, "core:label": "a label longer than \
              twenty-two bytes", "core:comment": "C", "core:freq_lower_edge": 433.9e6,
              "core:freq_upper_edge": 434.0e6, "core:generator": "G", "core:uuid": "U",
              "other:score": 0.5 },
            { "core:sample_start": 6, "core:sample_count": 0, "core:label": "packets lost",
              "core:comment": "10 samples in 2 packets missing before this one" },
            { "core:sample_start": 9 },
        ],
    });
    write(&from, &meta, 80);
    copy(&from, None, &to).unwrap();
    let copied = read(&to);
    for (key, value) in meta["global"].as_object().unwrap() {
        match key.as_str() {
            // Of the other file.
            "core:dataset" | "core:sha512" => assert_eq!(copied["global"][key], Value::Null),
            "core:extensions" => assert_eq!(copied["global"][key][0], extension),
            _ => assert_eq!(copied["global"][key], *value, "{key}"),
        }
    }
    for list in ["captures", "annotations"] {
        let (was, is) = (meta[list].as_array().unwrap(), copied[list].as_array().unwrap());
        assert_eq!(was.len(), is.len(), "{list}: {copied:#}");
        for (was, is) in was.iter().zip(is) {
            for (key, value) in was.as_object().unwrap() {
                let is = &is[key];
                let both = is.as_f64().zip(value.as_f64());
                assert!(is == value || both.is_some_and(|(a, b)| a == b), "{list} {key}: {is}");
            }
        }
    }
    // A copy of the copy is the copy.
    let again = folder.path().join("c.sigmf-meta");
    copy(&to, None, &again).unwrap();
    assert_eq!(read(&again), copied);
}

struct Drawn {
    path: PathBuf,
    rate_hz: f64,
    captures: Vec<Capture>,
    notes: Vec<(u64, u64)>,
}

const SAMPLES: u64 = 20_000;

/// Draws a recording with gaps, other frequencies and annotations.
fn draw(folder: &Path, random: &mut Random) -> Drawn {
    let rate_hz = [1e6, 48e3, 12_345_678.0, 61.44e6][random.below(4) as usize];
    let begin = 1_700_000_000_000_000_000 + random.below(1 << 40);
    let (mut first, mut index, origin) = (0, 100_000_000 + random.below(1 << 40), 100_000_000);
    let mut captures = Vec::new();
    while first < SAMPLES {
        let since = Duration::from_nanos(begin)
            + Duration::from_secs_f64((index - origin) as f64 / rate_hz);
        captures.push(Capture {
            first_sample: first,
            global_index: Some(index),
            frequency_hz: Some(88e6 + 1e5 * random.below(50) as f64),
            utc: Some(TagTime::from(since)),
            document: None,
        });
        let length = 500 + random.below(9000);
        first += length;
        index += length + random.below(3) * random.below(5000);
    }
    let mut notes: Vec<_> =
        (0..20).map(|_| (random.below(SAMPLES), 1 + random.below(900))).collect();
    notes.sort_unstable();
    let of_capture = |one: &Capture| {
        let utc = one.utc.unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::new(utc.seconds, utc.subsec_nanos());
        json!({
            "core:sample_start": one.first_sample, "core:global_index": one.global_index,
            "core:frequency": one.frequency_hz,
            "core:datetime": humantime::format_rfc3339_nanos(time).to_string(),
        })
    };
    let of_note = |(start, count): &(u64, u64)| {
        let (start, count) = (json!(start), json!(count));
        json!({ "core:sample_start": start, "core:sample_count": count, "core:label": "n" })
    };
    let meta = json!({
        "global": { "core:datatype": "cf32_le", "core:sample_rate": rate_hz },
        "captures": captures.iter().map(of_capture).collect::<Vec<_>>(),
        "annotations": notes.iter().map(of_note).collect::<Vec<_>>(),
    });
    let path = folder.join("drawn.sigmf-meta");
    write(&path, &meta, 8 * SAMPLES as usize);
    Drawn { path, rate_hz, captures, notes }
}

#[test]
fn rate_time_frequency_and_places_are_right_behind_every_block() {
    let seed = std::env::var("MILLSTREAM_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(0x5eed_0043);
    let mut random = Random(seed);
    let folder = tempfile::tempdir().unwrap();
    let registry = registry();
    let mut cases: Vec<(String, String)> = registry
        .types()
        .filter(|known| known.outside_ports().is_none())
        .map(|known| (known.name().to_owned(), known.example_values().to_owned()))
        .collect();
    for (name, values) in [
        ("fir", "taps = [1, 2, 3, 2, 1]\ndecimation = 3"),
        ("fir", "taps = [0, 0, 0, 0, 1]"),
        ("rational_resampler", "interpolation = 160\ndecimation = 147"),
        ("rational_resampler", "interpolation = 1\ndecimation = 4"),
        ("arbitrary_resampler", "ratio = 0.1234"),
        ("keep_one_in_n", "n = 7"),
        ("rotator", "shift_hz = 1000\nrate_hz = 1e6"),
    ] {
        cases.push((name.to_owned(), values.to_owned()));
    }
    let mut seen = Vec::new();
    for (name, values) in cases {
        let Ok(block) = registry.make(&name, &values) else { continue };
        let facts = BlockFacts::of(&block);
        if facts.tag_rule == TagRule::Drop {
            continue;
        }
        let (rate, delay, shift) = (facts.rate, facts.delay, facts.band_shift_hz);
        let drawn = draw(folder.path(), &mut random);
        let to = folder.path().join("out.sigmf-meta");
        if copy(&drawn.path, Some(block), &to).is_none() {
            continue;
        }
        let case = format!("seed {seed}: {name}, {values:?}");
        check(&case, &drawn, (rate, delay, shift), &to);
        seen.push(name);
    }
    for name in [
        "fir",
        "rational_resampler",
        "arbitrary_resampler",
        "keep_one_in_n",
        "delay",
        "rotator",
        "fft_filter",
        "channelizer",
    ] {
        assert!(seen.iter().any(|seen| seen == name), "{name} was not tried: {seen:?}");
    }
}

fn check(case: &str, drawn: &Drawn, (rate, delay, shift): (ItemRatio, f64, f64), to: &Path) {
    let read_back = SigmfRecording::open(to, None).unwrap();
    let out_hz = drawn.rate_hz * rate.ratio();
    let rate_error = read_back.rate_hz.unwrap() / out_hz - 1.0;
    assert!(rate_error.abs() < 1e-15, "{case}: {read_back:?}");
    let moved = |item: u64| if item == 0 { 0 } else { rate.map_late(item, delay) };
    for (n, capture) in drawn.captures.iter().enumerate() {
        let at = moved(capture.first_sample);
        let hidden = drawn.captures.get(n + 1).is_some_and(|next| moved(next.first_sample) == at);
        if hidden || at >= read_back.samples {
            continue;
        }
        let found = read_back.captures.iter().find(|one| one.first_sample == at);
        let found = found.unwrap_or_else(|| panic!("{case}: no capture at {at}: {read_back:?}"));
        assert_eq!(found.frequency_hz, capture.frequency_hz.map(|hz| hz - shift), "{case}");
        // In samples of the input, behind that of the capture.
        let behind = at as f64 / rate.ratio() - delay - capture.first_sample as f64;
        let index = (capture.global_index.unwrap() as f64 + behind) * rate.ratio();
        let error = found.global_index.unwrap() as f64 - index;
        assert!(error.abs() <= 1.01, "{case}: capture at {at} is {error} samples wrong");
        let utc = capture.utc.unwrap().later(behind / drawn.rate_hz).unwrap();
        let error = found.utc.unwrap().as_secs_f64() - utc.as_secs_f64();
        assert!(error.abs() < 1e-6, "{case}: capture at {at} is {error} s wrong");
    }
    for pair in read_back.captures.windows(2) {
        let missing = pair[1].missing_since(&pair[0]).unwrap_or(0);
        let here = read_back.annotations.iter();
        let here = here.filter(|one| one.first_sample == pair[1].first_sample);
        let said: u64 = here.filter_map(|one| one.missing).sum();
        assert!(missing.abs_diff(said) <= 1, "{case}: {missing} missing, {said} said");
    }
    let notes = read_back.annotations.iter().filter(|one| one.text == "n");
    let found: Vec<_> = notes.map(|one| (one.first_sample, one.samples.unwrap())).collect();
    let scaled = |count: u64| (count as f64 * rate.ratio()).round() as u64;
    let expected = drawn.notes.iter().map(|(start, count)| (moved(*start), scaled(*count)));
    let expected: Vec<_> = expected.filter(|one| one.0 < read_back.samples).collect();
    assert_eq!(found, expected, "{case}");
}

#[test]
fn the_delay_that_a_filter_states_is_that_of_a_pulse() {
    for (name, values) in [
        ("fir", "design = \"low_pass\"\nrate_hz = 1\ncutoff_hz = 0.2\ntransition_hz = 0.1"),
        (
            "fir",
            "design = \"low_pass\"\nrate_hz = 1\ncutoff_hz = 0.1\ntransition_hz = 0.05\n\
                 decimation = 4",
        ),
        (
            "fft_filter",
            "design = \"low_pass\"\nrate_hz = 1\ncutoff_hz = 0.2\n\
                        transition_hz = 0.02",
        ),
        ("rational_resampler", "interpolation = 3\ndecimation = 2"),
        ("rational_resampler", "interpolation = 2\ndecimation = 5"),
        ("arbitrary_resampler", "ratio = 1.0884"),
        ("arbitrary_resampler", "ratio = 0.3"),
        ("delay", "count = 100"),
        ("keep_one_in_n", "n = 3"),
    ] {
        let block = registry().make(name, values).unwrap();
        let facts = BlockFacts::of(&block);
        let (rate, delay) = (facts.rate, facts.delay);
        let mut mock = Mock::new(block);
        let centre = 6000.0;
        let pulse = |n: usize| (-((n as f64 - centre) / 60.0).powi(2)).exp() as f32;
        let x: Vec<_> = (0..20_000).map(|n| Sample::new(pulse(n), 0.0)).collect();
        mock.feed("in", &x);
        mock.end("in");
        mock.run().unwrap();
        let y = mock.take::<Sample>("out");
        let sum: f64 = y.iter().map(|y| f64::from(y.re)).sum();
        let moment: f64 = y.iter().enumerate().map(|(n, y)| n as f64 * f64::from(y.re)).sum();
        let measured = moment / sum / rate.ratio() - centre;
        assert!((measured - delay).abs() < 0.02, "{name} {values:?}: {delay}, not {measured}");
    }
}

#[test]
fn metadata_lies_beside_the_samples_from_the_first_one_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sigmf-meta");
    let mut mock = Mock::new(SigmfSink::<Sample>::new(&path, None).unwrap());
    // In any order.
    mock.tag("in", 0, keys::RX_TIME, TagTime::from_ticks(1000, 1e6));
    mock.tag("in", 0, keys::RX_GAIN_DB, 30.0);
    mock.tag("in", 0, keys::RX_FREQ_HZ, 99e6);
    mock.tag("in", 0, keys::RX_RATE_HZ, 1e6);
    mock.feed("in", &[Sample::new(1.0, 0.0); 50_000]);
    mock.call().unwrap();
    mock.call().unwrap();
    // The process ends here; its buffers are lost.
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap()).collect();
    let names: Vec<_> = left.iter().map(|entry| entry.file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let copy = tempfile::tempdir().unwrap();
    for entry in &left {
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).unwrap();
    }
    drop(mock);
    for name in ["a.sigmf-data", "a.sigmf-meta", "a.sigmf-data.part", "a.sigmf-meta.part"] {
        let found = SigmfRecording::open(&copy.path().join(name), None).unwrap();
        let first = found.captures[0];
        assert_eq!((found.rate_hz, first.global_index), (Some(1e6), Some(1000)), "{name}");
        assert_eq!(first.frequency_hz, Some(99e6), "{name}");
        assert!(found.samples > 0 && first.utc.is_some(), "{found:?}");
        SigmfSource::open(&copy.path().join(name)).unwrap();
    }
    assert_eq!(
        read(&copy.path().join("a.sigmf-meta.part"))["captures"][0]["millstream:gain_db"],
        30.0
    );
}

#[test]
fn hostile_numbers_and_a_byte_order_mark_are_no_trouble() {
    let folder = tempfile::tempdir().unwrap();
    let (path, to) = (folder.path().join("a.sigmf-meta"), folder.path().join("b.sigmf-meta"));
    let most = u64::MAX;
    let meta = json!({
        "global": { "core:datatype": "cf32_le", "core:sample_rate": 1e6, "core:offset": most },
        "captures": [
            { "core:sample_start": 0, "core:global_index": 3 },
            { "core:sample_start": 5, "core:global_index": most, "core:frequency": 1e300 },
            { "core:sample_start": 7, "core:global_index": most - 1 },
        ],
        "annotations": [
            { "core:sample_start": most, "core:sample_count": most },
            { "core:sample_start": 5, "millstream:missing_samples": most },
            { "core:sample_start": 5, "millstream:missing_samples": most },
        ],
    });
    write(&path, &meta, 80);
    std::fs::write(&path, format!("\u{FEFF}{meta}")).unwrap();
    for values in ["interpolation = 3\ndecimation = 2", "interpolation = 1\ndecimation = 2"] {
        let block = registry().make("rational_resampler", values).unwrap();
        copy(&path, Some(block), &to).unwrap();
    }
    copy(&path, None, &to).unwrap();
    let source = SigmfSource::open(&path).unwrap().part(6, 3).unwrap();
    Mock::new(source).run().unwrap();
    assert_eq!(SigmfRecording::open(&to, None).unwrap().samples, 10);
}
