//! Latencies whose cause was searched, the latest first.

use super::tables;
use super::view::ReportView;
use crate::explained::Explained;
use crate::picture::short_time;
use crate::record::Record;
use std::collections::BTreeMap;

/// The largest number of rows; the causes above them count all.
const ROWS: usize = 20;
/// The smallest share of the whole that is listed.
const SMALL: f64 = 0.02;

/// Lists how often each cause was found, and the latest outliers one by one.
pub(super) fn table(view: &ReportView<'_>) -> Option<String> {
    let mut all: Vec<(&str, &Record, &Explained)> = Vec::new();
    for (set, record) in view.labelled() {
        all.extend(record.measured.outliers.iter().map(|one| (set, record, one)));
    }
    if all.is_empty() {
        return None;
    }
    all.sort_by(|one, two| two.2.why.late_us.total_cmp(&one.2.why.late_us));
    let rows: Vec<_> =
        all.iter().take(ROWS).map(|(set, record, one)| row(set, record, one)).collect();
    let head =
        ["measurement | load", "set", "late by", "after", "cause", "who", "shares; evidence"];
    let intro = format!(
        "<p>Values above a threshold stopped a trace of the kernel's events; the time from \
         deadline to answer was divided among the users of the CPU, and the cause is the largest \
         part. The number of explanations is limited, {} here: {}.</p>\n",
        all.len(),
        causes(&all)
    );
    Some(intro + &tables::table(&head, &rows))
}

fn causes(all: &[(&str, &Record, &Explained)]) -> String {
    let mut counts = BTreeMap::<_, usize>::new();
    for (_, _, one) in all {
        *counts.entry(one.why.cause.name()).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let texts: Vec<_> = counts.iter().map(|(name, count)| format!("{count} × {name}")).collect();
    texts.join(", ")
}

fn row(set: &str, record: &Record, one: &Explained) -> Vec<String> {
    let time = |us: f64| short_time((us * 1e3) as u64);
    let why = &one.why;
    let large = why.shares.iter().filter(|share| share.us >= why.late_us * SMALL);
    let shares: Vec<_> = large
        .map(|share| format!("{} {} ({})", time(share.us), share.cause.name(), share.who))
        .collect();
    let evidence = [shares.join(", ")].into_iter().chain(why.evidence.iter().cloned());
    let told: Vec<_> = evidence.filter(|text| !text.is_empty()).collect();
    vec![
        record.title(),
        set.to_owned(),
        time(why.late_us),
        format!("{:.1} s", one.at_ns as f64 / 1e9),
        why.cause.name().to_owned(),
        why.who.clone(),
        told.join("; "),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Set;
    use crate::explained::{Explanation, LateCause, Share};
    use crate::record::tests::record;

    fn late(us: f64, cause: LateCause, who: &str) -> Explained {
        let shares = vec![
            Share { cause, who: who.to_owned(), us: us * 0.99 },
            Share { cause: LateCause::OwnWork, who: "its own".to_owned(), us: us * 0.01 },
        ];
        let evidence = vec!["3 interrupts on CPU 1 meanwhile".to_owned()];
        let why = Explanation { late_us: us, cause, who: who.to_owned(), shares, evidence };
        Explained { at_ns: 2_500_000_000, why }
    }

    #[test]
    fn the_latest_come_first_and_all_are_counted() {
        let mut seen = record("timer", &[1000]);
        let view =
            |sets| ReportView { title: "", sets, comparisons: &[], references: &[], failures: &[] };
        let none = [Set { label: "here".to_owned(), records: vec![seen.clone()] }];
        assert_eq!(table(&view(&none)), None);
        seen.measured.outliers = (0..30)
            .map(|n| late(f64::from(n) + 1.0, LateCause::Rival, "rustc <8>"))
            .chain([late(5_000.0, LateCause::PageFault, "its own pages")])
            .collect();
        let sets = [Set { label: "here".to_owned(), records: vec![seen] }];
        let text = table(&view(&sets)).unwrap();
        assert!(text.contains("31 here: 30 × rival thread, 1 × page fault"), "{text}");
        let rows: Vec<_> = text.lines().filter(|line| line.starts_with("<tr><td>")).collect();
        assert_eq!(rows.len(), ROWS);
        assert!(
            rows[0].contains("5.0 ms") && rows[0].contains("3 interrupts on CPU 1"),
            "{}",
            rows[0]
        );
        assert!(rows[1].contains("rustc &lt;8&gt;") && !rows[1].contains("its own"), "{}", rows[1]);
    }
}
