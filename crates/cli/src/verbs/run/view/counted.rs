//! Cache misses and page faults of the threads of a running graph, where the machine counts them.

use millstream_cpu::counters::{CountedEvent, CounterRefusal, ThreadCounter};
use millstream_flow::{Profile, Snapshot};
use serde::Serialize;
use std::collections::BTreeMap;

/// What is counted, and its name in a sentence.
const EVENTS: [(CountedEvent, &str); 3] = [
    (CountedEvent::LastLevelMisses, "misses of the last cache"),
    (CountedEvent::L1dMisses, "misses of the first data cache"),
    (CountedEvent::PageFaults, "page faults"),
];

/// What a partition's thread counted, and the items of its busiest block meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ThreadCounts {
    pub items: u64,
    pub last_level_misses: Option<u64>,
    pub l1d_misses: Option<u64>,
    pub page_faults: Option<u64>,
}

/// The counters of every thread of a graph.
#[derive(Default)]
pub struct CacheCounters {
    threads: BTreeMap<u32, Vec<Option<Kept>>>,
    /// Since the start, by partition.
    pub totals: BTreeMap<String, ThreadCounts>,
    /// Names of what is not counted, by the reason with the next step.
    refusals: BTreeMap<String, Vec<&'static str>>,
}

/// An open counter and its last count.
struct Kept {
    counter: ThreadCounter,
    last: u64,
}

impl ThreadCounts {
    /// What was counted, as words: `12 page faults`.
    pub fn words(&self) -> Vec<String> {
        let counts = [self.last_level_misses, self.l1d_misses, self.page_faults];
        let word = |((_, name), count): ((CountedEvent, &str), Option<u64>)| {
            Some(format!("{} {name}", count?))
        };
        EVENTS.into_iter().zip(counts).filter_map(word).collect()
    }

    /// Misses or faults for an item.
    pub fn per_item(&self, count: Option<u64>) -> Option<f64> {
        count.filter(|_| self.items > 0).map(|count| count as f64 / self.items as f64)
    }

    fn add(&mut self, more: &Self) {
        let add = |sum: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *sum.get_or_insert(0) += more;
            }
        };
        self.items += more.items;
        add(&mut self.last_level_misses, more.last_level_misses);
        add(&mut self.l1d_misses, more.l1d_misses);
        add(&mut self.page_faults, more.page_faults);
    }
}

impl CacheCounters {
    /// Returns what the thread of each partition counted since the last step, while `load` passed.
    /// A thread that is new is counted from now on, while the graph runs.
    pub fn step(
        &mut self,
        load: &Profile,
        snapshot: &Snapshot,
        runs: bool,
    ) -> BTreeMap<String, ThreadCounts> {
        let mut since = BTreeMap::new();
        for partition in snapshot.partitions.iter().filter(|partition| partition.tid > 0) {
            let Some(counters) = self.threads.get_mut(&partition.tid) else {
                if runs {
                    self.open(partition.tid);
                }
                continue;
            };
            let [last_level_misses, l1d_misses, page_faults] =
                std::array::from_fn(|at| counters[at].as_mut().and_then(Kept::since));
            let mine = snapshot.blocks.iter().filter(|block| block.partition == partition.name);
            let items = mine.filter_map(|block| load.block(&block.name)).map(|cost| cost.items());
            let items = items.max().unwrap_or(0);
            let counted = ThreadCounts { items, last_level_misses, l1d_misses, page_faults };
            self.totals.entry(partition.name.clone()).or_default().add(&counted);
            since.insert(partition.name.clone(), counted);
        }
        since
    }

    fn open(&mut self, tid: u32) {
        let counters = EVENTS.map(|(event, name)| {
            let refused = |error| CounterRefusal::of_this_machine(event, error).to_string();
            ThreadCounter::open(event, tid)
                .map_err(|error| {
                    let names = self.refusals.entry(refused(error)).or_default();
                    if !names.contains(&name) {
                        names.push(name);
                    }
                })
                .ok()
                .map(|counter| Kept { counter, last: 0 })
        });
        self.threads.insert(tid, counters.into());
    }

    /// Sentences that say what is not counted, why, and what to do.
    pub fn sentences(&self) -> Vec<String> {
        let sentence = |(reason, names): (&String, &Vec<&str>)| {
            format!("not counted: {}: {reason}", names.join(", "))
        };
        self.refusals.iter().map(sentence).collect()
    }
}

impl Kept {
    /// The count since the last call; `None` if it cannot be read.
    fn since(&mut self) -> Option<u64> {
        let now = self.counter.read().ok()?;
        let since = now.saturating_sub(self.last);
        self.last = now;
        Some(since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::blocks::{NullSink, NullSource};
    use millstream_flow::{Graph, Plan};

    #[test]
    fn the_thread_of_a_running_graph_is_counted_or_the_reason_is_told() {
        let mut graph = Graph::new();
        graph.add("source", NullSource::<u8>::new()).unwrap();
        graph.add("sink", NullSink::<u8>::new()).unwrap();
        graph.chain(&["source", "sink"]).unwrap();
        let running = graph.start(&Plan::default()).unwrap();
        let (mut counters, mut seen) = (CacheCounters::default(), BTreeMap::new());
        let mut before = running.profile();
        while seen.values().all(|one: &ThreadCounts| one.items == 0) {
            std::thread::sleep(std::time::Duration::from_millis(5));
            let now = running.profile();
            seen = counters.step(&now.since(&before), &running.snapshot(), true);
            before = now;
        }
        running.stopper().stop();
        running.wait().unwrap();
        let sentences = counters.sentences().join("; ");
        for (count, (event, name)) in seen.values().flat_map(|one| {
            [one.last_level_misses, one.l1d_misses, one.page_faults].into_iter().zip(EVENTS)
        }) {
            assert_ne!(count.is_some(), sentences.contains(name), "{event:?}: {sentences}");
        }
        assert!(counters.totals.values().any(|total| total.items > 0));
    }

    #[test]
    fn one_reason_is_one_sentence() {
        let mut counters = CacheCounters::default();
        counters.refusals.insert("no PMU; get one".into(), vec!["misses", "faults"]);
        assert_eq!(counters.sentences(), ["not counted: misses, faults: no PMU; get one"]);
    }

    #[test]
    fn what_is_not_counted_is_no_zero() {
        let mut total = ThreadCounts::default();
        total.add(&ThreadCounts { items: 10, l1d_misses: Some(5), ..ThreadCounts::default() });
        total.add(&ThreadCounts { items: 10, l1d_misses: Some(6), ..ThreadCounts::default() });
        assert_eq!(total.per_item(total.l1d_misses), Some(0.55));
        assert_eq!(total.per_item(total.page_faults), None);
        assert_eq!(ThreadCounts::default().per_item(Some(3)), None, "no item passed");
    }
}
