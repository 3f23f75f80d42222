//! The entries of a plan that a user wrote, which the tuner leaves unchanged.

use crate::plan::Plan;
use toml::{Table, Value};

/// The written entries of a plan: a key that is written with its default value is a choice too, so
/// this is the text and not the [`Plan`] read from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pins(Table);

impl Pins {
    /// Takes the entries of a plan as written in TOML.
    #[must_use]
    pub fn of(mut written: Table) -> Self {
        // Costs are no choice: they tell by what a plan was made.
        written.remove("ns_per_item");
        Self(written)
    }

    /// Whether no entry was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the entries as TOML.
    #[must_use]
    pub fn to_toml(&self) -> String {
        self.0.to_string()
    }

    /// Whether `[buffers]` has this key.
    #[must_use]
    pub fn has_buffer(&self, key: &str) -> bool {
        self.0.get("buffers").and_then(Value::as_table).is_some_and(|table| table.contains_key(key))
    }

    /// Whether a partition was written, in any detail.
    #[must_use]
    pub fn has_partition(&self, name: &str) -> bool {
        self.partition(name).is_some()
    }

    /// Whether a block was placed.
    #[must_use]
    pub fn has_block(&self, name: &str) -> bool {
        let blocks = |table: &Table| table.get("blocks").and_then(Value::as_array).cloned();
        let mut placed = self.tables().filter_map(blocks).flatten();
        placed.any(|block| block.as_str() == Some(name))
    }

    /// Returns the number of written partitions.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.tables().count()
    }

    /// Whether this key of a partition was written: `cpu` or `wait`.
    #[must_use]
    pub fn has_key(&self, partition: &str, key: &str) -> bool {
        self.partition(partition).is_some_and(|table| table.contains_key(key))
    }

    /// Returns the first entry that `plan` does not follow; `None` if it follows all.
    #[must_use]
    pub fn broken_by(&self, plan: &Plan) -> Option<String> {
        let plan = Table::try_from(plan).expect("a plan has nothing that TOML cannot say");
        first_difference("", &Value::Table(self.0.clone()), Some(&Value::Table(plan)))
    }

    fn partition(&self, name: &str) -> Option<&Table> {
        self.tables().find(|table| is_called(table, name))
    }

    fn tables(&self) -> impl Iterator<Item = &Table> {
        let list = self.0.get("partition").and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_table)
    }
}

fn is_called(table: &Table, name: &str) -> bool {
    table.get("name").and_then(Value::as_str) == Some(name)
}

/// Returns the first key of `wanted` that `found` lacks or has with another value. Partitions are
/// matched by name; the order of their blocks has no meaning.
fn first_difference(key: &str, wanted: &Value, found: Option<&Value>) -> Option<String> {
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") };
    match (wanted, found) {
        (Value::Table(wanted), Some(Value::Table(found))) => wanted
            .iter()
            .find_map(|(name, value)| first_difference(&below(name), value, found.get(name))),
        (Value::Array(wanted), Some(Value::Array(found))) => {
            let sorted = |list: &[Value]| {
                let mut texts: Vec<_> = list.iter().map(Value::to_string).collect();
                texts.sort();
                texts
            };
            if !wanted.iter().all(Value::is_table) {
                return (sorted(wanted) != sorted(found)).then(|| key.to_owned());
            }
            wanted.iter().find_map(|wanted| {
                let name = wanted.get("name").and_then(Value::as_str).unwrap_or_default();
                let same = |table: &&Value| table.as_table().is_some_and(|t| is_called(t, name));
                first_difference(&below(name), wanted, found.iter().find(same))
            })
        }
        (wanted, found) => (Some(wanted) != found).then(|| key.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
        [[partition]]
        name = "front"
        blocks = ["a", "b"]
        cpu = 1
        [[partition]]
        name = "back"
        blocks = ["c"]
        wait = "park"
        [buffers]
        inside_bytes = 65536
    "#;

    #[test]
    fn a_plan_obeys_what_was_written_and_may_differ_elsewhere() {
        let pins = Pins::of(PLAN.parse().unwrap());
        let mut plan = Plan::from_toml(PLAN).unwrap();
        assert_eq!(pins.broken_by(&plan), None);
        plan.partitions[0].blocks.reverse();
        plan.partitions[0].wait = crate::WaitMode::Adaptive;
        plan.partitions[1].cpu = Some(0);
        plan.partitions.reverse();
        plan.buffers.between_bytes = 1;
        assert_eq!(pins.broken_by(&plan), None, "none of these was written");
        assert!(!pins.has_key("front", "wait") && !pins.has_buffer("between_bytes"));
    }

    #[test]
    fn every_written_key_counts_even_with_its_default() {
        let pins = Pins::of(PLAN.parse().unwrap());
        let broken = |change: fn(&mut Plan)| {
            let mut plan = Plan::from_toml(PLAN).unwrap();
            change(&mut plan);
            pins.broken_by(&plan)
        };
        let says = |text: &str| Some(text.to_owned());
        assert_eq!(broken(|p| p.partitions[0].cpu = None), says("partition.front.cpu"));
        assert_eq!(broken(|p| p.partitions[0].cpu = Some(2)), says("partition.front.cpu"));
        assert_eq!(broken(|p| drop(p.partitions[0].blocks.pop())), says("partition.front.blocks"));
        assert_eq!(broken(|p| drop(p.partitions.pop())), says("partition.back"));
        let wait = broken(|p| p.partitions[1].wait = crate::WaitMode::Spin);
        assert_eq!(wait, says("partition.back.wait"));
        assert_eq!(broken(|p| p.buffers.inside_bytes = 1), says("buffers.inside_bytes"));
        assert!(pins.has_key("back", "wait") && pins.has_buffer("inside_bytes"));
    }
}
