//! A picture of how a number depends on two parameters, and the best setting.

use crate::confidence::half_width;
use crate::{Batch, BatchError, Best, Confidence};
use millstream_draw::{Rect, Svg};
use std::cmp::Ordering;

/// The size of a cell and the margins, pixels.
const CELL: (f64, f64) = (84.0, 34.0);
const LEFT: f64 = 110.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 66.0;

/// What is drawn.
#[derive(Clone, Debug)]
pub struct MapRequest {
    /// The number of the results.
    pub value: String,
    /// The parameter across.
    pub x: String,
    /// The parameter up.
    pub y: String,
    /// Which values are better.
    pub best: Best,
}

/// The means of a number over the recordings, by two swept parameters.
#[derive(Clone, Debug)]
pub struct HeatMap {
    request: MapRequest,
    columns: Vec<String>,
    rows: Vec<String>,
    /// Row by row, the mean and the number of results; `None` without a result.
    cells: Vec<Option<(f64, usize)>>,
    recordings: usize,
    /// The best setting: its words, its mean, its recordings, its cell.
    best: (String, f64, usize, usize),
    /// Half the width of the confidence interval of its mean.
    half_width: Option<f64>,
    /// The comparison with another setting that is the least sure; `None` for the only setting.
    confidence: Option<Confidence>,
}

impl HeatMap {
    /// Takes the means over the recordings of each setting. Where settings share a cell, as further
    /// parameters are swept, it shows the best of them. Only settings with the most results are
    /// compared: the mean over few recordings says little about one over many.
    ///
    /// # Errors
    /// [`BatchError::Map`]: a parameter is not swept, or no result has the number.
    pub fn of(batch: &Batch, request: MapRequest) -> Result<Self, BatchError> {
        for name in [&request.x, &request.y] {
            if !batch.manifest.swept().any(|swept| swept == name) {
                let swept = batch.manifest.swept().collect::<Vec<_>>().join(", ");
                let swept = if swept.is_empty() { "none" } else { &swept };
                return Err(BatchError::Map(format!(
                    "the manifest does not sweep `{name}`; the parameters below [sweep] are: \
                     {swept}"
                )));
            }
        }
        if request.x == request.y {
            let x = &request.x;
            return Err(BatchError::Map(format!("`{x}` is on both axes: name two parameters")));
        }
        let (results, tasks) = (batch.results(), &batch.tasks[..batch.wholes]);
        let mut known = std::collections::BTreeSet::new();
        let recordings = batch.wholes / batch.settings.max(1);
        // By setting and recording.
        let mut values: Vec<Option<f64>> = vec![None; tasks.len()];
        for (value, task) in values.iter_mut().zip(tasks) {
            let Some(result) = results.result(&task.name)? else { continue };
            *value = result.numbers.get(&request.value).copied();
            known.extend(result.numbers.into_keys());
        }
        let axis = |name: &str| sorted(tasks.iter().map(|task| &task.parameters[name]));
        let (columns, rows) = (axis(&request.x), axis(&request.y));
        let mut cells = vec![None; columns.len() * rows.len()];
        let mut best: Option<(String, f64, usize, usize)> = None;
        let mut first = 0;
        let of = |setting: usize| &values[setting * recordings..][..recordings];
        let mean = |setting: usize| {
            let (sum, count) =
                of(setting).iter().flatten().fold((0.0, 0), |(sum, n), x| (sum + x, n + 1));
            (count > 0).then_some((sum / f64::from(count), count as usize))
        };
        // More recordings first, then the better mean; of equal ones the first.
        let better = |(a, of_a): (f64, usize), (b, of_b): (f64, usize)| match of_a.cmp(&of_b) {
            Ordering::Equal => request.best.prefers(a, b),
            compared => compared == Ordering::Greater,
        };
        let mut measured = Vec::new();
        for setting in 0..batch.settings {
            let Some(found) = mean(setting) else { continue };
            measured.push(setting);
            let task = &tasks[setting * recordings];
            let at = |values: &[String], name: &str| {
                values.iter().position(|value| *value == task.parameters[name]).unwrap_or(0)
            };
            let cell = at(&rows, &request.y) * columns.len() + at(&columns, &request.x);
            if cells[cell].is_none_or(|other| better(found, other)) {
                cells[cell] = Some(found);
            }
            if best.as_ref().is_none_or(|best| better(found, (best.1, best.2))) {
                best = Some((batch.words(task), found.0, found.1, cell));
                first = setting;
            }
        }
        let Some(best) = best else {
            let known: Vec<_> = known.into_iter().collect();
            return Err(BatchError::Map(match known.is_empty() {
                true => "no task is done: run `millstream batch run` first".to_owned(),
                false => {
                    let (value, known) = (&request.value, known.join(", "));
                    format!("no result has the number `{value}`; the results have: {known}")
                }
            }));
        };
        measured.retain(|setting| *setting != first);
        let others: Vec<_> = measured.iter().map(|setting| of(*setting)).collect();
        let weakest = Confidence::weakest(request.best, of(first), &others);
        let confidence = weakest.map(|(at, confidence)| {
            let next = batch.words(&tasks[measured[at] * recordings]);
            Confidence { next, ..confidence }
        });
        let of_best: Vec<f64> = of(first).iter().filter_map(|x| *x).collect();
        let half_width = half_width(&of_best);
        Ok(Self { request, columns, rows, cells, recordings, best, half_width, confidence })
    }

