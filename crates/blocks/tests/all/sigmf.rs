//! Recordings written and read by graphs.

use millstream_blocks::Sample;
use millstream_blocks::sigmf::{SigmfRecording, SigmfSink, SigmfSource};
use millstream_flow::blocks::SampleFormat;
use millstream_flow::{
    Block, BlockError, Context, Graph, Key, Mock, Out, Plan, Ports, TagTime, TagValue, Work, keys,
};
use serde_json::Value;

/// A thousand samples at 1 MS/s, with 250 missing before number 600.
#[derive(Ports)]
struct Receiver {
    out: Out<Sample>,
    sent: usize,
}

impl Block for Receiver {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        if self.sent == 0 {
            self.out.tag(0, keys::RX_RATE_HZ, 1e6);
            self.out.tag(0, keys::RX_TIME, TagTime::from_ticks(5_000_123, 1e6));
        }
        if self.sent == 600 {
            self.out.tag(0, keys::LOSS_CAUSE, TagValue::text("overrun"));
            self.out.tag(0, keys::LOSS_ITEMS, 250u64);
            self.out.tag(0, keys::RX_TIME, TagTime::from_ticks(5_000_973, 1e6));
            self.out.tag(7, Key::new("gain_db"), 31.5);
            self.out.tag(9, keys::ANNOTATION, TagValue::text("a burst"));
        }
        let items = 200.min(self.out.slice_mut().len());
        for (n, x) in self.out.slice_mut()[..items].iter_mut().enumerate() {
            *x = Sample::new((self.sent + n) as f32, 0.5);
        }
        self.out.produce(items);
        self.sent += items;
        Ok(if self.sent >= 1000 { Work::Finished } else { Work::Continue })
    }
}

#[test]
fn a_gap_becomes_a_capture_and_comes_back_as_tags() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("a.sigmf-meta"), folder.path().join("b.sigmf-data"));
    let mut graph = Graph::new();
    graph.add("radio", Receiver { out: Out::new(), sent: 0 }).unwrap();
    graph.add("sink", SigmfSink::<Sample>::new(&first, None).unwrap()).unwrap();
    graph.chain(&["radio", "sink"]).unwrap();
    graph.run(&Plan::default()).unwrap();
    let mut graph = Graph::new();
    graph.add("file", SigmfSource::open(&first).unwrap()).unwrap();
    graph.add("sink", SigmfSink::<Sample>::new(&second, None).unwrap()).unwrap();
    graph.chain(&["file", "sink"]).unwrap();
    graph.run(&Plan::default()).unwrap();
    for (path, cause) in [(&first, "overrun"), (&second, "overrun")] {
        let source = SigmfRecording::open(path, None).unwrap();
        let captures = source.captures.iter().map(|one| (one.first_sample, one.global_index));
        assert!(captures.eq([(0, Some(5_000_123)), (600, Some(5_000_973))]), "{source:?}");
        assert_eq!(source.format, SampleFormat::Cf32);
        assert_eq!((source.rate_hz, source.samples), (Some(1e6), 1000));
        let text = std::fs::read_to_string(path.with_extension("sigmf-meta")).unwrap();
        let meta: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(meta["annotations"][0]["core:label"], cause);
        let comment = &meta["annotations"][0]["core:comment"];
        assert_eq!(comment, "250 samples missing before this one");
        let notes = source.annotations.iter().map(|one| (one.first_sample, one.text.as_str()));
        let all = [(600, "overrun"), (607, "gain_db"), (609, "a burst")];
        assert!(notes.eq(all), "{source:?}");
    }
    let read = |path: &std::path::Path| std::fs::read(path.with_extension("sigmf-data")).unwrap();
    assert!(read(&first) == read(&second) && read(&first).len() == 8000);
}

