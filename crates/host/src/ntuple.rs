//! The hardware queue of a UDP port: receive classification rules ("ntuple") by
//! `ETHTOOL_SRXCLSRLINS` and related commands (`linux/ethtool.h`; ethtool(8), `-N`).

use crate::ethtool::Ethtool;
use std::io;

const GET_RULE_COUNT: u32 = 0x2e;
const GET_RULE: u32 = 0x2f;
const GET_ALL_RULES: u32 = 0x30;
const DELETE_RULE: u32 = 0x31;
const INSERT_RULE: u32 = 0x32;

/// `UDP_V4_FLOW`.
const UDP_OVER_IPV4: u32 = 0x02;
/// `RX_CLS_LOC_SPECIAL`, in the answer to `GET_RULE_COUNT`: the driver chooses places itself.
const FINDS_PLACES: u64 = 0x8000_0000;
/// `RX_CLS_LOC_ANY`.
const ANY_PLACE: u32 = 0xffff_ffff;
/// The largest number of rules that are read.
const RULES_MAX: usize = 4096;

/// `struct ethtool_flow_ext`.
type Extension = [u8; 20];

/// `struct ethtool_tcpip4_spec` in a `union ethtool_flow_union`; numbers in network order.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Match {
    source: [u8; 4],
    destination: [u8; 4],
    source_port: [u8; 2],
    destination_port: [u8; 2],
    service: u8,
    rest: [u8; 31],
    end: [u8; 8],
}

/// `struct ethtool_rxnfc` with its `struct ethtool_rx_flow_spec`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct RuleArgs {
    command: u32,
    flow_type: u32,
    data: u64,
    rule_flow_type: u32,
    value: Match,
    value_extension: Extension,
    mask: Match,
    mask_extension: Extension,
    gap: u32,
    queue: u64,
    place: u32,
    end: u32,
    count: u32,
    rest: u32,
}

/// The same with space for the places of rules after it.
#[repr(C)]
struct AllArgs {
    args: RuleArgs,
    places: [u32; RULES_MAX],
}

impl RuleArgs {
    fn new(command: u32) -> Self {
        Self { command, ..Self::default() }
    }

    /// Returns a rule that gives a UDP port to a queue.
    fn insert(port: u16, queue: u32, place: u32) -> Self {
        let to_port =
            |port: u16| Match { destination_port: port.to_be_bytes(), ..Match::default() };
        Self {
            rule_flow_type: UDP_OVER_IPV4,
            value: to_port(port),
            mask: to_port(u16::MAX),
            queue: u64::from(queue),
            place,
            ..Self::new(INSERT_RULE)
        }
    }

    /// Returns the queue, if this is a rule for a whole UDP port.
    fn queue_of(&self, port: u16) -> Option<u32> {
        let wanted = Self::insert(port, 0, 0);
        let same = self.rule_flow_type == UDP_OVER_IPV4
            && (self.value.destination_port, self.mask) == (port.to_be_bytes(), wanted.mask);
        same.then_some(self.queue as u32)
    }
}

impl Ethtool {
    /// Returns the queue that a rule of the device gives a UDP port, if there is one.
    ///
    /// # Errors
    /// `Unsupported` where the driver has no such rules.
    pub fn port_queue(&self, interface: &str, port: u16) -> io::Result<Option<u32>> {
        Ok(self.port_rule(interface, port)?.map(|(_, queue)| queue))
    }

    /// Makes the device give a UDP port to a queue; `None`: by its hash, as any other.
    ///
    /// # Errors
    /// `Unsupported` where the driver cannot, or rules are off (`ethtool -K eth1 ntuple on`);
    /// `PermissionDenied`; `StorageFull` when every place for a rule is taken.
    pub fn set_port_queue(&self, interface: &str, port: u16, queue: Option<u32>) -> io::Result<()> {
        let there = self.port_rule(interface, port)?;
        if there.map(|(_, queue)| queue) == queue {
            return Ok(());
        }
        if let Some((place, _)) = there {
            let mut args = RuleArgs { place, ..RuleArgs::new(DELETE_RULE) };
            // SAFETY: the structure that the command reads.
            unsafe { self.ethtool(interface, &mut args)? };
        }
        if let Some(queue) = queue {
            let mut args = RuleArgs::insert(port, queue, self.place(interface)?);
            // SAFETY: as above.
            unsafe { self.ethtool(interface, &mut args)? };
        }
        Ok(())
    }

