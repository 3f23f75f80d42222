//! Sound books pass, and an error of any one number is found.

use super::*;
use crate::faults::CASES;

/// Samples of a packet.
const PACKET: u64 = 364;

/// A fault of the matrix, for this direction.
fn fault(name: &str, direction: Direction) -> Option<RoundFault> {
    let case = CASES.iter().find(|case| case.name == name).unwrap();
    Some(RoundFault { case, direction, stream: 0 })
}

/// Both directions while one packet from the radio was lost.
fn sound() -> SoakAccount {
    let rx = Books {
        expected: 1000 * PACKET,
        delivered: 999 * PACKET,
        lost: [("network_loss", PACKET)].into(),
        balances: true,
        radio_samples: (1000 * PACKET, 1000 * PACKET),
        ..Books::default()
    };
    let tx = Books {
        expected: 900 * PACKET,
        delivered: 900 * PACKET,
        balances: true,
        radio_samples: (900 * PACKET, 900 * PACKET),
        away_s: 0.01,
        ahead_s: 0.5,
        ..Books::default()
    };
    let radio = RadioCounts {
        rx_samples: 1000 * PACKET,
        tx_received: 900 * PACKET,
        tx_samples: 900 * PACKET,
        ..RadioCounts::default()
    };
    SoakAccount { rx: Some(rx), tx: Some(tx), radio, hits: 1, ..SoakAccount::default() }
}

/// What one changed number makes of it.
fn changed(change: impl Fn(&mut SoakAccount, &mut Books, &mut Books)) -> String {
    let mut account = sound();
    let (mut rx, mut tx) = (account.rx.take().unwrap(), account.tx.take().unwrap());
    change(&mut account, &mut rx, &mut tx);
    (account.rx, account.tx) = (Some(rx), Some(tx));
    account.complaints(fault("one packet lost", Direction::Rx), PACKET as u32).join("; ")
}

#[test]
fn books_that_agree_pass() {
    assert_eq!(changed(|_, _, _| ()), "");
    // The network may take the samples of the way that the fault concerns, and only these.
    let burst = |direction| {
        let mut account = sound();
        account.hits = 100;
        let books = match direction {
            Direction::Rx => account.rx.as_mut().unwrap(),
            Direction::Tx => account.tx.as_mut().unwrap(),
        };
        books.lost = [("network_loss", 100 * PACKET)].into();
        if direction == Direction::Tx {
            account.rx.as_mut().unwrap().lost.clear();
        }
        account.complaints(fault("burst of 100 lost", direction), PACKET as u32)
    };
    assert_eq!(burst(Direction::Rx), Vec::<String>::new());
    assert_eq!(burst(Direction::Tx), Vec::<String>::new());
}

fn lose(books: &mut Books, cause: &'static str, samples: u64) {
    books.lost.insert(cause, samples);
}

/// A change of one number.
type Change = fn(&mut SoakAccount, &mut Books, &mut Books);

#[test]
fn an_error_of_one_packet_is_found_wherever_it_is() {
    let changes: [(Change, &str); 16] = [
        (|_, rx, _| rx.balances = false, "receive: the ledger does not balance"),
        (|_, _, tx| tx.balances = false, "transmit: the ledger does not balance"),
        (|account, _, _| account.radio.rx_samples += PACKET, "but the ledgers 364000 to 364000"),
        (|account, _, _| account.radio.rx_samples -= 1, "the radio counts 363999 samples"),
        (|_, _, tx| tx.radio_samples.0 += 1, "the radio counts 327600 samples, but the ledgers"),
        (|account, _, _| account.hits = 2, "the fault hit 728 samples, but 364 were lost"),
        (|account, _, _| account.hits = 0, "the fault hit nothing"),
        (|_, rx, _| *rx.lost.get_mut("network_loss").unwrap() += 1, "364 samples, but 365 were"),
        (|_, _, tx| lose(tx, "network_loss", 1), "1 samples were lost that no fault"),
        (|_, rx, _| lose(rx, "device_overrun", 5), "5 samples overflowed the radio"),
        (|_, rx, _| lose(rx, "clock_jump", 5), "5 samples were lost by a jump"),
        (|_, rx, _| lose(rx, "host_queue_drop", 5), "5 samples were lost in this host"),
        (|_, rx, _| rx.wrong_samples = 1, "1 samples are not those of their time"),
        (|account, _, _| account.radio.tx_received += 1, "accounts for 327600"),
        (|account, _, _| account.radio.tx_late = 5, "the radio dropped 5 late samples"),
        (|account, _, _| account.radio.queue_drops = 1, "the radio lost 1 datagrams"),
    ];
    for (change, part) in changes {
        let told = changed(change);
        assert!(told.contains(part), "no \"{part}\" in \"{told}\"");
    }
}

