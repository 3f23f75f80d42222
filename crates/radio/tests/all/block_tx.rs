//! Tests of transmit streams as flowgraph sinks: the samples that the radio transmits, and the
//! metrics.

use std::path::Path;

use crate::common::{patient, radio_with};
use millstream_emulator::{DeviceKind, RadioConfig};
use millstream_flow::blocks::VectorSource;
use millstream_flow::{BlockStats, Graph, GraphFile, Plan, Registry, WaitMode};
use millstream_radio::block::{RadioSink, TransmitStart, register};
use millstream_radio::{Complex32, Device, DeviceArgs, TxArgs, TxCause};

fn metric(stats: &BlockStats, name: &str) -> u64 {
    stats.metric(name).unwrap_or_else(|| panic!("no metric {name}")) as u64
}

/// Returns samples that are whole numbers on the wire, different for each channel.
fn samples(count: i16, channel: i16) -> Vec<[i16; 2]> {
    (1..=count).map(|n| [n, -n - channel]).collect()
}

fn floats(samples: &[[i16; 2]]) -> Vec<Complex32> {
    samples.iter().map(|[i, q]| Complex32::new(f32::from(*i), f32::from(*q)) / 32767.0).collect()
}

/// Reads a radio's transmit file, which is complete once the radio has stopped.
fn transmitted(path: &Path) -> Vec<[i16; 2]> {
    let bytes = std::fs::read(path).unwrap();
    let half = |bytes: &[u8]| i16::from_le_bytes([bytes[0], bytes[1]]);
    bytes.chunks_exact(4).map(|pair| [half(pair), half(&pair[2..])]).collect()
}

fn run(graph: Graph) -> millstream_flow::Snapshot {
    let plan = Plan::single(&graph, WaitMode::Park);
    graph.run(&plan).unwrap()
}

#[test]
fn a_sink_transmits_its_input_as_one_burst_and_balances() {
    let folder = tempfile::tempdir().unwrap();
    let tx_out = vec![folder.path().join("a.sc16")];
    let (radio, args) = radio_with(RadioConfig { tx_out, ..patient() });
    let mut device = Device::open(args).unwrap();
    device.set_rate(2e6).unwrap();
    let stream = device.tx_stream(TxArgs::new(0)).unwrap();
    let at = device.time_ticks().unwrap() + 600_000;
    let sent = samples(30_001, 0);
    let mut graph = Graph::new();
    graph.add("source", VectorSource::new(sent.clone())).unwrap();
    graph.add("radio", RadioSink::<[i16; 2]>::new(device, stream, TransmitStart::At(at))).unwrap();
    graph.connect("source", "radio").unwrap();
    let snapshot = run(graph);
    let stats = snapshot.block("radio").unwrap();
    assert_eq!((metric(stats, "accepted"), metric(stats, "transmitted")), (30_001, 30_001));
    for name in TxCause::ALL.iter().map(|cause| cause.name()).chain(["in_flight", "unknown"]) {
        assert_eq!(metric(stats, name), 0, "{name}");
    }
    assert_eq!((metric(stats, "underflows"), metric(stats, "lates")), (0, 0));
    radio.stop();
    assert!(transmitted(&folder.path().join("a.sc16")) == sent);
}

#[test]
fn several_inputs_leave_the_antennas_at_the_same_moments() {
    let folder = tempfile::tempdir().unwrap();
    let tx_out: Vec<_> = ["a.sc16", "b.sc16"].map(|name| folder.path().join(name)).into();
    let (radio, args) = radio_with(RadioConfig { tx_out, ..patient() });
    let mut device = Device::open(args).unwrap();
    device.set_rate(2e6).unwrap();
    let group = device.tx_group(&[TxArgs::new(0), TxArgs::new(1)]).unwrap();
    let start = TransmitStart::After(std::time::Duration::from_millis(300));
    let sink = RadioSink::<Complex32>::new(device, group, start);
    let mut graph = Graph::new();
    graph.add("radio", sink).unwrap();
    // The longer input ends with the shorter one.
    for (channel, count) in [(0, 20_000), (1, 25_000)] {
        let source = format!("source{channel}");
        graph.add(&source, VectorSource::new(floats(&samples(count, channel)))).unwrap();
        graph.connect(&source, &format!("radio.in{channel}")).unwrap();
    }
    let snapshot = run(graph);
    let stats = snapshot.block("radio").unwrap();
    assert_eq!((metric(stats, "accepted"), metric(stats, "transmitted")), (40_000, 40_000));
    radio.stop();
    for (channel, name) in [(0, "a.sc16"), (1, "b.sc16")] {
        assert!(transmitted(&folder.path().join(name)) == samples(20_000, channel), "{name}");
    }
}

/// Returns a graph file with 10 000 samples of a constant through `radio_tx`.
fn file(args: &DeviceArgs, more: &str) -> String {
    format!(
        "[[block]]\nname = \"zeros\"\ntype = \"null_source\"\n[[block]]\nname = \"burst\"\n\
         type = \"head\"\ncount = 10000\n[[block]]\nname = \"radio\"\ntype = \"radio_tx\"\n\
         rate_hz = 1e6\nargs = \"addr=127.0.0.1,discovery_port={},rpc_port={}\"\n{more}\n\
         [graph]\nconnections = [\"zeros -> burst -> radio\"]\n",
        args.discovery_port, args.rpc_port
    )
}

#[test]
fn a_graph_file_opens_the_transmitter_or_says_what_is_wrong() {
    let (_radio, args) = radio_with(RadioConfig { device: DeviceKind::E320, ..patient() });
    let mut registry = Registry::builtin();
    register(&mut registry);
    let build = |more: &str| {
        GraphFile::parse("g.toml", &file(&args, more)).and_then(|file| file.build(&registry, &[]))
    };
    let tuned = "freq_hz = 915e6\nlo_offset_hz = 1e6\ngain_db = 30.0\nantenna = \"TX/RX\"\n\
                 bandwidth_hz = 5e6\nlead_s = 0.3\nchannels = \"1\"";
    let snapshot = run(build(tuned).unwrap());
    let stats = snapshot.block("radio").unwrap();
    assert_eq!((metric(stats, "transmitted"), metric(stats, "lates")), (10_000, 0));
    for (more, part) in [
        ("channels = \"0,x\"", "channels with commas between them: 0,1"),
        ("channels = \"1,1\"", "channels with commas between them: 0,1"),
        ("channels = \"7\"", "no transmit channel 7"),
        ("lead_s = -1.0", "0 to 1"),
        ("at_ticks = -7", "0 or more"),
        ("freq_hz = 1e6", "frequency 1000000 Hz is not possible"),
        ("antenna = \"RX2\"", "there is no antenna"),
    ] {
        let error = build(more).err().expect(more).to_string();
        assert!(error.contains(part) && error.contains("radio"), "{more}: {error}");
    }
}

#[test]
fn a_rehearsal_transmits_nothing() {
    let (radio, args) = radio_with(patient());
    let mut registry = Registry::builtin();
    register(&mut registry);
    let file = GraphFile::parse("g.toml", &file(&args, "")).unwrap();
    let snapshot = run(file.build_rehearsal(&registry, &[]).unwrap());
    assert_eq!(snapshot.block("radio").unwrap().items_in, 10_000);
    assert_eq!((radio.counters().rpc_calls, radio.counters().tx_samples), (0, 0));
}