    /// Returns place and queue of the rule for a UDP port.
    fn port_rule(&self, interface: &str, port: u16) -> io::Result<Option<(u32, u32)>> {
        let (places, _) = self.places(interface)?;
        for place in places {
            let mut args = RuleArgs { place, ..RuleArgs::new(GET_RULE) };
            // SAFETY: the structure that the command reads and writes.
            unsafe { self.ethtool(interface, &mut args)? };
            if let Some(queue) = args.queue_of(port) {
                return Ok(Some((place, queue)));
            }
        }
        Ok(None)
    }

    /// Returns the occupied places, and the driver's information about places (`data` of its
    /// answer).
    fn places(&self, interface: &str) -> io::Result<(Vec<u32>, u64)> {
        let mut count = RuleArgs::new(GET_RULE_COUNT);
        // SAFETY: the structure that the command writes.
        unsafe { self.ethtool(interface, &mut count)? };
        let args = RuleArgs { count: RULES_MAX as u32, ..RuleArgs::new(GET_ALL_RULES) };
        let mut all = Box::new(AllArgs { args, places: [0; RULES_MAX] });
        // SAFETY: the structure that the command writes, with as many places as it says.
        unsafe { self.ethtool(interface, &mut *all)? };
        let taken = all.places[..(all.args.count as usize).min(RULES_MAX)].to_vec();
        Ok((taken, count.data.max(all.args.data)))
    }

    fn place(&self, interface: &str) -> io::Result<u32> {
        let (taken, told) = self.places(interface)?;
        free_place(&taken, told).ok_or_else(|| io::ErrorKind::StorageFull.into())
    }
}

/// Returns a place for a rule within the number that the driver reports: the last free one, because
/// earlier rules win and belong to others.
fn free_place(taken: &[u32], told: u64) -> Option<u32> {
    if told & FINDS_PLACES != 0 {
        return Some(ANY_PLACE);
    }
    (0..told as u32).rev().find(|place| !taken.contains(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn structures_have_the_layout_of_the_kernel() {
        assert_eq!(size_of::<Match>(), 52);
        assert_eq!(size_of::<RuleArgs>(), 192);
        assert_eq!(offset_of!(RuleArgs, value), 20);
        assert_eq!(offset_of!(RuleArgs, mask), 92);
        assert_eq!(offset_of!(RuleArgs, queue), 168);
        assert_eq!(offset_of!(RuleArgs, place), 176);
        assert_eq!(offset_of!(RuleArgs, count), 184);
        assert_eq!(offset_of!(AllArgs, places), 192);
    }

    #[test]
    fn a_rule_matches_the_destination_port_and_nothing_else() {
        let rule = RuleArgs::insert(0xC001, 3, 7);
        // SAFETY: plain integers without padding.
        let bytes: [u8; 192] = unsafe { std::mem::transmute(rule) };
        let mut expected = [0; 192];
        expected[..4].copy_from_slice(&0x32u32.to_ne_bytes());
        expected[16..20].copy_from_slice(&2u32.to_ne_bytes());
        expected[30..32].copy_from_slice(&[0xC0, 0x01]);
        expected[102..104].copy_from_slice(&[0xFF, 0xFF]);
        expected[168..176].copy_from_slice(&3u64.to_ne_bytes());
        expected[176..180].copy_from_slice(&7u32.to_ne_bytes());
        assert_eq!(bytes, expected);
        assert_eq!(rule.queue_of(0xC001), Some(3));
        assert_eq!(rule.queue_of(0xC002), None);
        let mut narrower = rule;
        narrower.mask.source = [255; 4];
        assert_eq!(narrower.queue_of(0xC001), None, "somebody's rule for one sender");
    }

    #[test]
    fn a_driver_that_finds_places_is_left_to_it_and_another_told_the_last_free_one() {
        assert_eq!(free_place(&[], FINDS_PLACES | 64), Some(ANY_PLACE));
        assert_eq!(free_place(&[63, 5, 62], 64), Some(61));
        assert_eq!(free_place(&[0, 1], 2), None);
    }

    #[test]
    fn a_device_without_rules_says_so() {
        let error = Ethtool::open().unwrap().port_queue("lo", 1).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
    }
}