    /// Describes the best setting in words: its parameters, its mean, and its recordings.
    #[must_use]
    pub fn best(&self) -> String {
        let (words, mean, count, _) = &self.best;
        let recordings = if *count == 1 { "recording" } else { "recordings" };
        format!("{words}: {} {} ({count} {recordings})", self.request.value, short(*mean))
    }

    /// Describes how sure it is that the best setting is better than every other one, by the
    /// comparison that is the least sure.
    #[must_use]
    pub fn confidence(&self) -> String {
        let Some(confidence) = &self.confidence else { return "it is the only one".to_owned() };
        let Confidence { next, better_by, half_width, recordings } = confidence;
        if *recordings == 0 {
            return format!("it has no recording in common with {next}: too few to say");
        }
        let better = match *better_by >= 0.0 {
            true => format!("better than {next} by {}", short(*better_by)),
            false => format!("worse than {next} by {}", short(-better_by)),
        };
        let Some(half) = half_width else {
            return format!("{better} on {recordings} recording: too few recordings to say");
        };
        let words = match confidence.has_enough() {
            false => "too few recordings to say",
            true if confidence.is_sure() => "sure",
            true if confidence.is_surely_worse() => "sure, on the recordings that both have",
            true => "it may be chance",
        };
        format!("{better} ± {} (95 %, {recordings} recordings): {words}", short(*half))
    }

    /// Returns the comparison of the best setting with another one that is the least sure; `None`
    /// for the only one.
    #[must_use]
    pub fn compared(&self) -> Option<&Confidence> {
        self.confidence.as_ref()
    }

    /// Returns half the width of the 95 % confidence interval of the best mean; `None` with fewer
    /// than two recordings.
    #[must_use]
    pub fn half_width(&self) -> Option<f64> {
        self.half_width
    }

    /// Returns the best mean.
    #[must_use]
    pub fn best_value(&self) -> f64 {
        self.best.1
    }

    /// Draws the map.
    #[must_use]
    pub fn svg(&self) -> String {
        let Self { request, columns, rows, cells, recordings, best: chosen, .. } = self;
        let (width, height) = (columns.len() as f64 * CELL.0, rows.len() as f64 * CELL.1);
        let title = format!("{}: mean over the recordings", request.value);
        let (best, confidence) = (format!("best: {}", self.best()), self.confidence());
        // A character of this font and size takes 6 or less.
        let longest = best.len().max(confidence.len()).max(60);
        let wide = (LEFT + width + 20.0).max(32.0 + 6.0 * longest as f64);
        let mut svg = Svg::new(wide as u32, (TOP + height + BOTTOM) as u32);
        let text = "font-size=\"11\" fill=\"#555555\" text-anchor";
        svg.write((16.0, 24.0), "font-size=\"14\" font-weight=\"bold\" fill=\"#111111\"", &title);
        svg.write((16.0, 42.0), format!("{text}=\"start\""), &best);
        svg.write((16.0, 58.0), format!("{text}=\"start\""), &confidence);
        let shown = || cells.iter().flatten().map(|cell| cell.0).filter(|value| value.is_finite());
        let (low, high) = (shown().fold(f64::MAX, f64::min), shown().fold(f64::MIN, f64::max));
        for (at, cell) in cells.iter().enumerate() {
            // The first row is the lowest.
            let (row, column) = (rows.len() - 1 - at / columns.len(), at % columns.len());
            let place = Rect {
                x: LEFT + column as f64 * CELL.0,
                y: TOP + row as f64 * CELL.1,
                width: CELL.0,
                height: CELL.1,
            };
            let value = cell.map(|(mean, _)| mean);
            let share =
                value.map(|value| if high > low { (value - low) / (high - low) } else { 1.0 });
            let edge = if at == chosen.3 { "#c2571a\" stroke-width=\"3" } else { "#ffffff" };
            let (fill, ink) = colours(share);
            let (x, y) = (&columns[column], &rows[at / columns.len()]);
            let words = value.map_or("-".to_owned(), short);
            let few = match cell {
                Some((_, count)) if count < recordings => {
                    format!(" ({count} of {recordings} recordings)")
                }
                _ => String::new(),
            };
            let about = format!("{}={x} {}={y}: {words}{few}", request.x, request.y);
            svg.rect(&place, 0.0, format_args!("fill=\"{fill}\" stroke=\"{edge}\""), &about);
            let (x, y) = place.middle();
            let style = format!("font-size=\"11\" text-anchor=\"middle\" fill=\"{ink}\"");
            svg.write((x, y + 4.0), style, &words);
        }
        for (row, value) in rows.iter().rev().enumerate() {
            let y = TOP + (row as f64 + 0.5) * CELL.1 + 4.0;
            svg.write((LEFT - 8.0, y), format!("{text}=\"end\""), value);
        }
        for (column, value) in columns.iter().enumerate() {
            let x = LEFT + (column as f64 + 0.5) * CELL.0;
            svg.write((x, TOP + height + 18.0), format!("{text}=\"middle\""), value);
        }
        svg.write((LEFT - 8.0, TOP - 4.0), format!("{text}=\"end\""), &request.y);
        svg.write((LEFT + width, TOP + height + 38.0), format!("{text}=\"end\""), &request.x);
        svg.element(&format!("{title}; best: {}", self.best()))
    }
}

