//! Coverage of the figures over starts: a run's median, and a comparison's ratio.

use super::draw::{Levels, start_ns};
use super::{Line, judge, sets};
use millstream_measure::design::next_look;
use millstream_measure::statistics::LOOK_LEVEL;
use millstream_stats::Random;
use millstream_stats::{LEVEL, MedianEstimate, Pairs};

const BASE_NS: f64 = 20_000.0;
const FIGURES: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];
const LEVELS: [(&str, Levels); 3] = [
    ("starts differ by 10 %", Levels::Normal(0.1)),
    ("one of seven is wild", Levels::Wild(0.1)),
    ("two kinds of starts", Levels::TwoKinds(0.1)),
];

fn starts(base_ns: f64, levels: Levels, quantile: f64, count: u32, noise: &mut Random) -> Vec<f64> {
    (0..count).map(|_| start_ns(base_ns, levels, quantile, noise)).collect()
}

/// Returns the median over all possible starts.
fn truth(levels: Levels, quantile: f64) -> f64 {
    let count = 20 * sets() + 1;
    let mut all = starts(BASE_NS, levels, quantile, count, &mut Random::new(1));
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

#[test]
fn a_runs_figure_lies_where_it_says() {
    let mut lines = Vec::new();
    for (figure, quantile) in FIGURES {
        for (name, levels) in LEVELS {
            let truth = truth(levels, quantile);
            for count in [6, 8, 12] {
                let mut noise = Random::new(u64::from(count));
                let mut line = Line::new(format!("{figure}, {count} starts, {name}"));
                for _ in 0..sets() {
                    let figures = starts(BASE_NS, levels, quantile, count, &mut noise);
                    let known = MedianEstimate::of(&figures, LEVEL).unwrap();
                    line.add(known.interval.unwrap(), truth);
                }
                lines.push(line);
            }
        }
    }
    judge("figure of a run (lab run, lab report)", &lines);
}

#[test]
fn a_run_that_ended_when_it_was_precise_has_no_narrower_truth() {
    let mut lines = Vec::new();
    for (name, levels) in LEVELS {
        let truth = truth(levels, 0.5);
        for precision in [0.05, 0.1] {
            let mut noise = Random::new(3);
            let what = format!("p50, 6 to 20 starts, until ±{:.0} %, {name}", precision * 100.0);
            let mut line = Line::new(what);
            for _ in 0..sets() {
                let all = starts(BASE_NS, levels, 0.5, 20, &mut noise);
                let mut rounds = 6;
                let known = loop {
                    let known = MedianEstimate::of(&all[..rounds as usize], LOOK_LEVEL).unwrap();
                    let half = known.half_width();
                    if half.is_some_and(|half| half <= precision) || rounds >= 20 {
                        break known;
                    }
                    rounds = next_look(rounds, half, precision).min(20);
                };
                line.add(known.interval.unwrap(), truth);
            }
            lines.push(line);
        }
    }
    judge("figure of a run that ends when it is known well enough", &lines);
}

#[test]
fn a_ratio_lies_where_it_says() {
    const FACTOR: f64 = 1.37;
    let mut lines = Vec::new();
    let mut pairs = Pairs::default();
    let mut cases: Vec<(&str, Levels, Levels, [u32; 2])> = Vec::new();
    for (name, levels) in LEVELS {
        cases.extend([[4, 4], [6, 6], [12, 12]].map(|counts| (name, levels, levels, counts)));
    }
    let (steady, unsteady) = (Levels::Normal(0.05), Levels::Normal(0.15));
    cases.extend([
        ("one spreads three times as much", steady, unsteady, [6, 6]),
        ("one spreads three times as much", steady, unsteady, [12, 6]),
        ("one spreads three times as much", steady, unsteady, [6, 12]),
    ]);
    for (figure, quantile) in FIGURES {
        for (name, base, other, [few, many]) in &cases {
            let mut noise = Random::new(u64::from(few * 100 + many));
            let mut line = Line::new(format!("{figure}, {few} and {many} starts, {name}"));
            for _ in 0..sets() {
                let base = starts(BASE_NS, *base, quantile, *few, &mut noise);
                let other = starts(BASE_NS * FACTOR, *other, quantile, *many, &mut noise);
                line.add(pairs.ratio(&base, &other).interval.unwrap(), FACTOR);
            }
            lines.push(line);
        }
    }
    judge("ratio to the base (lab compare, lab report)", &lines);
}