#[test]
fn a_seek_goes_on_at_its_time_and_is_no_loss() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sigmf-meta");
    let mut graph = Graph::new();
    graph.add("radio", Receiver { out: Out::new(), sent: 0 }).unwrap();
    graph.add("sink", SigmfSink::<Sample>::new(&path, None).unwrap()).unwrap();
    graph.chain(&["radio", "sink"]).unwrap();
    graph.run(&Plan::default()).unwrap();
    let source = SigmfSource::open(&path).unwrap().waiting_at_end();
    let mut mock = Mock::with_room(source, 100);
    mock.call().unwrap();
    mock.take_tags("out");
    let first = mock.take::<Sample>("out");
    assert!(first.len() >= 100 && first[99].re == 99.0);
    let mut position = first.len() as u64;
    // Into the first part, to the first sample behind the gap, and into the last part.
    for (position_s, sample, ticks) in
        [(300e-6, 300.0, 5_000_423), (600e-6, 600.0, 5_000_973), (950e-6, 950.0, 5_001_323)]
    {
        mock.send("position_s", position_s).unwrap();
        mock.call().unwrap();
        let mut tags = mock.take_tags("out");
        tags.retain(|tag| tag.offset == position);
        let time = TagValue::Time(TagTime::from_ticks(ticks, 1e6));
        assert!(tags.iter().any(|tag| (tag.key, tag.value) == (keys::RX_TIME, time)), "{tags:?}");
        assert!(tags.iter().all(|tag| tag.key != keys::LOSS_ITEMS), "{tags:?}");
        let samples = mock.take::<Sample>("out");
        assert_eq!(samples[0].re, sample);
        position += samples.len() as u64;
    }
    // At the end it waits, and it can go back.
    assert!(matches!(mock.call().unwrap(), Work::Again(_)));
    mock.send("position_s", 0.0).unwrap();
    mock.call().unwrap();
    assert_eq!(mock.take::<Sample>("out")[0].re, 0.0);
    let error = mock.send("position_s", 1.0).unwrap_err().to_string();
    assert_eq!(error, "the recording has 0 to 0.001 s, but got 1 s");
}

#[test]
fn another_frequency_is_told_at_its_sample_and_behind_a_seek() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sigmf-meta");
    let capture = |start: u64, hz: f64| {
        let mut capture = serde_json::json!({ "core:sample_start": start });
        capture["core:frequency"] = hz.into();
        capture
    };
    let meta = serde_json::json!({
        "global": { "core:datatype": "cf32_le", "core:sample_rate": 1e6 },
        "captures": [capture(0, 88e6), capture(30, 99e6), capture(60, 99e6), capture(90, 88e6)],
    });
    std::fs::write(&path, meta.to_string()).unwrap();
    std::fs::write(path.with_extension("sigmf-data"), vec![0; 8 * 200]).unwrap();
    let source = SigmfSource::open(&path).unwrap().waiting_at_end();
    let mut mock = Mock::with_room(source, 1000);
    let tuned = |mock: &mut Mock<SigmfSource>| {
        mock.call().unwrap();
        let tags = mock.take_tags("out").into_iter().filter(|tag| tag.key == keys::RX_FREQ_HZ);
        tags.map(|tag| (tag.offset, tag.value.as_f64().unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(tuned(&mut mock), [(0, 88e6), (30, 99e6), (90, 88e6)]);
    mock.send("position_s", 70e-6).unwrap();
    assert_eq!(tuned(&mut mock), [(200, 99e6), (220, 88e6)]);
}

#[test]
fn other_files_are_refused_with_what_to_do() {
    let refused = SigmfSource::open("x.sc16".as_ref()).unwrap_err().to_string();
    assert!(refused.contains("a file_source reads raw samples"), "{refused}");
    let refused = SigmfSource::open("/no/x.sigmf-meta".as_ref()).unwrap_err().to_string();
    assert!(refused.starts_with("cannot read /no/x.sigmf-meta: No such file"), "{refused}");
    let refused = SigmfSink::<Sample>::new("x.wav".as_ref(), None).unwrap_err().to_string();
    assert!(refused.contains("name it .sigmf-meta"), "{refused}");
}

#[test]
fn a_seek_leaves_no_tag_of_the_samples_that_were_not_produced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sigmf-meta");
    let meta = serde_json::json!({
        "global": { "core:datatype": "cf32_le", "core:sample_rate": 1e6 },
        "captures": [
            { "core:sample_start": 0, "core:global_index": 0 },
            { "core:sample_start": 9000, "core:global_index": 9100 },
        ],
        "annotations": [{ "core:sample_start": 8500, "core:label": "later" }],
    });
    std::fs::write(&path, meta.to_string()).unwrap();
    std::fs::write(path.with_extension("sigmf-data"), vec![0; 8 * 30_000]).unwrap();
    let mut mock = Mock::with_room(SigmfSource::open(&path).unwrap(), 30_000);
    mock.call().unwrap();
    let position = mock.take::<Sample>("out").len() as u64;
    assert!(position < 8500, "{position}");
    mock.send("position_s", 0.02).unwrap();
    mock.run().unwrap();
    let tags = mock.take_tags("out");
    let lost = tags.iter().filter(|tag| tag.key == keys::LOSS_ITEMS).count();
    let notes = tags.iter().filter(|tag| tag.key == keys::ANNOTATION).count();
    assert_eq!((lost, notes), (0, 0), "{tags:?}");
}
