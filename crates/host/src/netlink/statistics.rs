//! What an interface counts (RTM_GETSTATS, `struct rtnl_link_stats64` of `linux/if_link.h`).

use super::message::{NetlinkMessage, NetlinkRequest, attributes_after, u64_at};
use super::{Netlink, NetlinkError};

/// `linux/rtnetlink.h`.
const RTM_NEWSTATS: u16 = 92;
const RTM_GETSTATS: u16 = 94;
/// `struct if_stats_msg`: family and padding, the interface, the mask of what is wanted.
const FIXED_BYTES: usize = 12;
/// `linux/if_link.h`.
const IFLA_STATS_LINK_64: u16 = 1;

/// The counters of an interface, packets. `linux/if_link.h` says what each should mean; drivers
/// differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Received and not passed on, by the driver or by the kernel. A full backlog, and a protocol
    /// that nobody knows, count here.
    pub rx_dropped: u64,
    /// Not sent, by the driver.
    pub tx_dropped: u64,
    /// Not sent because of an error.
    pub tx_errors: u64,
    /// Received with a wrong length.
    pub rx_length_errors: u64,
    /// Received without room; older drivers mean the card's ring.
    pub rx_over_errors: u64,
    /// Received with a wrong checksum of the frame.
    pub rx_crc_errors: u64,
    /// Received with an alignment error.
    pub rx_frame_errors: u64,
    /// Received while a queue of the card was full.
    pub rx_fifo_errors: u64,
    /// Received while the host had given the card no memory: its ring was full.
    pub rx_missed_errors: u64,
}

impl Netlink {
    /// Returns what an interface counts; `None` if there is no such interface. Needs no rights.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's answer; "not supported" before Linux 4.7.
    pub fn link_counters(&mut self, interface: u32) -> Result<Option<LinkCounters>, NetlinkError> {
        let mask = 1u32 << (IFLA_STATS_LINK_64 - 1);
        let fixed = [0, interface, mask].map(u32::to_ne_bytes).concat();
        let request = NetlinkRequest::new(RTM_GETSTATS, libc::NLM_F_ACK, &fixed);
        self.socket.ask_for("ask for an interface's counters", &request, &[libc::ENODEV], parse)
    }
}

fn parse(message: &NetlinkMessage<'_>) -> Option<LinkCounters> {
    if message.kind != RTM_NEWSTATS {
        return None;
    }
    let mut attributes = attributes_after(message.body, FIXED_BYTES);
    let (_, value) = attributes.find(|(kind, _)| *kind == IFLA_STATS_LINK_64)?;
    let field = |index: usize| u64_at(value, index * 8);
    Some(LinkCounters {
        tx_errors: field(5)?,
        rx_dropped: field(6)?,
        tx_dropped: field(7)?,
        rx_length_errors: field(10)?,
        rx_over_errors: field(11)?,
        rx_crc_errors: field(12)?,
        rx_frame_errors: field(13)?,
        rx_fifo_errors: field(14)?,
        rx_missed_errors: field(15)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_counts_and_a_missing_one_is_none() {
        let mut netlink = Netlink::open().unwrap();
        let lo = netlink.interface("lo").unwrap().index;
        assert!(netlink.link_counters(lo).unwrap().is_some());
        assert_eq!(netlink.link_counters(i32::MAX.unsigned_abs()).unwrap(), None);
    }

    #[test]
    fn fields_are_those_of_the_kernel_and_a_cut_answer_is_left_out() {
        let counters: Vec<u8> = (0..16u64).flat_map(u64::to_ne_bytes).collect();
        let bytes = NetlinkRequest::new(RTM_NEWSTATS, 0, &[0; FIXED_BYTES])
            .with(IFLA_STATS_LINK_64, &counters)
            .numbered(1);
        let body = &bytes[16..];
        let message = |body| NetlinkMessage { kind: RTM_NEWSTATS, flags: 0, sequence: 1, body };
        let found = parse(&message(body)).unwrap();
        assert_eq!((found.tx_errors, found.rx_dropped, found.rx_missed_errors), (5, 6, 15));
        for cut in 0..body.len() {
            assert_eq!(parse(&message(&body[..cut])), None, "{cut} bytes");
        }
        assert_eq!(parse(&NetlinkMessage { kind: 0, ..message(body) }), None);
    }
}
