//! What is compared or reported: sets of records, as the command line names them.

use super::place::StoreArgs;
use anyhow::Context;
use millstream_lab::Record;
use millstream_lab::compare::Set;
use std::path::Path;

/// Sets of records.
#[derive(clap::Args)]
pub struct SetArgs {
    /// RUN, RUN/VARIANT or a file of records; a run of several variants is a set for each. RUN may
    /// be cut short as long as it is clear; `last` is the one that was added last.
    #[arg(value_name = "SET", required = true)]
    sets: Vec<String>,

    #[command(flatten)]
    store: StoreArgs,
}

impl SetArgs {
    /// Reads them all, in their order.
    pub fn read(&self) -> anyhow::Result<Vec<Set>> {
        let mut sets: Vec<Set> = Vec::new();
        for name in &self.sets {
            sets.extend(by_variant(self.records(name)?, self.sets.len() > 1));
        }
        for index in 1..sets.len() {
            let same = sets[..index].iter().filter(|set| set.label == sets[index].label).count();
            if same > 0 {
                sets[index].label += &format!(" ({})", same + 1);
            }
        }
        Ok(sets)
    }

    fn records(&self, name: &str) -> anyhow::Result<Vec<Record>> {
        if Path::new(name).is_file() {
            let text = std::fs::read_to_string(name).with_context(|| name.to_owned())?;
            let records = Record::parse_all(&text).with_context(|| name.to_owned())?;
            anyhow::ensure!(!records.is_empty(), "{name} holds no record");
            return Ok(records);
        }
        let store = self.store.open()?;
        let (run, variant) = match name.split_once('/') {
            Some((run, variant)) => (run, Some(variant)),
            None => (name, None),
        };
        let run = store.find(run)?;
        let records = store.records(&run, variant)?;
        let variant = variant.unwrap_or_default();
        anyhow::ensure!(!records.is_empty(), "the run `{run}` has no variant `{variant}`");
        Ok(records)
    }
}

/// A set for each run and variant, in the order of their records.
fn by_variant(records: Vec<Record>, with_run: bool) -> Vec<Set> {
    let several_runs = with_run || records.windows(2).any(|pair| pair[0].run != pair[1].run);
    let several_variants = records.windows(2).any(|pair| pair[0].variant != pair[1].variant);
    let mut sets: Vec<Set> = Vec::new();
    for record in records {
        let label = match (several_runs, several_variants || !record.variant.is_empty()) {
            (_, false) => record.run.clone(),
            (true, true) => format!("{}/{}", record.run, record.variant),
            (false, true) => record.variant.clone(),
        };
        match sets.iter_mut().find(|set| set.label == label) {
            Some(set) => set.records.push(record),
            None => sets.push(Set { label, records: vec![record] }),
        }
    }
    // Starts are in random order: the plan's order of variants is not known, their names are.
    sets.sort_by_cached_key(|set| natural(&set.label));
    sets
}

/// A key that sorts versions as people do: 6.9 before 6.18.
fn natural(label: &str) -> Vec<(String, u64)> {
    let mut parts: Vec<(String, u64)> = Vec::new();
    let (mut text, mut digits) = (String::new(), String::new());
    for character in label.chars().chain(['\n']) {
        if character.is_ascii_digit() {
            digits.push(character);
            continue;
        }
        if !digits.is_empty() {
            let number = std::mem::take(&mut digits).parse().unwrap_or(u64::MAX);
            parts.push((std::mem::take(&mut text), number));
        }
        text.push(character);
    }
    parts.push((text, 0));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_their_order() {
        let mut labels = ["6.18 rt", "6.9", "6.1", "5.10", "a", "6.18"];
        labels.sort_by_cached_key(|label| natural(label));
        assert_eq!(labels, ["5.10", "6.1", "6.9", "6.18", "6.18 rt", "a"]);
    }
}
