//! The file of a soak, and what grows.

use super::*;
use crate::faults::CASES;
use crate::soak::{Books, RoundOutcome};

fn outcome(complaints: &[&str]) -> RoundOutcome {
    let rx = Books {
        expected: 100,
        delivered: 90,
        lost: [("network_loss", 10)].into(),
        ..Books::default()
    };
    let account = SoakAccount { rx: Some(rx), hits: 1, ..SoakAccount::default() };
    RoundOutcome {
        accounts: vec![account],
        is_cut: false,
        complaints: complaints.iter().map(|text| (*text).to_owned()).collect(),
    }
}

fn holdings(rss_kib: u64, descriptors: u64) -> Holdings {
    Holdings { rss_kib, descriptors, threads: 5 }
}

/// A record of so many rounds, which hold what `held` says.
fn record(rounds: u64, held: impl Fn(u64) -> Holdings) -> SoakRecord {
    let cases: Vec<_> = CASES.iter().collect();
    let mut record = SoakRecord::new(3, "lost");
    record.begin("now".to_owned(), "1".to_owned(), vec!["udp".to_owned()], 0);
    for number in 0..rounds {
        let plan = RoundPlan::draw(3, number, 1, &cases);
        record.add(&plan, "udp", &outcome(&[]), 2.0, &[("host", held(number))]);
    }
    record
}

#[test]
fn a_soak_goes_on_where_its_file_ends() {
    let first = record(3, |_| holdings(1000, 7));
    let mut second = SoakRecord::of_text(&first.text()).unwrap();
    assert_eq!(second, first);
    second.begin("later".to_owned(), "2".to_owned(), first.links.clone(), second.rounds);
    let plan = RoundPlan::draw(3, second.rounds, 1, &[]);
    second.add(&plan, "udp", &outcome(&["it is wrong"]), 2.0, &[]);
    let third = SoakRecord::of_text(&second.text()).unwrap();
    assert_eq!((third.rounds, third.seconds, third.complaint_count), (4, 8.0, 1));
    assert_eq!((third.parts[1].first_round, third.parts[1].rounds), (3, 1));
    assert_eq!((&*third.only, &third.links[..]), ("lost", &["udp".to_owned()][..]));
    let tallies = third.faults.values();
    assert_eq!(tallies.clone().map(|tally| tally.rounds).sum::<u64>(), 4);
    assert_eq!(tallies.map(FaultTally::lost_total).sum::<u64>(), 40);
    let complaint = &third.complaints[0];
    assert_eq!((complaint.round, &*complaint.text), (3, "it is wrong"));
    assert!(complaint.what.starts_with("udp: "), "{complaint:?}");
}

#[test]
fn another_form_is_refused() {
    let mut newer = SoakRecord::new(1, "");
    newer.form = 9;
    let error = SoakRecord::of_text(&newer.text()).unwrap_err();
    assert_eq!(error, format!("its form is 9, expected {FORM}"));
    // The first form had neither links nor a choice of faults.
    let older = newer.text().replace(r#""form":9"#, r#""form":1"#);
    let older = older.replace(r#","only":"","links":[]"#, "");
    let error = SoakRecord::of_text(&older).unwrap_err();
    assert_eq!(error, format!("its form is 1, expected {FORM}"));
}

#[test]
fn what_grows_is_named_with_its_process() {
    let grew = |held: &dyn Fn(u64) -> Holdings| record(120, held).verdicts()[0].grew.join(", ");
    assert_eq!(grew(&|_| holdings(20_000, 7)), "");
    assert_eq!(grew(&|round| holdings(20_000 + 50 * round, 7)), "memory");
    let leak = grew(&|round| holdings(20_000, 7 + round / 10));
    assert_eq!(leak, "descriptors (from 7 to 18)");
}
