//! Settings of network cards, as their drivers report them (ethtool(8)).

use crate::doctor::{DriverAnswers, Evidence, Finding, MachineFiles, Verdict};
use crate::ethtool::Offload;

/// Judges each card of the stream by its driver's answers. `judge` returns the answer that `ethtool
/// OPTION` shows, with the finding; `None` where the driver does not report it.
fn each(
    view: &MachineFiles,
    option: &str,
    judge: impl Fn(&str, DriverAnswers) -> Option<(String, Finding)>,
) -> Vec<Finding> {
    let finding = |interface: String| {
        let (value, finding) = judge(&interface, view.nic(&interface)?)?;
        let seen = Evidence { path: format!("ethtool {option} {interface}"), value };
        Some(finding.about(interface).seen([seen]))
    };
    view.interfaces().into_iter().filter_map(finding).collect()
}

/// A size that every card for such streams supports.
const RING_WANTED: u32 = 4096;

/// The samples in a frame of 1500 bytes: 1472 bytes after Ethernet, IP and UDP, less CHDR's 16.
const SAMPLES_A_FRAME: f64 = 364.0;

/// The longest delay of a soft interrupt by the kernel, milliseconds.
const HOLD_MIN_MS: f64 = 5.0;

/// Checks the sizes of a card's rings: the frames that it can hold until a CPU takes them.
pub fn rings(view: &MachineFiles) -> Vec<Finding> {
    each(view, "-g", |interface, answers| {
        let (now, max) = answers.rings?;
        let [wanted, wanted_tx] = [max.receive, max.transmit].map(|max| RING_WANTED.min(max));
        let value = format!(
            "rx {} of {}, tx {} of {}",
            now.receive, max.receive, now.transmit, max.transmit
        );
        let holds_ms = f64::from(now.receive) * SAMPLES_A_FRAME / view.rate_hz() * 1e3;
        let weight = if holds_ms < HOLD_MIN_MS { Verdict::Matters } else { Verdict::Minor };
        let says = format!("{} frames in the receive ring", now.receive);
        let finding = match now.receive >= wanted {
            true => Finding::good(says),
            false => Finding::of(weight, format!("{says}; {wanted} fit"))
                .cost(format!("frames of 1500 bytes fill it in {holds_ms:.1} ms"))
                .mend_by_hand(format!("ethtool -G {interface} rx {wanted} tx {wanted_tx}")),
        };
        Some((value, finding))
    })
}

/// Checks the number of active queues of a card.
pub fn queues(view: &MachineFiles) -> Vec<Finding> {
    each(view, "-l", |interface, answers| {
        let (now, max) = answers.channels?;
        let (have, could) = (now.receiving(), max.receive.max(max.combined));
        let kind = if max.combined > 0 { "combined" } else { "rx" };
        let finding = match have > 1 || could < 2 {
            true => Finding::good(format!("{have} of {could} receive queues are in use")),
            false => Finding::minor(format!("1 of {could} receive queues is in use"))
                .mend_by_hand(format!("ethtool -L {interface} {kind} 2")),
        };
        Some((format!("{have} of {could} receive"), finding))
    })
}

/// Checks offloads: work that the card, or the kernel in batches, could do.
pub fn offloads(view: &MachineFiles) -> Vec<Finding> {
    each(view, "-k", |interface, answers| {
        // TSO concerns only TCP, which carries no samples.
        let off: Vec<_> = answers.off.into_iter().filter(|off| *off != Offload::Tso).collect();
        if off.is_empty() {
            return Some(("all on".to_owned(), Finding::good("checksums, GSO and GRO are on")));
        }
        let names: Vec<_> = off.iter().map(|off| off.row().1).collect();
        let switches: Vec<_> = names.iter().map(|name| format!("{name} on")).collect();
        let names = names.join(", ");
        let are_trains = off.contains(&Offload::Gro) || off.contains(&Offload::Gso);
        let weight = if are_trains { Verdict::Matters } else { Verdict::Minor };
        let finding = Finding::of(weight, format!("off: {names}"))
            .mend_by_hand(format!("ethtool -K {interface} {}", switches.join(" ")));
        let finding = match are_trains {
            true => finding.cost("a third of the rate or less: docs/evidence/links-udp.md"),
            false => finding,
        };
        Some((format!("{names} off"), finding))
    })
}

/// The approximate time in which the kernel itself hands a frame over, microseconds.
const WAIT_MAX_US: u32 = 16;

/// A wait longer than the balanced defaults of drivers, microseconds.
const WAIT_GREAT_US: u32 = 100;

