//! The sides of a comparison.

use std::collections::BTreeMap;

use crate::record::{Record, each_once};

/// Records that are one side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    /// The label.
    pub label: String,
    /// The records.
    pub records: Vec<Record>,
}

impl Set {
    /// Returns the run of the records.
    #[must_use]
    pub fn run(&self) -> &str {
        self.records.first().map_or(&self.label, |record| &record.run)
    }

    /// Returns their variant.
    #[must_use]
    pub fn variant(&self) -> &str {
        self.records.first().map_or("", |record| &record.variant)
    }

    /// Groups records into a set for each run and variant: runs in the order of their records,
    /// variants in the order in which they were given, independent of the order of their starts.
    /// Labels name the run when there are several, or when `with_run` announces others.
    #[must_use]
    pub fn of_records(records: Vec<Record>, with_run: bool) -> Vec<Self> {
        let several_runs = with_run || records.windows(2).any(|pair| pair[0].run != pair[1].run);
        let several_variants = records.windows(2).any(|pair| pair[0].variant != pair[1].variant);
        let mut runs: Vec<String> = Vec::new();
        let mut sets: Vec<((usize, u32), Self)> = Vec::new();
        for record in records {
            let label = match (several_runs, several_variants || !record.variant.is_empty()) {
                (_, false) => record.run.clone(),
                (true, true) => format!("{}/{}", record.run, record.variant),
                (false, true) => record.variant.clone(),
            };
            if let Some((_, set)) = sets.iter_mut().find(|(_, set)| set.label == label) {
                set.records.push(record);
                continue;
            }
            let run = runs.iter().position(|run| *run == record.run).unwrap_or_else(|| {
                runs.push(record.run.clone());
                runs.len() - 1
            });
            sets.push(((run, record.side), Self { label, records: vec![record] }));
        }
        sets.sort_by_key(|(place, _)| *place);
        sets.into_iter().flat_map(|(_, set)| set.by_topology()).collect()
    }

    /// Splits records of one title whose packets went different ways: they are no samples of the
    /// same thing. All others stay with the first of these sets.
    fn by_topology(self) -> Vec<Self> {
        let ways = ways(&self.records);
        let mut sets: Vec<(Option<String>, Self)> = Vec::new();
        for record in self.records {
            let several = ways.get(&record.title()).is_some_and(|ways| ways.len() > 1);
            let way = several.then(|| record.measured.topology.clone());
            let of_way = |set: &&mut (Option<String>, Self)| way.is_none() || set.0 == way;
            if let Some((_, set)) = sets.iter_mut().find(of_way) {
                set.records.push(record);
            } else if let Some((free, set)) = sets.first_mut().filter(|(way, _)| way.is_none()) {
                free.clone_from(&way);
                set.records.push(record);
            } else {
                sets.push((way, Self { label: self.label.clone(), records: vec![record] }));
            }
        }
        sets.into_iter().map(|(_, set)| set).collect()
    }

    /// Adds the topology to the labels of sets whose packets went other ways than those of another
    /// set: such a comparison must not look like one of equal ways.
    pub fn tell_topologies(sets: &mut [Self]) {
        let all = ways(sets.iter().flat_map(|set| &set.records));
        let differ = |record: &&Record| all.get(&record.title()).is_some_and(|ways| ways.len() > 1);
        for set in sets {
            let ways = set.records.iter().filter(differ).map(|record| &record.measured.topology);
            let named = |way: &String| if way.is_empty() { "way unknown" } else { way }.to_owned();
            let ways = each_once(ways.map(named));
            if !ways.is_empty() {
                set.label += &format!(", {}", ways.join(" and "));
            }
        }
    }
}

/// The topologies of each title.
fn ways<'r>(records: impl IntoIterator<Item = &'r Record>) -> BTreeMap<String, Vec<String>> {
    let mut ways: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for record in records {
        let of_title = ways.entry(record.title()).or_default();
        if !of_title.contains(&record.measured.topology) {
            of_title.push(record.measured.topology.clone());
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn variants_stand_as_they_were_given_and_runs_as_they_came() {
        let place = |run: &str, variant: &str, side| {
            let (run, variant) = (run.to_owned(), variant.to_owned());
            Record { run, variant, side, ..record("timer", &[5]) }
        };
        let labels = |records: &[Record], with_run| -> Vec<String> {
            let sets = Set::of_records(records.to_vec(), with_run);
            sets.into_iter().map(|set| set.label).collect()
        };
        let shuffled = [place("r", "slow", 2), place("r", "6.1", 0), place("r", "6.1 again", 1)];
        assert_eq!(labels(&shuffled, false), ["6.1", "6.1 again", "slow"]);
        let two = [place("night", "b", 1), place("day", "b", 1), place("night", "a", 0)];
        assert_eq!(labels(&two, false), ["night/a", "night/b", "day/b"]);
        assert_eq!(labels(&[place("r", "", 0)], true), ["r"]);
    }

    #[test]
    fn records_of_different_ways_are_not_pooled_and_their_sets_name_the_ways() {
        let over = |name: &str, variant: &str, topology: &str| {
            let mut one = Record { variant: variant.to_owned(), ..record(name, &[5]) };
            topology.clone_into(&mut one.measured.topology);
            one
        };
        let sets = |records: &[Record]| -> Vec<(String, usize)> {
            let mut sets = Set::of_records(records.to_vec(), false);
            Set::tell_topologies(&mut sets);
            sets.into_iter().map(|set| (set.label, set.records.len())).collect()
        };
        let found = |expected: &[(&str, usize)]| -> Vec<(String, usize)> {
            expected.iter().map(|(label, count)| ((*label).to_owned(), *count)).collect()
        };
        // One measurement without packets, one over two ways.
        let mixed = ["veth", "bridge", "veth"].map(|way| over("udp", "", way));
        let mixed = [&[over("timer", "", "")][..], &mixed].concat();
        assert_eq!(sets(&mixed), found(&[("r1, veth", 3), ("r1, bridge", 1)]));
        // Variants over different ways are compared, and say so.
        let variants = [over("udp", "a", "veth"), over("udp", "b", "bridge")];
        assert_eq!(sets(&variants), found(&[("a, veth", 1), ("b, bridge", 1)]));
        let unknown = [over("udp", "old", ""), over("udp", "new", "veth")];
        assert_eq!(sets(&unknown), found(&[("old, way unknown", 1), ("new, veth", 1)]));
        // Nothing is said where all went the same way, whatever the title.
        let same = [over("udp", "a", "veth"), over("udp", "b", "veth"), over("link", "b", "")];
        assert_eq!(sets(&same), found(&[("a", 1), ("b", 2)]));
    }
}
