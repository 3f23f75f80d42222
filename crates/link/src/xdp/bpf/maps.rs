//! The memory shared with our program: the rules that we write, the counters that it writes.

use std::net::Ipv4Addr;

use crate::frame::Steer;

/// The most addresses that one link serves.
pub const ADDRESSES_MAX: usize = 8;
/// The most further Ethernet types that one link serves.
pub const ETHERTYPES_MAX: usize = 4;
/// The most UDP ports that one link serves: the rows of counters except row 0.
pub const PORTS_MAX: usize = 255;
/// The most queues of one program (a power of two): those that can have a socket.
pub const QUEUES_MAX: usize = 256;

/// Every frame is wanted.
pub const EVERYTHING: u32 = 1;
/// The kernel does not have the addresses: every frame for them is wanted.
pub const OWN_ADDRESSES: u32 = 2;
/// No VLAN tag.
pub const UNTAGGED: u32 = 0x1000;
/// Stands for no address: the limited broadcast's, which is wanted anyway if its port is.
const NO_ADDRESS: u32 = u32::MAX;
/// Matches no frame where it is compared, because IPv4 takes an earlier branch.
const NO_ETHERTYPE: u16 = 0x0800_u16.to_be();

/// The rules in the program's encoding. Fields of frames are in network order.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct Rules {
    pub flags: u32,
    /// The wanted VLAN, or [`UNTAGGED`].
    pub vlan: u32,
    /// The most frames that a queue passes in one interval; 0: all.
    pub interval_frames: u32,
    /// The binary logarithm of the interval in nanoseconds.
    pub interval_shift: u32,
    pub addresses: [u32; ADDRESSES_MAX],
    pub ethertypes: [u16; ETHERTYPES_MAX],
    /// The row of counters of a UDP port; 0: not wanted.
    pub ports: [u8; 65536],
}

/// The size of [`Rules`], bytes.
pub const RULES_BYTES: usize = size_of::<Rules>();

impl Rules {
    /// Creates rules for the wanted frames, with a limit of `rate_max_hz` frames per second and
    /// queue (0: none).
    ///
    /// # Errors
    /// The exceeded limit, in words.
    pub fn new(steer: &Steer, rate_max_hz: u32) -> Result<Box<Self>, String> {
        let most = |what: &str, count: usize, max: usize| match count > max {
            true => Err(format!("{count} {what} are too many: one link can have at most {max}")),
            false => Ok(()),
        };
        most("addresses", steer.addresses.len(), ADDRESSES_MAX)?;
        most("Ethernet types", steer.ethertypes.len(), ETHERTYPES_MAX)?;
        most("UDP ports", steer.udp_ports.len(), PORTS_MAX)?;
        let (interval_frames, interval_shift) = guard(rate_max_hz);
        let flag = |on, bit| if on { bit } else { 0 };
        let address = |address: &Ipv4Addr| u32::from_ne_bytes(address.octets());
        let own = steer.own_addresses && !steer.addresses.is_empty();
        let mut rules = Box::new(Self {
            flags: flag(steer.everything, EVERYTHING) | flag(own, OWN_ADDRESSES),
            vlan: steer.vlan.filter(|id| *id > 0).map_or(UNTAGGED, u32::from),
            interval_frames,
            interval_shift,
            // Every value is compared with addresses, so the rest repeats the first.
            addresses: [steer.addresses.first().map_or(NO_ADDRESS, address); ADDRESSES_MAX],
            ethertypes: [NO_ETHERTYPE; ETHERTYPES_MAX],
            ports: [0; 65536],
        });
        for (to, from) in rules.addresses.iter_mut().zip(&steer.addresses) {
            *to = address(from);
        }
        for (to, kind) in rules.ethertypes.iter_mut().zip(&steer.ethertypes) {
            *to = kind.to_be();
        }
        for (row, port) in (1..).zip(&steer.udp_ports) {
            let of = &mut rules.ports[usize::from(*port)];
            // A port that is listed twice has the first row.
            *of = if *of == 0 { row } else { *of };
        }
        Ok(rules)
    }
}

/// Returns frames per interval, and the interval: about 1 ms; for low rates 134 ms, so that a whole
/// number of frames still represents the rate.
fn guard(rate_max_hz: u32) -> (u32, u32) {
    if rate_max_hz == 0 {
        return (0, 20);
    }
    let shift = if rate_max_hz >= 100_000 { 20 } else { 27 };
    let frames = (u64::from(rate_max_hz) << shift).div_ceil(1_000_000_000);
    (frames as u32, shift)
}

