//! The results of a batch as a table: CSV (RFC 4180) or Parquet.

use crate::parquet::{self, Cells, Column};
use crate::{Batch, BatchError, TaskResult};
use std::collections::BTreeSet;

/// The columns of texts that every table has.
const FIRST: [&str; 3] = ["task", "state", "recording"];

/// A table: one row a task that is no part, with its name, state, recording, parameters, and the
/// numbers of its result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultTable {
    columns: Vec<Column>,
    rows: usize,
}

impl ResultTable {
    /// Reads the results. `state` is the word for a task's state.
    ///
    /// # Errors
    /// A result cannot be read.
    pub fn of(batch: &Batch, state: impl Fn(usize) -> &'static str) -> Result<Self, BatchError> {
        let (results, tasks) = (batch.results(), &batch.tasks[..batch.wholes]);
        let found: Vec<Option<TaskResult>> =
            tasks.iter().map(|task| results.result(&task.name)).collect::<Result<_, _>>()?;
        let parameters: BTreeSet<&String> =
            tasks.iter().flat_map(|task| task.parameters.keys()).collect();
        let numbers: BTreeSet<&String> =
            found.iter().flatten().flat_map(|result| result.numbers.keys()).collect();
        let texts = |name: &str, of: &dyn Fn(usize) -> String| Column {
            name: name.to_owned(),
            cells: Cells::Texts((0..tasks.len()).map(of).collect()),
        };
        let named = |name: &String| {
            let mut shown = name.clone();
            while FIRST.contains(&&*shown)
                || numbers.contains(&shown)
                || shown != *name && parameters.contains(&shown)
            {
                shown.insert_str(0, "parameter.");
            }
            shown
        };
        let mut columns = vec![
            texts("task", &|at| tasks[at].name.clone()),
            texts("state", &|at| state(at).to_owned()),
            texts("recording", &|at| tasks[at].recording.clone().unwrap_or_default()),
        ];
        columns.extend(parameters.iter().map(|name| {
            let name: &String = name;
            texts(&named(name), &|at| tasks[at].parameters.get(name).cloned().unwrap_or_default())
        }));
        columns.extend(numbers.into_iter().map(|name| {
            let of = |result: &Option<TaskResult>| result.as_ref()?.numbers.get(name).copied();
            Column { name: name.clone(), cells: Cells::Numbers(found.iter().map(of).collect()) }
        }));
        Ok(Self { columns, rows: tasks.len() })
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the table as CSV, with the names of the columns in the first row.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut text = row(self.columns.iter().map(|column| column.name.clone()));
        for at in 0..self.rows {
            text += &row(self.columns.iter().map(|column| match &column.cells {
                Cells::Texts(cells) => cells[at].clone(),
                Cells::Numbers(cells) => cells[at].map(|cell| cell.to_string()).unwrap_or_default(),
            }));
        }
        text
    }

    /// Returns the table as a Parquet file. Parameters whose values are all numbers are numbers;
    /// they stay texts if a number would say something else, such as 007.
    #[must_use]
    pub fn parquet(&self) -> Vec<u8> {
        let columns = self.columns.iter().enumerate().map(|(at, column)| Column {
            name: column.name.clone(),
            cells: match &column.cells {
                // Names of tasks and recordings may look like numbers.
                Cells::Texts(cells) if at >= FIRST.len() => {
                    numbers(cells).unwrap_or(column.cells.clone())
                }
                cells => cells.clone(),
            },
        });
        parquet::file(&columns.collect::<Vec<_>>(), self.rows)
    }
}

/// The texts as numbers, if all are and can be told from their numbers; no text is no number.
fn numbers(texts: &[String]) -> Option<Cells> {
    let number = |text: &String| match text.parse::<f64>() {
        _ if text.is_empty() => Some(None),
        Ok(number) if number.is_finite() && number.to_string() == *text => Some(Some(number)),
        _ => None,
    };
    texts.iter().map(number).collect::<Option<_>>().map(Cells::Numbers)
}

fn row(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.map(|cell| quoted(&cell)).collect();
    cells.join(",") + "\r\n"
}

/// Returns a cell as CSV has it. A spreadsheet computes a cell that begins like a formula, and the
/// names of recordings come from others: such a text gets an apostrophe in front. Numbers stay.
fn quoted(cell: &str) -> String {
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let apostrophe = if is_formula && cell.parse::<f64>().is_err() { "'" } else { "" };
    let cell = format!("{apostrophe}{cell}");
    if cell.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::{finish, of_recordings};

    #[test]
    fn a_cell_is_quoted_where_it_must_be() {
        let cells = ["a", "b,c", "say \"d\"", ""].map(str::to_owned);
        assert_eq!(row(cells.into_iter()), "a,\"b,c\",\"say \"\"d\"\"\",\r\n");
    }

    #[test]
    fn no_cell_is_a_formula() {
        let cells =
            ["=1+1", "@x", "+1 2", "-a", "-4e4", "+1", "=\"a\",1", "\tx"].map(str::to_owned);
        let expected = "'=1+1,'@x,'+1 2,'-a,-4e4,+1,\"'=\"\"a\"\",1\",'\tx\r\n";
        assert_eq!(row(cells.into_iter()), expected);
    }

    #[test]
    fn parameters_are_numbers_if_all_their_values_are() {
        let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let found = numbers(&texts(&["0.02", "", "-40000"]));
        assert_eq!(found, Some(Cells::Numbers(vec![Some(0.02), None, Some(-4e4)])));
        // A serial number, a revision: what a number would lose.
        for text in ["auto", "9007199254740993", "32E5", "007", "nan", "NaN", "inf", "+1", "1.0"] {
            assert_eq!(numbers(&texts(&["1", text])), None, "{text}");
        }
    }

    #[test]
    fn no_two_columns_have_one_name() {
        let sweep = "[sweep]\ntask = [1, 2]\nx = [3]\nb = [4]\n\"parameter.x\" = [5]\n";
        let (_folder, batch) = of_recordings(1, sweep);
        let batch = batch.unwrap();
        finish(&batch, 0, 1.5);
        let csv = ResultTable::of(&batch, |_| "done").unwrap().csv();
        let names = "task,state,recording,b,parameter.parameter.x,parameter.task,parameter.x,x";
        let head = csv.lines().next().unwrap();
        let mut shown: Vec<_> = head.split(',').collect();
        shown.sort_unstable();
        let mut expected: Vec<_> = names.split(',').collect();
        expected.sort_unstable();
        assert_eq!(shown, expected);
        let row: Vec<_> = csv.lines().nth(1).unwrap().split(',').collect();
        let cell = |name| row[head.split(',').position(|one| one == name).unwrap()];
        let parameters = ["parameter.task", "parameter.parameter.x", "parameter.x", "b", "x"];
        assert_eq!(parameters.map(cell), ["1", "3", "5", "4", "1.5"]);
    }
}
