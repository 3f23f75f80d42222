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
        complaints: complaints.iter().map(|text| (*text).to_owned()).collect(),
    }
}

fn holdings(rss_kib: u64, descriptors: u64) -> Holdings {
    Holdings { rss_kib, descriptors, threads: 5 }
}

/// A record of so many rounds, which hold what `held` says.
fn record(rounds: u64, held: impl Fn(u64) -> Holdings) -> SoakRecord {
    let cases: Vec<_> = CASES.iter().collect();
    let mut record = SoakRecord::new(3);
    record.begin("now".to_owned(), "1".to_owned(), vec!["udp".to_owned()]);
    for number in 0..rounds {
        let plan = RoundPlan::draw(3, number, 1, &cases);
        record.add(&plan, "udp", &outcome(&[]), 2.0, &[("host", held(number))]);
    }
    record
}

#[test]
fn a_soak_goes_on_where_its_file_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("soak.json");
    assert_eq!(SoakRecord::load(&path).unwrap(), None);
    let mut first = record(3, |_| holdings(1000, 7));
    first.save(&path).unwrap();
    let mut second = SoakRecord::load(&path).unwrap().unwrap();
    assert_eq!(second, first);
    second.begin("later".to_owned(), "2".to_owned(), Vec::new());
    let plan = RoundPlan::draw(3, second.rounds, 1, &[]);
    second.add(&plan, "udp", &outcome(&["it is wrong"]), 2.0, &[]);
    second.save(&path).unwrap();
    first = SoakRecord::load(&path).unwrap().unwrap();
    assert_eq!((first.rounds, first.seconds, first.complaint_count), (4, 8.0, 1));
    assert_eq!((first.parts[1].first_round, first.parts[1].rounds), (3, 1));
    let tallies = first.faults.values();
    assert_eq!(tallies.clone().map(|tally| tally.rounds).sum::<u64>(), 4);
    assert_eq!(tallies.map(FaultTally::lost_total).sum::<u64>(), 40);
    let complaint = &first.complaints[0];
    assert_eq!((complaint.round, &*complaint.text), (3, "it is wrong"));
    assert!(complaint.what.starts_with("udp: "), "{complaint:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left over");
}

#[test]
fn another_file_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("soak.json");
    for text in ["", "{}", "[1]"] {
        std::fs::write(&path, text).unwrap();
        let error = SoakRecord::load(&path).unwrap_err().to_string();
        assert!(error.contains("is not a state of `bench soak`"), "{error}");
        assert!(error.ends_with("give another file, or delete this one to begin a new soak"));
    }
    let mut newer = SoakRecord::new(1);
    newer.form = 9;
    newer.save(&path).unwrap();
    let error = SoakRecord::load(&path).unwrap_err().to_string();
    assert!(error.contains("its form is 9, expected 1"), "{error}");
    assert!(SoakRecord::new(1).save(Path::new("/no/such/folder/x")).is_err());
}

#[test]
fn what_grows_is_named_with_its_process() {
    let grew = |held: &dyn Fn(u64) -> Holdings| record(120, held).verdicts()[0].grew.join(", ");
    assert_eq!(grew(&|_| holdings(20_000, 7)), "");
    assert_eq!(grew(&|round| holdings(20_000 + 50 * round, 7)), "memory");
    let leak = grew(&|round| holdings(20_000, 7 + round / 10));
    assert_eq!(leak, "descriptors (from 7 to 18)");
}
