//! Tables that fit: the most important columns come first, and those without room are left out.

use crate::live::fit;

/// A column: its heading and its cells.
pub struct Column {
    heading: &'static str,
    cells: Vec<String>,
    left: bool,
}

impl Column {
    /// Text, left-aligned.
    pub fn text(heading: &'static str, cells: impl Iterator<Item = String>) -> Self {
        Self { heading, cells: cells.collect(), left: true }
    }

    /// Numbers, right-aligned.
    pub fn number(heading: &'static str, cells: impl Iterator<Item = String>) -> Self {
        Self { heading, cells: cells.collect(), left: false }
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.chars().count());
        cells.chain([self.heading.chars().count()]).max().unwrap_or(0)
    }

    fn cell(&self, row: Option<usize>, width: usize) -> String {
        let text = row.map_or(self.heading, |row| &self.cells[row]);
        if self.left { format!("{text:<width$}") } else { format!("{text:>width$}") }
    }
}

/// Heading and rows in at most `columns` characters; the first column is always present, cut if
/// necessary.
pub fn lines(table: &[Column], columns: usize) -> Vec<String> {
    let widths: Vec<usize> = table.iter().map(Column::width).collect();
    let mut used = widths.first().copied().unwrap_or(0);
    let others = widths.iter().skip(1).take_while(|width| {
        used += *width + 2;
        used <= columns
    });
    let shown = 1 + others.count();
    let rows = table.first().map_or(0, |column| column.cells.len());
    let line = |row: Option<usize>| {
        let cells = table.iter().zip(&widths).take(shown);
        let cells: Vec<_> = cells.map(|(column, width)| column.cell(row, *width)).collect();
        fit(cells.join("  ").trim_end(), columns + 1).to_owned()
    };
    std::iter::once(None).chain((0..rows).map(Some)).map(line).collect()
}

/// Formats a count in three digits with a unit: `999`, `1.23 k`, `45.6 M`.
pub fn scaled(value: f64) -> String {
    const UNITS: [&str; 5] = ["", " k", " M", " G", " T"];
    let (mut value, mut unit) = (value, 0);
    while value >= 999.5 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    let decimals = match value {
        _ if unit == 0 => 0,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}{}", UNITS[unit])
}

/// Draws a share as a bar.
pub fn bar(share: f64, width: usize) -> String {
    let filled = (share.clamp(0.0, 1.0) * width as f64).round() as usize;
    format!("[{}{}]", "#".repeat(filled), ".".repeat(width - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> [Column; 3] {
        let cells = |cells: [&str; 2]| cells.map(str::to_owned).into_iter();
        [
            Column::text("block", cells(["source", "a"])),
            Column::number("items/s", cells(["1.00 k", "999"])),
            Column::text("partition", cells(["front", "back"])),
        ]
    }

    #[test]
    fn columns_that_find_no_room_are_left_out_from_the_right() {
        let wide =
            ["block   items/s  partition", "source   1.00 k  front", "a           999  back"];
        assert_eq!(lines(&table(), 26), wide);
        let narrow = ["block   items/s", "source   1.00 k", "a           999"];
        assert_eq!(lines(&table(), 25), narrow);
        assert_eq!(lines(&table(), 14), ["block", "source", "a"]);
        assert_eq!(lines(&table(), 3), ["blo", "sou", "a"]);
    }

    #[test]
    fn counts_have_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (999.4, "999"),
            (999.5, "1.00 k"),
            (12_345.0, "12.3 k"),
            (99_960.0, "100 k"),
            (1.5e6, "1.50 M"),
            (2e15, "2000 T"),
        ] {
            assert_eq!(scaled(value), text);
        }
    }

    #[test]
    fn bars_fill_up() {
        assert_eq!(bar(0.0, 4), "[....]");
        assert_eq!(bar(0.5, 4), "[##..]");
        assert_eq!(bar(7.0, 4), "[####]");
    }
}
