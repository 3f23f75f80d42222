//! The sides of a comparison.

use crate::record::Record;

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
        sets.into_iter().map(|(_, set)| set).collect()
    }
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
}
