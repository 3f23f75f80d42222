//! Every fault, in both directions: the ledger balances, agrees with the device's own counts, and
//! the stream continues or ends with one error. Wall-clock speed does not matter.
//!
//! `MILLSTREAM_FAULT_CASE` names one case to run alone.

use millstream_lab::Direction;
use millstream_lab::faults::{CASES, run};

fn all(direction: Direction) {
    let mut complaints = Vec::new();
    let only = std::env::var("MILLSTREAM_FAULT_CASE").ok();
    for case in CASES.iter().filter(|case| only.as_ref().is_none_or(|only| case.name == only)) {
        let row = run(case, direction).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        println!("{row:?}");
        complaints.extend(row.complaints.iter().map(|text| format!("{}: {text}", case.name)));
    }
    assert!(complaints.is_empty(), "{direction:?}\n{}", complaints.join("\n"));
}

#[test]
fn receive_streams_come_through_every_fault() {
    all(Direction::Rx);
}

#[test]
fn transmit_streams_come_through_every_fault() {
    all(Direction::Tx);
}
