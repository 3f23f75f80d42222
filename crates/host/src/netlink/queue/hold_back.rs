//! Delayed packets (tc-netem(8)).

use super::super::message::{NetlinkRequest, attribute};
use super::super::{Netlink, NetlinkError};
use super::{HANDLE, TC_H_ROOT, TCA_KIND, TCA_OPTIONS, fixed};
use std::time::Duration;

const TCA_NETEM_LATENCY64: u16 = 10;
/// The largest number of delayed packets.
const LIMIT: u32 = 10_000;

impl Netlink {
    /// Makes the kernel delay every packet that an interface sends (`netem`), in place of its root
    /// queue. Needs CAP_NET_ADMIN, and the module `sch_netem`.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's answer; "not found" where it has no netem.
    pub fn hold_back(&mut self, interface: u32, delay: Duration) -> Result<(), NetlinkError> {
        // `struct tc_netem_qopt`: latency (in ticks; the attribute after it is more precise),
        // limit, loss, gap, duplicate, jitter.
        let options = [0, LIMIT, 0, 0, 0, 0].map(u32::to_ne_bytes).concat();
        let delay_ns = i64::try_from(delay.as_nanos()).unwrap_or(i64::MAX);
        let latency = attribute(TCA_NETEM_LATENCY64, &delay_ns.to_ne_bytes());
        let options = [options, latency].concat();
        let flags = libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
        let fixed = fixed(interface, HANDLE, TC_H_ROOT);
        let request = NetlinkRequest::new(libc::RTM_NEWQDISC, flags, &fixed)
            .with(TCA_KIND, b"netem\0")
            .with(TCA_OPTIONS, &options);
        self.socket.ask("have packets held back by netem", &request, |_| None::<()>).map(drop)
    }
}
