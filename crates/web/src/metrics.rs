//! Counters for Prometheus, text format 0.0.4.

use crate::documents::{BlockStatus, LatencyStatus, ServerStatus, Status};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A text in the making: families with their samples.
struct Families(String);

impl Families {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            let begin = if index == 0 { '{' } else { ',' };
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{begin}{label}=\"{text}\"");
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{end} {value}");
    }
}

/// Writes a count exactly, as far as a float can.
fn count(number: u64) -> f64 {
    number as f64
}

/// Returns the text of all counters.
pub(crate) fn text(
    graph: &str,
    status: &Status,
    latencies: &[LatencyStatus],
    server: &ServerStatus,
) -> String {
    let mut out = Families(String::with_capacity(8192));
    out.family("millstream_build_info", "gauge", "Version of the program; the value is 1.");
    out.sample("millstream_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    let (name, help) = ("process_cpu_seconds_total", "CPU time of the process, user and system.");
    out.family(name, "counter", help);
    out.sample(name, &[], status.cpu_s);
    ledgers(&mut out, status);
    blocks(&mut out, graph, status);
    publications(&mut out, status);
    signals(&mut out, status);
    histograms(&mut out, latencies);
    dashboard(&mut out, server);
    out.0
}

fn ledgers(out: &mut Families, status: &Status) {
    if status.ledgers.is_empty() {
        return;
    }
    let name = "millstream_samples_total";
    out.family(name, "counter", "Samples that the stream should have had: delivered plus lost.");
    for ledger in &status.ledgers {
        out.sample(name, &[("channel", &ledger.name)], count(ledger.expected));
    }
    let name = "millstream_samples_delivered_total";
    out.family(name, "counter", "Samples that arrived.");
    for ledger in &status.ledgers {
        out.sample(name, &[("channel", &ledger.name)], count(ledger.delivered));
    }
    let name = "millstream_samples_lost_total";
    out.family(name, "counter", "Samples that were lost, by cause.");
    for ledger in &status.ledgers {
        for (cause, lost) in &ledger.lost {
            out.sample(name, &[("channel", &ledger.name), ("cause", cause)], count(*lost));
        }
    }
    if status.ledgers.iter().any(|ledger| ledger.held.is_some()) {
        let name = "millstream_samples_in_flight";
        out.family(name, "gauge", "Samples that were sent and have no outcome yet.");
        for ledger in &status.ledgers {
            out.sample(name, &[("channel", &ledger.name)], count(ledger.held.unwrap_or(0)));
        }
    }
    let packets = status.blocks.iter().filter_map(|block| {
        let packets = block.metrics.get("packets")?.as_u64()?;
        status.ledgers.iter().any(|ledger| ledger.name == block.name).then_some((block, packets))
    });
    let name = "millstream_packets_total";
    out.family(name, "counter", "Packets of samples that arrived.");
    for (block, packets) in packets {
        out.sample(name, &[("channel", &block.name)], count(packets));
    }
}

fn blocks(out: &mut Families, graph: &str, status: &Status) {
    if !status.blocks.is_empty() {
        let name = "millstream_block_busy_seconds_total";
        out.family(name, "counter", "Time in calls of the block.");
        for block in &status.blocks {
            let labels = [("graph", graph), ("block", &block.name)];
            out.sample(name, &labels, block.busy_ns as f64 / 1e9);
        }
        let name = "millstream_block_items_total";
        out.family(name, "counter", "Items that passed the block's inputs and outputs.");
        for block in &status.blocks {
            for (direction, items) in [("in", block.items_in), ("out", block.items_out)] {
                let labels =
                    [("graph", graph), ("block", block.name.as_str()), ("direction", direction)];
                out.sample(name, &labels, count(items));
            }
        }
    }
    if !status.partitions.is_empty() {
        let name = "millstream_partition_cpu_seconds_total";
        out.family(name, "counter", "CPU time of the partition's thread, user and system.");
        for partition in &status.partitions {
            let core = partition.cpu.map_or_else(String::new, |cpu| cpu.to_string());
            let labels = [("partition", partition.name.as_str()), ("core", core.as_str())];
            out.sample(name, &labels, partition.cpu_s);
        }
    }
    if !status.edges.is_empty() {
        let name = "millstream_ring_fill_ratio";
        out.family(name, "gauge", "Mean share of the ring that was filled lately, 0 to 1.");
        for edge in &status.edges {
            let label = format!("{} > {}", edge.from, edge.to);
            out.sample(name, &[("edge", &label)], edge.fill);
        }
    }
}

/// Metrics of a sink that publishes which are no causes of drops.
const PUBLISHED: [(&str, &str, &str); 4] = [
    ("offered", "millstream_messages_total", "Messages that the sink had to publish."),
    ("acknowledged", "millstream_messages_acknowledged_total", "Messages that were acknowledged."),
    ("resent", "millstream_messages_resent_total", "Messages sent again to a new connection."),
    ("connections", "millstream_sink_connections_total", "Connections of the sink."),
];

/// Writes the ledgers of the sinks that publish: blocks that were offered messages.
fn publications(out: &mut Families, status: &Status) {
    let counts = |block: &BlockStatus| {
        let metrics = block.metrics.as_object().filter(|metrics| metrics.contains_key("offered"));
        let counts = metrics.into_iter().flatten();
        let counts = counts.filter_map(|(name, value)| Some((name.clone(), value.as_u64()?)));
        counts.collect::<BTreeMap<_, _>>()
    };
    let sinks = status.blocks.iter().map(|block| (block.name.as_str(), counts(block)));
    let sinks: Vec<_> = sinks.filter(|(_, counts)| !counts.is_empty()).collect();
    if sinks.is_empty() {
        return;
    }
    for (member, name, help) in PUBLISHED {
        out.family(name, "counter", help);
        for (sink, counts) in &sinks {
            let number = counts.get(member).copied().unwrap_or(0);
            out.sample(name, &[("sink", sink)], count(number));
        }
    }
    let name = "millstream_messages_dropped_total";
    out.family(name, "counter", "Messages that were not published, by cause.");
    for (sink, counts) in &sinks {
        let is_cause = |name: &str| PUBLISHED.iter().all(|(member, ..)| *member != name);
        for (cause, number) in counts.iter().filter(|(name, _)| is_cause(name)) {
            out.sample(name, &[("sink", sink), ("cause", cause)], count(*number));
        }
    }
}

fn signals(out: &mut Families, status: &Status) {
    let values = |member: &'static str| {
        status.signals.iter().filter_map(move |signal| {
            Some((signal.get("receiver")?.as_str()?, signal.get(member)?.as_f64()?))
        })
    };
    let families = [
        ("millstream_receiver_mer_decibels", "gauge", "Modulation error ratio.", "mer_db"),
        ("millstream_receiver_packets_total", "counter", "Packets put out.", "packets"),
        (
            "millstream_receiver_uncorrected_packets_total",
            "counter",
            "Packets with errors that could not be corrected.",
            "uncorrected_packets",
        ),
    ];
    for (name, kind, help, member) in families {
        if values(member).next().is_some() {
            out.family(name, kind, help);
            values(member).for_each(|(receiver, value)| {
                out.sample(name, &[("receiver", receiver)], value);
            });
        }
    }
}