/// Checks the time that a card collects frames before an interrupt.
pub fn coalescing(view: &MachineFiles) -> Vec<Finding> {
    each(view, "-c", |interface, answers| {
        let found = answers.coalescing?;
        let (wait, frames) = (found.receive_us, found.receive_frames);
        let adaptive = if found.adaptive { "adaptive" } else { "fixed" };
        let weight = if wait > WAIT_GREAT_US { Verdict::Matters } else { Verdict::Minor };
        let finding = match (found.adaptive, wait) {
            (true, _) => Finding::unknown("the driver adapts the wait to the traffic"),
            (false, ..=WAIT_MAX_US) => Finding::good(format!("the card waits {wait} us at most")),
            (false, _) => Finding::of(weight, "the card waits before it interrupts")
                .cost(format!("up to {wait} us a packet; it saves interrupts"))
                .mend_by_hand(format!("ethtool -C {interface} rx-usecs 8")),
        };
        Some((format!("{wait} us, {frames} frames, {adaptive}"), finding))
    })
}

#[cfg(test)]
mod tests {
    use super::{coalescing, offloads, queues, rings};
    use crate::doctor::Verdict::{Absent, Good, Matters, Minor, Unknown};
    use crate::doctor::machine::TestMachine;
    use crate::doctor::{Focus, MachineFiles};

    fn machine(answers: &str) -> TestMachine {
        let nic = format!(r#"{{"driver": "ice", {answers}}}"#);
        TestMachine::new().with_eth0().with("ethtool/eth0.json", &nic)
    }

    #[test]
    fn a_small_ring_that_could_be_larger_costs() {
        let of = |frames| format!(r#"{{"receive": {frames}, "transmit": {frames}}}"#);
        let machine = |now, max| machine(&format!(r#""rings": [{}, {}]"#, of(now), of(max)));
        let found = machine(512, 8160).one(rings);
        assert_eq!(
            (found.verdict, &*found.says),
            (Matters, "512 frames in the receive ring; 4096 fit")
        );
        assert_eq!(found.mend.unwrap().command, "ethtool -G eth0 rx 4096 tx 4096");
        assert_eq!(found.cost.unwrap(), "frames of 1500 bytes fill it in 3.7 ms");
        let slow = Focus { rate_hz: Some(1e6), ..Focus::default() };
        let found = rings(&MachineFiles::of(machine(512, 8160).view().root(), slow));
        assert_eq!(found[0].verdict, Minor);
        assert_eq!(machine(256, 256).verdict(rings), Good, "it is the card's largest");
        assert_eq!(TestMachine::new().with_eth0().verdict(rings), Absent);
    }

    #[test]
    fn one_queue_of_many_costs() {
        let of = |count| format!(r#"{{"receive": 0, "transmit": 0, "combined": {count}}}"#);
        let machine = |now, max| machine(&format!(r#""channels": [{}, {}]"#, of(now), of(max)));
        let found = machine(1, 8).one(queues);
        assert_eq!((found.verdict, &*found.says), (Minor, "1 of 8 receive queues is in use"));
        assert_eq!(found.mend.unwrap().command, "ethtool -L eth0 combined 2");
        assert_eq!(machine(1, 1).verdict(queues), Good);
        assert_eq!(machine(8, 8).verdict(queues), Good);
        assert_eq!(TestMachine::new().with_eth0().verdict(queues), Absent);
    }

    #[test]
    fn what_is_off_is_named() {
        let machine = |off: &str| machine(&format!(r#""off": {off}"#));
        let found = machine(r#"["gro", "tso"]"#).one(offloads);
        assert_eq!((found.verdict, &*found.says), (Matters, "off: gro"));
        assert_eq!(found.mend.unwrap().command, "ethtool -K eth0 gro on");
        assert_eq!(machine(r#"["receive-checksum"]"#).verdict(offloads), Minor);
        assert_eq!(machine("[]").verdict(offloads), Good);
        assert_eq!(machine(r#"["tso"]"#).verdict(offloads), Good);
        assert_eq!(TestMachine::new().with_eth0().verdict(offloads), Absent);
    }

    #[test]
    fn a_long_wait_costs_itself() {
        let machine = |wait_us: u32, adaptive: bool| {
            let rest = format!(r#""receive_frames": 0, "adaptive": {adaptive}"#);
            machine(&format!(r#""coalescing": {{"receive_us": {wait_us}, {rest}}}"#))
        };
        let found = machine(50, false).one(coalescing);
        assert_eq!(found.verdict, Minor);
        assert_eq!(machine(250, false).verdict(coalescing), Matters);
        assert_eq!(found.cost.unwrap(), "up to 50 us a packet; it saves interrupts");
        assert_eq!(machine(8, false).verdict(coalescing), Good);
        assert_eq!(machine(50, true).verdict(coalescing), Unknown);
        assert_eq!(TestMachine::new().with_eth0().verdict(coalescing), Absent);
    }
}
