//! The number of frames that a card can hold for its processor.

use crate::doctor::{Evidence, Finding, MachineFiles, Verdict};

/// A size that every card for such streams supports.
const WANTED: u32 = 4096;

/// The samples in a frame of 1500 bytes: 1472 bytes after Ethernet, IP and UDP, less CHDR's 16.
const SAMPLES_A_FRAME: f64 = 364.0;

/// The longest delay of a soft interrupt by the kernel, milliseconds.
const HOLD_MIN_MS: f64 = 5.0;

pub fn check(view: &MachineFiles) -> Vec<Finding> {
    let finding = |interface: String| {
        let (now, max) = view.nic(&interface)?.rings?;
        let (wanted, wanted_tx) = (WANTED.min(max.receive), WANTED.min(max.transmit));
        let value = format!(
            "rx {} of {}, tx {} of {}",
            now.receive, max.receive, now.transmit, max.transmit
        );
        let seen = Evidence { path: format!("ethtool -g {interface}"), value };
        let holds_ms = f64::from(now.receive) * SAMPLES_A_FRAME / view.rate_hz() * 1e3;
        let weight = if holds_ms < HOLD_MIN_MS { Verdict::Matters } else { Verdict::Minor };
        let finding = match now.receive >= wanted {
            true => Finding::good(format!("{} frames to receive", now.receive)),
            false => {
                let says = format!("{} frames to receive, could be {wanted}", now.receive);
                Finding::of(weight, says)
                    .cost(format!("frames of 1500 bytes fill it in {holds_ms:.1} ms"))
                    .mend_by_hand(format!("ethtool -G {interface} rx {wanted} tx {wanted_tx}"))
            }
        };
        Some(finding.about(interface).seen([seen]))
    };
    view.interfaces().into_iter().filter_map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::doctor::Verdict::{Absent, Good, Matters, Minor};
    use crate::doctor::machine::TestMachine;
    use crate::doctor::{Focus, MachineFiles};

    fn machine(now: u32, max: u32) -> TestMachine {
        let of = |frames| format!(r#"{{"receive": {frames}, "transmit": {frames}}}"#);
        let nic = format!(r#"{{"driver": "ice", "rings": [{}, {}]}}"#, of(now), of(max));
        TestMachine::new().with_eth0().with("ethtool/eth0.json", &nic)
    }

    #[test]
    fn a_small_ring_that_could_be_larger_costs() {
        let found = machine(512, 8160).one(check);
        assert_eq!(
            (found.verdict, &*found.says),
            (Matters, "512 frames to receive, could be 4096")
        );
        assert_eq!(found.mend.unwrap().command, "ethtool -G eth0 rx 4096 tx 4096");
        assert_eq!(found.cost.unwrap(), "frames of 1500 bytes fill it in 3.7 ms");
        let slow = Focus { rate_hz: Some(1e6), ..Focus::default() };
        let found = check(&MachineFiles::of(machine(512, 8160).view().root(), slow));
        assert_eq!(found[0].verdict, Minor);
        assert_eq!(machine(256, 256).verdict(check), Good, "it is the card's largest");
        assert_eq!(TestMachine::new().with_eth0().verdict(check), Absent);
    }
}
