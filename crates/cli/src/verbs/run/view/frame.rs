//! One picture: text from the measurements between two moments.

use super::caches::Caches;
use super::counted::ThreadCounts;
use super::words::{bar, dash, nearest, scaled, wrapped};
use crate::crossings;
use crate::graph_run;
use crate::live::fit;
use crate::output::percent;
use crate::table::Table;
use millstream_cpu::threads::ThreadInfo;
use millstream_flow::{BlockCost, EdgeCost, PartitionStats, Profile, Snapshot};
use std::collections::BTreeMap;
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
    pub caches: &'a Caches<'a>,
    /// What the threads counted between the moments, by partition.
    pub counted: &'a BTreeMap<String, ThreadCounts>,
    /// What is not counted, and why.
    pub missing: &'a [String],
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
        all.extend(self.missing.iter().flat_map(|sentence| wrapped(sentence, columns)));
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
        let mut table = Table::of(&now.partitions)
            .left("partition", |one| &one.name)
            .right("busy", |one| percent(share(one)))
            .right("CPU", cpu)
            .right("uses", |one| used(one).map_or_else(dash, percent));
        type Count = fn(&ThreadCounts) -> Option<u64>;
        let misses: [(&str, Count); 2] =
            [("LLC/item", |one| one.last_level_misses), ("L1d/item", |one| one.l1d_misses)];
        for (heading, count) in misses {
            if self.counted.values().any(|one| count(one).is_some()) {
                let per_item = |one: &ThreadCounts| one.per_item(count(one));
                table = table.right(heading, |one: &PartitionStats| {
                    let value = self.counted.get(&one.name).and_then(per_item);
                    value.map_or_else(dash, |value| format!("{value:.3}"))
                });
            }
        }
        table = table
            .right("migrations", |one| migrations(one).unwrap_or_else(dash))
            .right("waits/s", |one| self.per_second(waits(one)));
        let faults = |name: &str| self.counted.get(name).and_then(|one| one.page_faults);
        if now.partitions.iter().any(|one| faults(&one.name).is_some()) {
            table = table.right("faults/s", |one| {
                faults(&one.name).map_or_else(dash, |count| self.per_second(count))
            });
        }
        table.left("", |one| bar(share(one), BAR))
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
            .left("cache", |block| nearest(self.caches.block(&block.name, block.working_set_bytes)))
            .left("partition", |block| stats(block).map_or("", |stats| &stats.partition))
    }

    fn edges(&self) -> Table<&EdgeCost> {
        let place = |edge: &EdgeCost| self.caches.edge(self.load, edge);
        let cpus = |edge: &EdgeCost| match place(edge).cpus {
            [Some(writer), Some(reader)] if writer == reader => writer.to_string(),
            [writer, reader] => {
                let [writer, reader] =
                    [writer, reader].map(|cpu| cpu.map_or_else(dash, |cpu| cpu.to_string()));
                format!("{writer}>{reader}")
            }
        };
        Table::of(&self.load.edges)
            .left("connection", |edge| format!("{} > {}", edge.writer(), edge.reader()))
            .right("filled", |edge| percent(edge.fill))
            .right("starved/s", |edge| self.per_second(edge.starved))
            .right("blocked/s", |edge| self.per_second(edge.blocked))
            .right("used KiB", |edge| place(edge).buffer_bytes.div_ceil(1024))
            .left("cache", |edge| nearest(place(edge).cache))
            .left("CPUs", cpus)
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

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_cpu::{Cache, Core, Topology};
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

    fn thread(tid: u32, cpu: u32) -> ThreadInfo {
        ThreadInfo {
            tid,
            name: String::new(),
            cpu,
            allowed: String::new(),
            class: String::new(),
            nice: 0,
            cpu_ns: 0,
            run_delay_ns: None,
            sleeps: 0,
            preemptions: 0,
            migrations: None,
        }
    }

    /// Two CPUs with 48 KiB and 2 MiB each, and 32 MiB for both.
    fn topology() -> Topology {
        let flat = Topology::flat(&[0, 1].into_iter().collect());
        let cache = |core: &Core, level, size_bytes| Cache {
            level,
            size_bytes,
            shared_by: match level {
                3 => [0, 1].into_iter().collect(),
                _ => [core.cpu].into_iter().collect(),
            },
        };
        let caches = |core: &Core| {
            [(1, 48 << 10), (2, 2 << 20), (3, 32 << 20)]
                .map(|(level, bytes)| cache(core, level, bytes))
                .to_vec()
        };
        let cores = flat.cores.into_iter();
        Topology { cores: cores.map(|core| Core { caches: caches(&core), ..core }).collect() }
    }

    fn picture(columns: usize, rows: usize) -> Vec<String> {
        let counted = ThreadCounts {
            items: 1_000_000,
            last_level_misses: Some(12_000),
            l1d_misses: Some(125_000),
            page_faults: Some(1),
        };
        let missing = "not counted: a long sentence about what a counter is, why there is none, \
                       and what to do";
        picture_of(columns, rows, &[("back".to_owned(), counted)].into(), &[missing.to_owned()])
    }

    fn picture_of(
        columns: usize,
        rows: usize,
        counted: &BTreeMap<String, ThreadCounts>,
        missing: &[String],
    ) -> Vec<String> {
        let blocks = vec![block("source", "front"), block("demod", "back")];
        let partition = |name: &str, waits: u64, tid: u32| PartitionStats {
            name: name.into(),
            cpu: (tid == 8).then_some(1),
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
            item_bytes: 8,
            items: 1_000_000,
            capacity_items: 8192,
            fill: 0.5,
            looks: 500,
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
            caches: &Caches {
                topology: Some(&topology()),
                snapshot: &now,
                threads: &[thread(7, 0)],
            },
            counted,
            missing,
            signals: &["SNR 20 dB".into()],
            events: &["1.0 s: moved".into()],
        };
        frame.lines(columns, rows)
    }

    #[test]
    fn everything_is_on_a_terminal_of_80_columns() {
        let expected = "\
rx.toml  12.3 s
partition  busy  CPU  uses  LLC/item  L1d/item  migrations  waits/s  faults/s
front       1 %    -     -         -         -           -      100         -
back       90 %   =1     -     0.012     0.125           -        0         2

block   core  items/s  ns/item  calls/s  set KiB  cache  partition
source   1 %   2.00 M     5.00   1.00 k       16  ~L1    front
demod   90 %   2.00 M   450.00   1.00 k       64  ~L2    back

connection      filled  starved/s  blocked/s  used KiB  cache  CPUs
source > demod    50 %         20          0        64  ~L3    0>1
SNR 20 dB
1.0 s: moved
not counted: a long sentence about what a counter is, why there is none, and
what to do";
        assert_eq!(picture(79, 23).join("\n"), expected);
    }

    #[test]
    fn without_counters_of_the_processor_there_are_no_columns_for_them() {
        let faults = ThreadCounts { items: 1, page_faults: Some(1), ..ThreadCounts::default() };
        let lines = picture_of(79, 23, &[("back".to_owned(), faults)].into(), &[]);
        let expected = "partition  busy  CPU  uses  migrations  waits/s  faults/s";
        assert_eq!(lines[1], expected);
        assert_eq!(
            lines[3],
            "back       90 %   =1     -           -        0         2  [#########.]"
        );
        assert!(picture_of(79, 23, &BTreeMap::new(), &[])[1].ends_with("waits/s"));
    }

    #[test]
    fn a_small_terminal_shows_what_matters_most() {
        let lines = picture(19, 6);
        assert!(lines.iter().all(|line| line.chars().count() <= 19), "{lines:#?}");
        assert_eq!(lines.len(), 6);
        assert_eq!(lines[2], "front       1 %");
        assert_eq!(lines[5], "(13 lines more on a");
    }
}
