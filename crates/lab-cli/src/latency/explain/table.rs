//! Explanations as text.

use crate::output::Join;
use crate::table::Table;
use millstream_lab::explain::trials::{CauseTrial, Injection};
use millstream_measure::Measured;
use millstream_measure::explained::Explanation;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Shares below this part of the whole are left out.
const SMALL: f64 = 0.02;
/// Characters of a bar of the whole.
const BAR: f64 = 30.0;

/// The outliers of a measurement, and how many of each cause.
pub fn of_records(records: &[Measured]) -> String {
    let mut text = String::new();
    let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
    for record in records {
        for outlier in &record.outliers {
            *causes.entry(outlier.why.cause.name()).or_default() += 1;
            let _ = write!(text, "\n{}, after {:.1} s", record.series, outlier.at_ns as f64 / 1e9);
            text += &explanation(&outlier.why);
        }
    }
    if !causes.is_empty() {
        let causes = causes.iter().map(|(name, count)| format!("{count}x {name}")).join(", ");
        let _ = writeln!(text, "\nof those explained: {causes}");
    }
    text
}

/// One outlier: its cause, and the times of its parts.
pub fn explanation(found: &Explanation) -> String {
    let mut text =
        format!("\n{:.0} us late: {} - {}\n", found.late_us, found.cause.name(), found.who);
    for share in &found.shares {
        let part = share.us / found.late_us;
        if part < SMALL {
            continue;
        }
        let bar = "█".repeat((part * BAR).round() as usize);
        let name = share.cause.name();
        let _ = writeln!(text, "  {:>9.0} us  {bar:<30}  {name:<17} {}", share.us, share.who);
    }
    for line in &found.evidence {
        let _ = writeln!(text, "                {line}");
    }
    text
}

/// The injected causes, and how often each was named.
pub fn trials(trials: &[CauseTrial], threshold_us: u64) -> String {
    let of = |kind| trials.iter().filter(move |trial| trial.injected == kind);
    let right =
        |kind| format!("{}/{}", of(kind).filter(|trial| trial.right).count(), of(kind).count());
    let middle = |kind| {
        let found = of(kind).filter_map(|trial| trial.found.as_ref());
        let mut late: Vec<f64> = found.map(|found| found.late_us).collect();
        late.sort_by(f64::total_cmp);
        late.get(late.len() / 2).map_or_else(String::new, |us| format!("{us:.0}"))
    };
    let named = |kind| {
        let mut named: BTreeMap<String, usize> = BTreeMap::new();
        for trial in of(kind) {
            let name = match &trial.found {
                None => "no answer was late".to_owned(),
                Some(found) => format!("{} - {}", found.cause.name(), plain(&found.who)),
            };
            *named.entry(name).or_default() += 1;
        }
        let mut named: Vec<_> = named.into_iter().collect();
        named.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        named.iter().map(|(name, times)| format!("{times}x {name}")).join("; ")
    };
    let table = Table::of(Injection::ALL)
        .left("made to happen", |kind| kind.name())
        .right("right", right)
        .right("late us", middle)
        .left("named as", named);
    format!("answers later than {threshold_us} us\n\n{}", table.text())
}

/// A thread without its number, which differs from trial to trial.
fn plain(who: &str) -> String {
    match (who.find(" ("), who.find("),").or_else(|| who.ends_with(')').then(|| who.len() - 1))) {
        (Some(from), Some(to)) if from < to => format!("{}{}", &who[..from], &who[to + 1..]),
        _ => who.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_measure::explained::{LateCause, Share};

    fn found() -> Explanation {
        let share = |cause, who: &str, us| Share { cause, who: who.to_owned(), us };
        Explanation {
            late_us: 1000.0,
            cause: LateCause::Rival,
            who: "ms-hog (7), real time 98".to_owned(),
            shares: vec![
                share(LateCause::Rival, "ms-hog (7), real time 98", 990.0),
                share(LateCause::Interrupt, "local timer", 10.0),
            ],
            evidence: vec!["3 interrupts on CPU 1 meanwhile".to_owned()],
        }
    }

    #[test]
    fn an_outlier_is_told_with_its_larger_shares() {
        let text = explanation(&found());
        let lines: Vec<_> = text.lines().skip(1).collect();
        assert_eq!(lines[0], "1000 us late: rival thread - ms-hog (7), real time 98");
        assert!(lines[1].contains("990 us") && lines[1].contains('█'), "{text}");
        assert_eq!(lines.len(), 3, "1 % is left out: {text}");
    }

    #[test]
    fn trials_are_counted_by_what_was_named() {
        let trial = |found, right| CauseTrial { injected: Injection::Hog, found, right };
        let text = trials(&[trial(Some(found()), true), trial(None, false)], 500);
        let line = text.lines().find(|line| line.starts_with("FIFO hog")).unwrap();
        assert!(line.contains("1/2") && line.contains("1000"), "{line}");
        assert!(line.contains("1x rival thread - ms-hog, real time 98"), "{line}");
        assert!(line.contains("1x no answer was late"), "{line}");
        assert_eq!((plain("x (1)"), plain("NET_RX")), ("x".to_owned(), "NET_RX".to_owned()));
    }
}
