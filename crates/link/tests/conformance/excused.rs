//! Rules that a driver below a link is known to break: said in docs/dpdk.md, and with each run.

use crate::wire::{Shape, Wire};

/// What DPDK 22.11's af_xdp breaks: it leaves frames behind, takes buffers to send from out of
/// those to receive into, and does not find its interface again.
const AF_XDP_BREAKS: [&str; 7] = [
    "a_closed_link_opens_again_at_once",
    "a_user_that_does_not_look_loses_counted_frames",
    "a_user_that_keeps_everything_loses_counted_frames",
    "frames_go_back_in_any_order",
    "rules_that_hit_nothing_change_nothing",
    "steady_state_allocates_nothing",
    "what_does_not_fit_stays_with_the_caller",
];

impl Wire {
    /// Two of DPDK's `af_xdp` ports on a veth pair.
    pub fn dpdk_af_xdp(shape: Shape) -> Option<Self> {
        let mut wire = Self::dpdk_veth(shape)?;
        wire.excused = &AF_XDP_BREAKS;
        Some(wire)
    }

    /// Whether the driver below is known to break a rule, which is said.
    pub fn is_excused(&self, rule: &str) -> bool {
        let excused = self.excused.contains(&rule);
        if excused {
            eprintln!("skipped: DPDK's driver breaks this rule (docs/dpdk.md)");
        }
        excused
    }
}
