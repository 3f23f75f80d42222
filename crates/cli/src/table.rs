//! Tables: each column with its heading, as wide as its cells.

use crate::live::fit;
use crate::output::Join;
use std::fmt::Display;

/// A table of these rows; its columns are added one after the other, the most important first.
pub struct Table<R> {
    rows: Vec<R>,
    columns: Vec<Column>,
}

struct Column {
    heading: Vec<String>,
    cells: Vec<String>,
    left: bool,
}

impl<R: Copy> Table<R> {
    /// A table without columns.
    pub fn of(rows: impl IntoIterator<Item = R>) -> Self {
        Self { rows: rows.into_iter().collect(), columns: Vec::new() }
    }

    /// Adds a column of text. A heading may have several lines.
    pub fn left<C: Display>(self, heading: &str, cell: impl Fn(R) -> C) -> Self {
        self.column(heading, cell, true)
    }

    /// Adds a column of numbers, aligned at their ends.
    pub fn right<C: Display>(self, heading: &str, cell: impl Fn(R) -> C) -> Self {
        self.column(heading, cell, false)
    }

    fn column<C: Display>(mut self, heading: &str, cell: impl Fn(R) -> C, left: bool) -> Self {
        let heading = heading.lines().map(str::to_owned).collect();
        let cells = self.rows.iter().map(|row| cell(*row).to_string()).collect();
        self.columns.push(Column { heading, cells, left });
        self
    }

    /// Heading and rows in at most `columns` characters: columns without room are left out, but the
    /// first, which is cut if necessary.
    pub fn lines(&self, columns: usize) -> Vec<String> {
        let widths: Vec<usize> = self.columns.iter().map(Column::width).collect();
        let mut used = widths.first().copied().unwrap_or(0);
        let others = widths.iter().skip(1).take_while(|width| {
            used += *width + 2;
            used <= columns
        });
        let shown = 1 + others.count();
        let line = |text: &dyn Fn(&Column) -> String| {
            let cells = self.columns.iter().zip(&widths).take(shown).map(|(column, &width)| {
                let text = text(column);
                if column.left { format!("{text:<width$}") } else { format!("{text:>width$}") }
            });
            let cells = cells.join("  ");
            fit(cells.trim_end(), columns.saturating_add(1)).to_owned()
        };
        let height = self.columns.iter().map(|column| column.heading.len()).max().unwrap_or(0);
        let heading = |at| line(&|column| column.heading.get(at).cloned().unwrap_or_default());
        let row = |at: usize| line(&|column| column.cells[at].clone());
        (0..height).map(heading).chain((0..self.rows.len()).map(row)).collect()
    }

    /// The whole table as text.
    pub fn text(&self) -> String {
        self.text_with(|_| String::new())
    }

    /// The same, with further lines below each row.
    pub fn text_with(&self, below: impl Fn(R) -> String) -> String {
        let lines = self.lines(usize::MAX);
        let heading = lines.len() - self.rows.len();
        let mut text = String::new();
        for (at, line) in lines.iter().enumerate() {
            text += line;
            text += "\n";
            text += &at.checked_sub(heading).map_or(String::new(), |at| below(self.rows[at]));
        }
        text
    }
}

impl Column {
    fn width(&self) -> usize {
        let all = self.heading.iter().chain(&self.cells);
        all.map(|text| text.chars().count()).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table<(&'static str, &'static str, &'static str)> {
        Table::of([("source", "1.00 k", "front"), ("a", "999", "back")])
            .left("block", |row| row.0)
            .right("items/s", |row| row.1)
            .left("partition", |row| row.2)
    }

    #[test]
    fn columns_that_find_no_room_are_left_out_from_the_right() {
        let wide =
            ["block   items/s  partition", "source   1.00 k  front", "a           999  back"];
        assert_eq!(table().lines(26), wide);
        let narrow = ["block   items/s", "source   1.00 k", "a           999"];
        assert_eq!(table().lines(25), narrow);
        assert_eq!(table().lines(14), ["block", "source", "a"]);
        assert_eq!(table().lines(3), ["blo", "sou", "a"]);
    }

    #[test]
    fn a_heading_may_have_lines_or_none_and_rows_may_have_more_below() {
        let text = Table::of([1, 20]).left("a\nb", |row| row).text_with(|row| match row {
            1 => "below\n".to_owned(),
            _ => String::new(),
        });
        assert_eq!(text, "a\nb\n1\nbelow\n20\n");
        assert_eq!(Table::of([1]).right("", |row| row).text(), "1\n");
    }
}
