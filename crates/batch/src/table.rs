//! The results of a batch as a table (CSV, RFC 4180).

use crate::{Batch, BatchError, TaskResult};
use std::collections::{BTreeMap, BTreeSet};

/// Makes the table: one row a task that is no part, with its name, state, recording, parameters,
/// and the numbers of its result. `state` is the word for a task's state.
///
/// # Errors
/// A result cannot be read.
pub fn csv(batch: &Batch, state: impl Fn(usize) -> &'static str) -> Result<String, BatchError> {
    let (results, tasks) = (batch.results(), &batch.tasks[..batch.wholes]);
    let found: Vec<Option<TaskResult>> =
        tasks.iter().map(|task| results.result(&task.name)).collect::<Result<_, _>>()?;
    let parameters: BTreeSet<&String> =
        tasks.iter().flat_map(|task| task.parameters.keys()).collect();
    let numbers: BTreeSet<&String> =
        found.iter().flatten().flat_map(|result| result.numbers.keys()).collect();
    let fixed = ["task", "state", "recording"].map(str::to_owned);
    let names = parameters.iter().chain(&numbers).map(|name| (*name).clone());
    let mut text = row(fixed.into_iter().chain(names));
    let empty = BTreeMap::new();
    for (at, (task, result)) in tasks.iter().zip(&found).enumerate() {
        let recording = task.recording.clone().unwrap_or_default();
        let values = result.as_ref().map_or(&empty, |result| &result.numbers);
        let of = |name: &&String| task.parameters.get(*name).cloned().unwrap_or_default();
        let number = |name: &&String| values.get(*name).map(f64::to_string).unwrap_or_default();
        let fixed = [task.name.clone(), state(at).to_owned(), recording];
        let cells = parameters.iter().map(of).chain(numbers.iter().map(number));
        text += &row(fixed.into_iter().chain(cells));
    }
    Ok(text)
}

fn row(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.map(|cell| quoted(&cell)).collect();
    cells.join(",") + "\r\n"
}

fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_quoted_where_it_must_be() {
        let cells = ["a", "b,c", "say \"d\"", ""].map(str::to_owned);
        assert_eq!(row(cells.into_iter()), "a,\"b,c\",\"say \"\"d\"\"\",\r\n");
    }
}
