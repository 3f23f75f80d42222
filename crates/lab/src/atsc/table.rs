//! Error rates in rows and columns.

use super::grid::{
    DELAYS_US, DOPPLER_DELAY_US, DOPPLER_LEVELS_DB, DOPPLERS_HZ, LEVELS_DB, Point, grid,
};
use super::{Axis, StoredResult};

/// Packet error rates of one axis. Where an echo's level is a second parameter, levels are the
/// columns and each receiver has a table; otherwise receivers are the columns.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitsTable {
    /// Its title.
    pub title: String,
    /// Heads of the columns.
    pub columns: Vec<String>,
    /// Heads of the rows, and the error rate of each column, where it is known.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
}

impl LimitsTable {
    /// Returns the tables of an axis from the stored results; no table without results.
    #[must_use]
    pub fn of(axis: Axis, lines: &[&StoredResult], receivers: &[String]) -> Vec<Self> {
        let lines: Vec<&StoredResult> =
            lines.iter().filter(|l| l.point.axis() == axis).copied().collect();
        if lines.is_empty() {
            return Vec::new();
        }
        let rate = |point: Point, receiver: &str| {
            let found = lines.iter().find(|l| l.point == point && l.receiver == receiver);
            found.map(|line| line.score.error_rate())
        };
        let square = |title: String, rows: &[f64], unit: &str, levels: &[f64], point: PointOf| {
            let table = |receiver: &String| {
                let row = |value: &f64| {
                    let cells = levels.iter().map(|level| rate(point(*value, *level), receiver));
                    (format!("{value:+} {unit}"), cells.collect())
                };
                let columns = levels.iter().map(|level| format!("{level} dB")).collect();
                Self {
                    title: format!("{title}, {receiver}"),
                    columns,
                    rows: rows.iter().map(row).collect(),
                }
            };
            receivers.iter().map(table).collect()
        };
        match axis {
            Axis::Echo => square("echo".to_owned(), &DELAYS_US, "µs", &LEVELS_DB, &|x, y| {
                Point::Echo { delay_us: x, level_db: y }
            }),
            Axis::Doppler => square(
                format!("turning echo at {DOPPLER_DELAY_US} µs"),
                &DOPPLERS_HZ,
                "Hz",
                &DOPPLER_LEVELS_DB,
                &|x, y| Point::Doppler { doppler_hz: x, level_db: y },
            ),
            _ => {
                let mut points: Vec<Point> = grid(axis);
                points.retain(|point| lines.iter().any(|line| line.point == *point));
                let other = lines.iter().map(|line| line.point);
                let other: Vec<_> = other.filter(|point| !points.contains(point)).collect();
                points.extend(other);
                points.dedup();
                let row = |point: &Point| {
                    let cells = receivers.iter().map(|receiver| rate(*point, receiver)).collect();
                    (point.to_string(), cells)
                };
                vec![Self {
                    title: axis.name().to_owned(),
                    columns: receivers.to_vec(),
                    rows: points.iter().map(row).collect(),
                }]
            }
        }
    }
}

type PointOf<'a> = &'a dyn Fn(f64, f64) -> Point;

/// A rate as text: `0` where no packet was wrong.
#[must_use]
pub fn rate_word(rate: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        1.0 => "1".to_owned(),
        rate if rate >= 0.995 => ">.99".to_owned(),
        rate if rate >= 0.01 => format!("{rate:.2}"),
        rate => format!("{rate:.0e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atsc::PacketScore;

    fn line(point: Point, receiver: &str, right: u64) -> StoredResult {
        let score = PacketScore { expected: 10_000, right, ..PacketScore::default() };
        StoredResult { point, receiver: receiver.to_owned(), seconds: 1.0, seed: 1, score }
    }

    #[test]
    fn levels_are_columns_where_they_are_varied_and_receivers_elsewhere() {
        let lines = [
            line(Point::Echo { delay_us: 0.3, level_db: -3.0 }, "a", 5000),
            line(Point::noise(15.0), "a", 9_999),
            line(Point::noise(15.0), "b", 10),
            line(Point::noise(13.1), "a", 0),
        ];
        let lines: Vec<&StoredResult> = lines.iter().collect();
        let receivers = ["a".to_owned(), "b".to_owned()];
        let echo = LimitsTable::of(Axis::Echo, &lines, &receivers);
        assert_eq!(echo.len(), 2);
        assert_eq!((echo[0].title.as_str(), echo[0].rows.len()), ("echo, a", DELAYS_US.len()));
        let row = echo[0].rows.iter().find(|row| row.0 == "+0.3 µs").unwrap();
        assert_eq!(row.1.iter().filter_map(|rate| *rate).collect::<Vec<_>>(), [0.5]);
        let noise = LimitsTable::of(Axis::Noise, &lines, &receivers);
        let words = |cells: &[Option<f64>]| cells.iter().map(|rate| rate.map(rate_word)).collect();
        let rows: Vec<(&str, Vec<_>)> =
            noise[0].rows.iter().map(|(head, cells)| (&**head, words(cells))).collect();
        let [known, some, all] = ["1e-4", ">.99", "1"].map(|word| Some(word.to_owned()));
        assert_eq!(noise[0].columns, receivers);
        assert_eq!(rows, [("C/N 15 dB", vec![known, some]), ("C/N 13.1 dB", vec![all, None])]);
        assert_eq!(LimitsTable::of(Axis::Clock, &lines, &receivers), []);
    }
}