#[test]
fn samples_may_be_late_only_where_the_thread_was_away() {
    let late = |away_s| {
        changed(|account, _, tx| {
            tx.lost.insert("late", 10);
            tx.away_s = away_s;
            (account.radio.tx_late, account.radio.tx_received) = (10, 900 * PACKET + 10);
        })
    };
    assert!(late(0.1).contains("never away for more than 0.100 s, where 0.500 s wait"));
    assert_eq!(late(0.2), "");
}

#[test]
fn a_busy_machine_excuses_what_depends_on_time_and_nothing_else() {
    let starved = |change: Change| {
        changed(|account, rx, tx| {
            account.cpu_wait = CpuWait { longest_s: 1.5, ..CpuWait::default() };
            change(account, rx, tx);
        })
    };
    assert_eq!(starved(|account, _, _| account.end = StreamEnd::Failed("silent".into())), "");
    assert_eq!(starved(|_, rx, _| lose(rx, "device_overrun", 5)), "");
    assert!(starved(|_, rx, _| rx.balances = false).contains("does not balance"));
    assert!(starved(|account, _, _| account.radio.rx_samples -= 1).contains("the radio counts"));
    let lost: Change = |_, _, tx| lose(tx, "network_loss", 1);
    assert!(starved(lost).contains("no fault hit"));
    // A stream that ended before its fault: nothing is wrong with the fault.
    let unhit: Change = |account, rx, _| {
        (account.end, account.hits) = (StreamEnd::Failed("silent".into()), 0);
        rx.lost.clear();
    };
    assert_eq!(starved(unhit), "");
    assert_eq!(changed(unhit), "the streams ended, and nothing asked them to: silent");
}

#[test]
fn only_a_receive_stream_that_failed_leaves_a_radio_that_goes_on() {
    let reboot = fault("reboot", Direction::Rx);
    let mut account = sound();
    account.end = StreamEnd::Failed("the device stopped answering".to_owned());
    account.radio.rx_samples += PACKET;
    assert_eq!(account.complaints(reboot, PACKET as u32), Vec::<String>::new());
    account.radio.tx_samples += PACKET;
    assert_eq!(
        account.complaints(reboot, PACKET as u32),
        ["transmit: the radio counts 327964 samples, but the ledgers 327600 to 327600"]
    );
    // What ends the streams has to have done it.
    (account.radio, account.hits) = (sound().radio, 0);
    assert_eq!(
        account.complaints(reboot, PACKET as u32),
        ["the fault hit nothing, so nothing was tested"]
    );
}

#[test]
fn behind_an_overrun_without_a_report_samples_may_be_unknown_but_not_lost() {
    let unreported = fault("overrun unreported", Direction::Rx);
    let mut account = sound();
    account.hits = 1;
    for (cause, complains) in [("unknown", false), ("network_loss", true), ("malformed", true)] {
        account.rx.as_mut().unwrap().lost = [(cause, 7)].into();
        let complaints = account.complaints(unreported, PACKET as u32).join("; ");
        assert_eq!(complaints.contains("no fault hit"), complains, "{cause}: {complaints}");
    }
    account.rx.as_mut().unwrap().lost = [("unknown", 7)].into();
    assert!(account.complaints(None, PACKET as u32).join("; ").contains("no fault hit"));
}

#[test]
fn without_a_fault_nothing_is_lost_and_nothing_ends() {
    let mut account = sound();
    let complaints = account.complaints(None, PACKET as u32).join("; ");
    assert!(complaints.contains("receive: 364 samples were lost that no fault hit: network_loss"));
    account.rx.as_mut().unwrap().lost.clear();
    assert_eq!(account.complaints(None, PACKET as u32), Vec::<String>::new());
    account.tx.as_mut().unwrap().lost.insert("unknown", 7);
    assert!(account.complaints(None, PACKET as u32)[0].contains("7 samples are unknown"));
    account.tx.as_mut().unwrap().lost.clear();
    account.end = StreamEnd::Failed("no answer".to_owned());
    assert!(
        account.complaints(None, PACKET as u32)[0].contains("nothing asked them to: no answer")
    );
    account.end = StreamEnd::Hangs;
    assert_eq!(account.complaints(None, PACKET as u32), ["the streams neither go on nor end"]);
}

#[test]
fn a_radio_that_is_gone_ends_the_streams_with_its_name() {
    let reboot = fault("reboot", Direction::Rx);
    let mut account = sound();
    let told = |account: &SoakAccount| account.complaints(reboot, PACKET as u32);
    assert_eq!(told(&account), ["the radio was gone, or stopped, and no stream noticed"]);
    account.end = StreamEnd::Failed("the device stopped answering".to_owned());
    assert_eq!(told(&account), Vec::<String>::new());
    account.end = StreamEnd::Failed("something".to_owned());
    assert_eq!(told(&account), ["the error does not name the cause: something"]);
}
