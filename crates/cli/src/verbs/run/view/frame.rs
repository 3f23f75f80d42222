//! One picture: text from the measurements between two moments.

use crate::crossings;
use crate::graph_run;
use crate::live::fit;
use crate::output::percent;
use crate::table::Table;
use millstream_cpu::threads::ThreadInfo;
use millstream_flow::{BlockCost, EdgeCost, PartitionStats, Profile, Snapshot};
use std::time::Duration;

/// Length of a bar.
const BAR: usize = 10;
/// Largest number of shown events.
const EVENTS: usize = 3;

/// The content of a picture. Pairs are of the moment before and the present one.
pub struct ViewFrame<'a> {
    pub graph: &'a str,
    pub elapsed: Duration,
    /// The costs between the moments.
    pub load: &'a Profile,
    pub snapshots: (&'a Snapshot, &'a Snapshot),
    pub threads: (&'a [ThreadInfo], &'a [ThreadInfo]),
    /// Sizes of the caches of a CPU, from the nearest, bytes.
    pub caches: &'a [u64],
    pub signals: &'a [String],
    pub events: &'a [String],
}

/// Share of the time that the blocks of a partition worked.
pub fn busy(load: &Profile, snapshot: &Snapshot, partition: &str) -> f64 {
    let blocks = snapshot.blocks.iter().filter(|block| block.partition == partition);
    let costs = blocks.filter_map(|block| load.block(&block.name));
    let busy_ns: u64 = costs.map(|cost| cost.busy_ns).sum();
    // Times are estimates where calls are short; a share never exceeds 1.
    (busy_ns as f64 / 1e9 / load.elapsed_s.max(1e-9)).min(1.0)
}

impl ViewFrame<'_> {
    /// At most `rows` lines of at most `columns` characters; the rest is counted.
    pub fn lines(&self, columns: usize, rows: usize) -> Vec<String> {
        let title = format!("{}  {:.1} s", self.graph, self.elapsed.as_secs_f64());
        let mut all = vec![title];
        all.extend(self.partitions().lines(columns));
        all.push(String::new());
        all.extend(self.blocks().lines(columns));
        all.push(String::new());
        all.extend(self.edges().lines(columns));
        let (before, now) = self.snapshots;
        all.extend(crossings::lines(Some(before), now, self.load.elapsed_s));
        all.extend(self.signals.iter().cloned());
        all.extend(self.metrics());
        all.extend(self.events.iter().rev().take(EVENTS).rev().cloned());
        let mut all: Vec<String> =
            all.iter().map(|line| fit(line, columns + 1).to_owned()).collect();
        if all.len() > rows {
            let hidden = all.len() - rows.saturating_sub(1);
            all.truncate(rows.saturating_sub(1));
            let more = format!("({hidden} lines more on a higher terminal)");
            all.push(fit(&more, columns + 1).to_owned());
        }
        all
    }

    fn per_second(&self, count: u64) -> String {
        scaled(count as f64 / self.load.elapsed_s.max(1e-9))
    }

    fn partitions(&self) -> Table<&PartitionStats> {
        let (before, now) = self.snapshots;
        let share = |partition: &PartitionStats| busy(self.load, now, &partition.name);
        let waits = |partition: &PartitionStats| {
            let before = before.partitions.iter().find(|other| other.name == partition.name);
            partition.waits.saturating_sub(before.map_or(0, |before| before.waits))
        };
        let thread = |partition: &PartitionStats| find(self.threads.1, partition);
        let cpu = |partition: &PartitionStats| match (partition.cpu, thread(partition)) {
            (Some(cpu), _) => format!("={cpu}"),
            (None, Some(thread)) => thread.cpu.to_string(),
            (None, None) => "-".to_owned(),
        };
        let used = |partition: &PartitionStats| {
            let (before, now) = (find(self.threads.0, partition)?, thread(partition)?);
            let used_ns = now.cpu_ns.saturating_sub(before.cpu_ns);
            Some(used_ns as f64 / 1e9 / self.load.elapsed_s.max(1e-9))
        };
        let migrations = |partition: &PartitionStats| {
            thread(partition).and_then(|thread| thread.migrations).map(|count| count.to_string())
        };
        Table::of(&now.partitions)
            .left("partition", |one| &one.name)
            .right("busy", |one| percent(share(one)))
            .right("CPU", cpu)
            .right("uses", |one| used(one).map_or_else(dash, percent))
            .right("migrations", |one| migrations(one).unwrap_or_else(dash))
            .right("waits/s", |one| self.per_second(waits(one)))
            .left("", |one| bar(share(one), BAR))
    }

    fn blocks(&self) -> Table<&BlockCost> {
        let elapsed_ns = self.load.elapsed_s.max(1e-9) * 1e9;
        let stats = |block: &BlockCost| self.snapshots.1.block(&block.name);
        Table::of(&self.load.blocks)
            .left("block", |block| &block.name)
            .right("core", |block| percent(block.busy_ns as f64 / elapsed_ns))
            .right("items/s", |block| self.per_second(block.items()))
            .right("ns/item", |block| format!("{:.2}", block.ns_per_item()))
            .right("calls/s", |block| self.per_second(block.calls))
            .right("set KiB", |block| block.working_set_bytes.div_ceil(1024))
            .left("cache", |block| self.cache(block.working_set_bytes))
            .left("partition", |block| stats(block).map_or("", |stats| &stats.partition))
    }

    fn edges(&self) -> Table<&EdgeCost> {
        Table::of(&self.load.edges)
            .left("connection", |edge| format!("{} > {}", edge.writer(), edge.reader()))
            .left("filled", |edge| bar(edge.fill, BAR))
            .right("", |edge| percent(edge.fill))
            .right("starved/s", |edge| self.per_second(edge.starved))
            .right("blocked/s", |edge| self.per_second(edge.blocked))
            .right("items", |edge| scaled(edge.capacity_items as f64))
    }

    /// The nearest cache with room for `bytes`, by size alone.
    fn cache(&self, bytes: u64) -> String {
        let level = self.caches.iter().position(|size| bytes <= *size);
        match level {
            Some(level) => format!("~L{}", level + 1),
            None if self.caches.is_empty() => "-".to_owned(),
            None => "memory".to_owned(),
        }
    }

    /// The metrics of blocks that publish any non-zero value.
    fn metrics(&self) -> Vec<String> {
        let line = |block: &millstream_flow::BlockStats| {
            let values = graph_run::metrics(block);
            (!values.is_empty()).then(|| format!("{}: {}", block.name, values.join(", ")))
        };
        self.snapshots.1.blocks.iter().filter_map(line).collect()
    }
}