/// Writes a family for each name, with the streams that have it.
fn histograms(out: &mut Families, latencies: &[LatencyStatus]) {
    for (index, first) in latencies.iter().enumerate() {
        if latencies[..index].iter().any(|earlier| earlier.name == first.name) {
            continue;
        }
        let name = format!("millstream_{}_seconds", first.name);
        out.family(&name, "histogram", &format!("Latency: {}.", first.about));
        let same = latencies.iter().filter(|latency| latency.name == first.name);
        same.for_each(|latency| histogram(out, &name, latency));
    }
}

fn histogram(out: &mut Families, name: &str, latency: &LatencyStatus) {
    let (bucket, stream) = (format!("{name}_bucket"), latency.stream.as_str());
    let mut sum = 0;
    for (index, number) in latency.counts.iter().enumerate() {
        sum += number;
        let bound = latency.bounds.get(index).map_or("+Inf".to_owned(), f64::to_string);
        out.sample(&bucket, &[("channel", stream), ("le", &bound)], count(sum));
    }
    out.sample(&format!("{name}_sum"), &[("channel", stream)], latency.sum);
    out.sample(&format!("{name}_count"), &[("channel", stream)], count(sum));
}

fn dashboard(out: &mut Families, server: &ServerStatus) {
    let ServerStatus { clients, cpu_s, lines_sent, lines_dropped, refused, .. } = server;
    let figures = [
        ("millstream_dashboard_clients", "gauge", "Clients of the dashboard.", *clients as f64),
        ("millstream_dashboard_cpu_seconds_total", "counter", "CPU time of its server.", *cpu_s),
        (
            "millstream_dashboard_lines_total",
            "counter",
            "Lines of spectra made for clients and not dropped.",
            count(*lines_sent),
        ),
        (
            "millstream_dashboard_lines_dropped_total",
            "counter",
            "Lines that slow clients did not get.",
            count(*lines_dropped),
        ),
    ];
    for (name, kind, help, value) in figures {
        out.family(name, kind, help);
        out.sample(name, &[], value);
    }
    let name = "millstream_dashboard_refused_total";
    out.family(name, "counter", "Requests and connections that were refused, by reason.");
    for (reason, number) in refused {
        out.sample(name, &[("reason", reason)], count(*number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::{EdgeStatus, LedgerStatus, PartitionStatus};

    #[test]
    fn families_have_help_type_and_units() {
        let ledger = LedgerStatus {
            name: "radio".to_owned(),
            expected: 10,
            delivered: 7,
            lost: [("late".to_owned(), 2), ("network_loss".to_owned(), 1)].into(),
            balances: true,
            ..LedgerStatus::default()
        };
        let edge = EdgeStatus {
            from: "a.out".to_owned(),
            to: "b\"\\.in".to_owned(),
            fill: 0.5,
            ..EdgeStatus::default()
        };
        let partition = PartitionStatus { cpu: Some(3), cpu_s: 1.5, ..PartitionStatus::default() };
        let signal = serde_json::json!({"receiver": "demod", "mer_db": 30.5, "packets": 4});
        let published = serde_json::json!({
            "offered": 9, "acknowledged": 6, "broker_away": 2, "refused": 1, "resent": 4,
            "connections": 2,
        });
        let sink =
            BlockStatus { name: "nats".to_owned(), metrics: published, ..BlockStatus::default() };
        let status = Status {
            blocks: vec![sink],
            ledgers: vec![ledger],
            edges: vec![edge],
            partitions: vec![partition],
            signals: vec![signal],
            ..Status::default()
        };
        let latency = LatencyStatus {
            name: "behind",
            stream: "radio.out".to_owned(),
            about: "x",
            unit: "s",
            count: 3,
            max: 1.0,
            sum: 2.0,
            bounds: vec![1e-6, 0.5],
            counts: vec![1, 0, 2],
        };
        let other = LatencyStatus { stream: "radio.out1".to_owned(), ..latency.clone() };
        let text = text("g", &status, &[latency, other], &ServerStatus::default());
        for line in [
            "millstream_samples_total{channel=\"radio\"} 10",
            "millstream_samples_delivered_total{channel=\"radio\"} 7",
            "millstream_samples_lost_total{channel=\"radio\",cause=\"late\"} 2",
            "millstream_ring_fill_ratio{edge=\"a.out > b\\\"\\\\.in\"} 0.5",
            "millstream_partition_cpu_seconds_total{partition=\"\",core=\"3\"} 1.5",
            "millstream_receiver_mer_decibels{receiver=\"demod\"} 30.5",
            "millstream_messages_total{sink=\"nats\"} 9",
            "millstream_messages_acknowledged_total{sink=\"nats\"} 6",
            "millstream_messages_dropped_total{sink=\"nats\",cause=\"broker_away\"} 2",
            "millstream_messages_dropped_total{sink=\"nats\",cause=\"refused\"} 1",
            "millstream_messages_resent_total{sink=\"nats\"} 4",
            "millstream_sink_connections_total{sink=\"nats\"} 2",
            "millstream_behind_seconds_bucket{channel=\"radio.out\",le=\"0.000001\"} 1",
            "millstream_behind_seconds_bucket{channel=\"radio.out\",le=\"+Inf\"} 3",
            "millstream_behind_seconds_count{channel=\"radio.out\"} 3",
            "millstream_behind_seconds_count{channel=\"radio.out1\"} 3",
            "millstream_dashboard_clients 0",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}\n{text}");
        }
        let drops = text.lines().filter(|line| line.starts_with("millstream_messages_dropped"));
        assert_eq!(drops.count(), 2, "only causes of drops are there");
        let families: Vec<_> = text.lines().filter_map(|l| l.strip_prefix("# TYPE ")).collect();
        let mut once = families.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), families.len(), "each family stands once");
    }
}