/// One row of counters, written by the program, on its own cache line.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
struct CounterRow(ProgramCounts);

/// The binary logarithm of the distance of rows in bytes.
pub const ROW_SHIFT: i32 = size_of::<CounterRow>().trailing_zeros() as i32;

/// Returns the size of the counters for `cpus` processors, bytes: rows by port and processor, then
/// rows by queue, a cache line each.
#[must_use]
pub fn counters_bytes(cpus: u32) -> usize {
    queues_at(cpus) + QUEUES_MAX * size_of::<CounterRow>()
}

/// Returns the offset of the rows by queue.
pub fn queues_at(cpus: u32) -> usize {
    (PORTS_MAX + 1) * cpus as usize * size_of::<CounterRow>()
}

/// The program's data of one queue: the rate limit's interval and its frames, and wanted frames
/// that came while no socket watched the queue.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
pub struct QueueRow {
    pub interval: u64,
    pub interval_frames: u64,
    pub unwatched: u64,
}

/// Reads the wanted frames that came on each queue while no socket watched it: queue and frames.
///
/// # Safety
/// `counters` is the map's value for `cpus` processors, mapped.
pub unsafe fn read_unwatched(counters: *const u8, cpus: u32) -> Vec<(u32, u64)> {
    const { assert!(size_of::<QueueRow>() == size_of::<CounterRow>()) };
    // SAFETY: the row begins within the value (the caller's promise).
    let rows = unsafe { counters.add(queues_at(cpus)) }.cast::<QueueRow>();
    let row = |queue: usize| {
        // SAFETY: as above; the program may write at any time, so it is read as volatile.
        let row = unsafe { rows.add(queue).read_volatile() };
        (queue as u32, row.unwatched)
    };
    (0..QUEUES_MAX).map(row).filter(|(_, frames)| *frames > 0).collect()
}

/// The program's counts for one port (or for all other wanted frames).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
#[non_exhaustive]
pub struct ProgramCounts {
    /// Wanted frames.
    pub frames: u64,
    /// Their bytes, Ethernet header included.
    pub bytes: u64,
    /// Of these, frames on a queue without a socket, which the kernel got.
    pub unwatched: u64,
    /// Of these, frames lost beyond the rate limit.
    pub limited: u64,
}

impl ProgramCounts {
    /// Subtracts the counts of `other`. A negative result wraps around, and is corrected when the
    /// result is subtracted in turn.
    pub(crate) fn less(self, other: Self) -> Self {
        Self {
            frames: self.frames.wrapping_sub(other.frames),
            bytes: self.bytes.wrapping_sub(other.bytes),
            unwatched: self.unwatched.wrapping_sub(other.unwatched),
            limited: self.limited.wrapping_sub(other.limited),
        }
    }
}

/// Sums row `row` over all processors.
///
/// # Safety
/// `counters` is the map's value for `cpus` processors, mapped.
pub unsafe fn read_counts(counters: *const u8, cpus: u32, row: usize) -> ProgramCounts {
    assert!(row <= PORTS_MAX);
    let rows = counters.cast::<CounterRow>();
    let mut sum = ProgramCounts::default();
    for cpu in 0..cpus as usize {
        // SAFETY: within the value (the caller's promise); the program may write at any time, so
        // it is read as volatile.
        let CounterRow(one) = unsafe { rows.add(row * cpus as usize + cpu).read_volatile() };
        sum.frames += one.frames;
        sum.bytes += one.bytes;
        sum.unwatched += one.unwatched;
        sum.limited += one.limited;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_becomes_frames_per_interval_of_at_least_that_rate() {
        assert_eq!(guard(0), (0, 20));
        assert_eq!(guard(1_000_000), (1049, 20));
        assert_eq!(guard(1000), (135, 27));
        assert_eq!(guard(1), (1, 27));
    }

    #[test]
    fn too_many_ports_or_addresses_are_refused_in_words() {
        let ports = Steer { udp_ports: (0..256).collect(), ..Steer::default() };
        let error = Rules::new(&ports, 0).unwrap_err();
        assert_eq!(error, "256 UDP ports are too many: one link can have at most 255");
        let addresses = vec![Ipv4Addr::LOCALHOST; 9];
        let addresses = Steer { addresses, ..Steer::default() };
        assert!(Rules::new(&addresses, 0).unwrap_err().starts_with("9 addresses"));
    }
}
