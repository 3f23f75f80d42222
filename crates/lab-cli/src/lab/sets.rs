//! Sets of records to compare or report, as command line arguments.

use super::kernels::is_under;
use super::place::StoreArgs;
use anyhow::Context;
use millstream_measure::compare::Set;
use millstream_measure::{Failure, Record};
use std::path::Path;

/// Sets of records.
#[derive(clap::Args)]
pub struct SetArgs {
    /// RUN, RUN/VARIANT or a file of records. A run with several variants gives a set for each. An
    /// unambiguous beginning of RUN is enough; `last` is the run that was added last.
    #[arg(value_name = "SET", required = true)]
    sets: Vec<String>,

    #[command(flatten)]
    store: StoreArgs,
}

impl SetArgs {
    /// Reads all sets, in their order.
    pub fn read(&self) -> anyhow::Result<Vec<Set>> {
        let mut sets: Vec<Set> = Vec::new();
        for name in &self.sets {
            sets.extend(Set::of_records(self.records(name)?, self.sets.len() > 1));
        }
        Set::tell_topologies(&mut sets);
        for index in 1..sets.len() {
            let same = sets[..index].iter().filter(|set| set.label == sets[index].label).count();
            if same > 0 {
                sets[index].label += &format!(" ({})", same + 1);
            }
        }
        Ok(sets)
    }

    /// Starts of their runs without records.
    pub fn failures(&self) -> anyhow::Result<Vec<Failure>> {
        let mut failures: Vec<Failure> = Vec::new();
        for name in &self.sets {
            let found = if Path::new(name).is_file() {
                let text = std::fs::read_to_string(name).with_context(|| name.to_owned())?;
                text.lines().filter_map(Failure::of_line).collect()
            } else {
                let store = self.store.open()?;
                let (run, variant) = run_and_variant(name);
                let mut failures = store.failures(&store.find(run)?);
                // A failed boot is missing from every variant under its kernel.
                let is_of = |one: &Failure| variant.is_none_or(|it| is_under(&one.variant, it));
                failures.retain(is_of);
                failures
            };
            let new: Vec<_> = found.into_iter().filter(|one| !failures.contains(one)).collect();
            failures.extend(new);
        }
        Ok(failures)
    }

    fn records(&self, name: &str) -> anyhow::Result<Vec<Record>> {
        if Path::new(name).is_file() {
            let text = std::fs::read_to_string(name).with_context(|| name.to_owned())?;
            let records = Record::parse_all(&text).with_context(|| name.to_owned())?;
            anyhow::ensure!(!records.is_empty(), "{name} holds no record");
            return Ok(records);
        }
        let store = self.store.open()?;
        let (run, variant) = run_and_variant(name);
        let run = store.find(run)?;
        let records = store.records(&run, variant);
        let variant = variant.unwrap_or_default();
        anyhow::ensure!(
            !records.is_empty(),
            "the run `{run}` has no variant `{variant}`; `millstream-lab lab list` shows the runs"
        );
        Ok(records)
    }
}

fn run_and_variant(name: &str) -> (&str, Option<&str>) {
    name.split_once('/').map_or((name, None), |(run, variant)| (run, Some(variant)))
}