/// Different values: numbers by their size, then texts.
fn sorted<'a>(values: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut values: Vec<String> = values.cloned().collect();
    let number = |text: &String| text.parse::<f64>().ok();
    values.sort_by(|a, b| match (number(a), number(b)) {
        (Some(x), Some(y)) => x.total_cmp(&y).then_with(|| a.cmp(b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.cmp(b),
    });
    values.dedup();
    values
}

/// The colours of ground and text for a share of the range; grey without a value.
fn colours(share: Option<f64>) -> (String, &'static str) {
    let Some(share) = share.filter(|share| share.is_finite()) else {
        return ("#eeeeee".to_owned(), "#555555");
    };
    let share = share.clamp(0.0, 1.0);
    let tint = |low: f64, high: f64| (low + share * (high - low)).round() as u8;
    let fill =
        format!("#{:02x}{:02x}{:02x}", tint(232.0, 11.0), tint(243.0, 90.0), tint(248.0, 133.0));
    (fill, if share > 0.55 { "#ffffff" } else { "#111111" })
}

/// At most four digits behind the point.
fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() || text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::{finish, of_recordings};

    #[test]
    fn values_are_in_their_order_and_numbers_are_short() {
        let values = ["10", "9", "a", "-1", "9"].map(str::to_owned);
        assert_eq!(sorted(values.iter()), ["-1", "9", "10", "a"]);
        let shown = [2.0, 0.25, -0.00001, 100.0, 1234.56789].map(short);
        assert_eq!(shown, ["2", "0.25", "0", "100", "1234.5679"]);
    }

    #[test]
    fn a_mean_over_few_recordings_is_not_the_best() {
        let (_folder, batch) = of_recordings(2, "[sweep]\na = [1, 2]\nb = [1]\n");
        let batch = batch.unwrap();
        for (task, x) in [(0, 9.0), (2, 3.0), (3, 5.0)] {
            finish(&batch, task, x);
        }
        let [value, x, y] = ["x", "a", "b"].map(str::to_owned);
        let map = HeatMap::of(&batch, MapRequest { value, x, y, best: Best::Highest }).unwrap();
        assert_eq!(map.best(), "a=2 b=1: x 4 (2 recordings)");
        let told = "worse than a=1 b=1 by 6 on 1 recording: too few recordings to say";
        assert_eq!(map.confidence(), told);
        let svg = map.svg();
        assert!(svg.contains("a=1 b=1: 9 (1 of 2 recordings)<"), "{svg}");
        assert!(svg.contains("a=2 b=1: 4<"), "{svg}");
        finish(&batch, 1, 2.0);
        let [value, x, y] = ["x", "a", "b"].map(str::to_owned);
        let map = HeatMap::of(&batch, MapRequest { value, x, y, best: Best::Lowest }).unwrap();
        assert!(map.best().starts_with("a=2 b=1: x 4"), "{}", map.best());
        let told =
            "better than a=1 b=1 by 1.5 ± 57.1779 (95 %, 2 recordings): too few recordings to say";
        assert_eq!(map.confidence(), told);
    }

    #[test]
    fn text_is_readable_on_its_ground() {
        assert_eq!(colours(Some(0.0)), ("#e8f3f8".to_owned(), "#111111"));
        assert_eq!(colours(Some(1.0)), ("#0b5a85".to_owned(), "#ffffff"));
        assert_eq!(colours(None).0, "#eeeeee");
    }
}
