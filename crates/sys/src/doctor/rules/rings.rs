//! How many frames a card holds for its processor.

use crate::doctor::{Evidence, Finding, Rule, Topic, View};

/// See the file's head.
pub const RULE: Rule = Rule {
    id: "ring-sizes",
    topic: Topic::Network,
    why: "a ring that is full before its CPU comes loses frames that no socket ever saw",
    check,
};

/// Frames: 3.5 ms of 1.2 million a second.
const WANTED: u32 = 4096;

fn check(view: &View) -> Vec<Finding> {
    let finding = |interface: String| {
        let (now, max) = view.nic(&interface)?.rings?;
        let (wanted, wanted_tx) = (WANTED.min(max.receive), WANTED.min(max.transmit));
        let value = format!(
            "rx {} of {}, tx {} of {}",
            now.receive, max.receive, now.transmit, max.transmit
        );
        let seen = Evidence { path: format!("ethtool -g {interface}"), value };
        let finding = match now.receive >= wanted {
            true => Finding::good(format!("{} frames to receive", now.receive)),
            false => {
                Finding::costs(format!("{} frames to receive, could be {wanted}", now.receive))
                    .mend_by_hand(format!("ethtool -G {interface} rx {wanted} tx {wanted_tx}"))
            }
        };
        Some(finding.about(interface).seen([seen]))
    };
    view.interfaces().into_iter().filter_map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::RULE;
    use crate::doctor::Verdict::{Absent, Costs, Good};
    use crate::doctor::machine::Machine;

    fn machine(now: u32, max: u32) -> Machine {
        let of = |frames| format!(r#"{{"receive": {frames}, "transmit": {frames}}}"#);
        let nic = format!(r#"{{"driver": "ice", "rings": [{}, {}]}}"#, of(now), of(max));
        Machine::new().with_eth0().with("ethtool/eth0.json", &nic)
    }

    #[test]
    fn a_small_ring_that_could_be_larger_costs() {
        let found = machine(512, 8160).one(&RULE);
        assert_eq!((found.verdict, &*found.says), (Costs, "512 frames to receive, could be 4096"));
        assert_eq!(found.mend.unwrap().command, "ethtool -G eth0 rx 4096 tx 4096");
        assert_eq!(machine(256, 256).verdict(&RULE), Good, "it is the card's largest");
        assert_eq!(Machine::new().with_eth0().verdict(&RULE), Absent);
    }
}