fn find<'a>(threads: &'a [ThreadInfo], partition: &PartitionStats) -> Option<&'a ThreadInfo> {
    threads.iter().find(|thread| thread.tid == partition.tid)
}

fn dash() -> String {
    "-".to_owned()
}

/// Formats a count in three digits with a unit: `999`, `1.23 k`, `45.6 M`.
fn scaled(value: f64) -> String {
    const UNITS: [&str; 5] = ["", " k", " M", " G", " T"];
    let (mut value, mut unit) = (value, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    let decimals = match value {
        _ if unit == 0 => 0,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}{}", UNITS[unit])
}

/// Draws a share as a bar.
fn bar(share: f64, width: usize) -> String {
    let filled = (share.clamp(0.0, 1.0) * width as f64).round() as usize;
    format!("[{}{}]", "#".repeat(filled), ".".repeat(width - filled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::BlockStats;
    use std::collections::BTreeMap;

    fn block(name: &str, partition: &str) -> BlockStats {
        BlockStats {
            name: name.into(),
            partition: partition.into(),
            calls: 0,
            items_in: 0,
            items_out: 0,
            busy_ns: 0,
            metrics: BTreeMap::new(),
            messages: None,
        }
    }

    fn picture(columns: usize, rows: usize) -> Vec<String> {
        let blocks = vec![block("source", "front"), block("demod", "back")];
        let partition = |name: &str, waits: u64, tid: u32| PartitionStats {
            name: name.into(),
            cpu: None,
            tid,
            sweeps: 0,
            waits,
        };
        let partitions = |waits| vec![partition("front", waits, 7), partition("back", 0, 8)];
        let before =
            Snapshot { blocks: blocks.clone(), partitions: partitions(0), latency: Vec::new() };
        let now = Snapshot { blocks, partitions: partitions(50), latency: Vec::new() };
        let cost = |name: &str, busy_ns, working_set_bytes| BlockCost {
            name: name.into(),
            calls: 500,
            items_in: 0,
            items_out: 1_000_000,
            busy_ns,
            working_set_bytes,
        };
        let edge = EdgeCost {
            from: "source.out".into(),
            to: "demod.in".into(),
            capacity_items: 8192,
            fill: 0.5,
            starved: 10,
            ..EdgeCost::default()
        };
        let load = Profile {
            elapsed_s: 0.5,
            blocks: vec![cost("source", 5_000_000, 16 << 10), cost("demod", 450_000_000, 64 << 10)],
            edges: vec![edge],
        };
        let frame = ViewFrame {
            graph: "rx.toml",
            elapsed: Duration::from_millis(12_300),
            load: &load,
            snapshots: (&before, &now),
            threads: (&[], &[]),
            caches: &[48 << 10, 2 << 20],
            signals: &["SNR 20 dB".into()],
            events: &["1.0 s: moved".into()],
        };
        frame.lines(columns, rows)
    }

    #[test]
    fn everything_is_on_a_terminal_of_80_columns() {
        let expected = "\
rx.toml  12.3 s
partition  busy  CPU  uses  migrations  waits/s
front       1 %    -     -           -      100  [..........]
back       90 %    -     -           -        0  [#########.]

block   core  items/s  ns/item  calls/s  set KiB  cache  partition
source   1 %   2.00 M     5.00   1.00 k       16  ~L1    front
demod   90 %   2.00 M   450.00   1.00 k       64  ~L2    back

connection      filled              starved/s  blocked/s   items
source > demod  [#####.....]  50 %         20          0  8.19 k
SNR 20 dB
1.0 s: moved";
        assert_eq!(picture(79, 23).join("\n"), expected);
    }

    #[test]
    fn a_small_terminal_shows_what_matters_most() {
        let lines = picture(19, 6);
        assert!(lines.iter().all(|line| line.chars().count() <= 19), "{lines:#?}");
        assert_eq!(lines.len(), 6);
        assert_eq!(lines[2], "front       1 %");
        assert_eq!(lines[5], "(8 lines more on a ");
    }

    #[test]
    fn counts_have_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (999.4, "999"),
            (999.5, "1.00 k"),
            (12_345.0, "12.3 k"),
            (99_960.0, "100 k"),
            (1.5e6, "1.50 M"),
            (2e15, "2000 T"),
        ] {
            assert_eq!(scaled(value), text);
        }
    }

    #[test]
    fn bars_fill_up() {
        assert_eq!(bar(0.0, 4), "[....]");
        assert_eq!(bar(0.5, 4), "[##..]");
        assert_eq!(bar(7.0, 4), "[####]");
    }
}
