//! The counters of a card under its driver's own names (`ETHTOOL_GSTRINGS`, `ETHTOOL_GSTATS` of
//! `linux/ethtool.h`; ethtool(8), `-S`).

use super::Ethtool;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use std::io;

const GET_STRINGS: u32 = 0x1b;
const GET_COUNTERS: u32 = 0x1d;
/// `ETH_SS_STATS`: the names of counters.
const COUNTER_NAMES: u32 = 1;
/// `ETH_GSTRING_LEN`.
const NAME_BYTES: usize = 32;
/// The head of both structures: command, with names the set, count. Counters begin at byte 8.
const NAMES_HEAD_BYTES: usize = 12;
const COUNTERS_HEAD_BYTES: usize = 8;
/// More than the names of any card: 32 000 of them.
const MEMORY_BYTES: usize = 1 << 20;
/// A multiple of every page size.
const GUARD_BYTES: usize = 64 << 10;

/// Reads the counters of cards, into memory that it keeps.
#[derive(Debug)]
pub struct CardCounters {
    memory: Memory,
}

impl CardCounters {
    /// Reserves the memory.
    ///
    /// # Errors
    /// When the process may have no more.
    pub fn new() -> io::Result<Self> {
        Ok(Self { memory: Memory::new()? })
    }

    /// Returns the names of an interface's counters, in the order of [`values`](Self::values).
    ///
    /// # Errors
    /// `Unsupported` where the driver has none, `ENODEV` when there is no such interface.
    pub fn names(&mut self, ethtool: &Ethtool, interface: &str) -> io::Result<Vec<String>> {
        let head = [GET_STRINGS, COUNTER_NAMES, 0];
        let count = self.memory.ask(ethtool, interface, &head)?[2] as usize;
        let bytes = self.memory.bytes(NAMES_HEAD_BYTES, count * NAME_BYTES)?;
        let name = |bytes: &[u8]| {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
        };
        Ok(bytes.chunks_exact(NAME_BYTES).map(name).collect())
    }

    /// Returns the counters of an interface. Their number changes with the number of queues.
    ///
    /// # Errors
    /// As [`CardCounters::names`].
    pub fn values(
        &mut self,
        ethtool: &Ethtool,
        interface: &str,
    ) -> io::Result<impl ExactSizeIterator<Item = u64> + '_> {
        let count = self.memory.ask(ethtool, interface, &[GET_COUNTERS, 0])?[1] as usize;
        let bytes = self.memory.bytes(COUNTERS_HEAD_BYTES, count * size_of::<u64>())?;
        let value = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
        Ok(bytes.chunks_exact(size_of::<u64>()).map(value))
    }
}

/// Memory into which the kernel writes as many names or counters as the driver has just then,
/// without a look at how many fit. A guard behind it, which cannot be written, makes the kernel
/// stop with EFAULT.
#[derive(Debug)]
struct Memory {
    address: usize,
}

impl Memory {
    fn new() -> io::Result<Self> {
        let (length, flags) = (MEMORY_BYTES + GUARD_BYTES, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let address = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), length, ProtFlags::empty(), flags)?
        };
        let memory = Self { address: address as usize };
        let (read, write) = (MprotectFlags::READ, MprotectFlags::WRITE);
        // SAFETY: the first bytes of the mapping that `memory` owns.
        unsafe { rustix::mm::mprotect(address, MEMORY_BYTES, read | write)? };
        Ok(memory)
    }

    /// Has the kernel answer the request `head`, and returns the head of its answer.
    fn ask<const N: usize>(
        &mut self,
        ethtool: &Ethtool,
        interface: &str,
        head: &[u32; N],
    ) -> io::Result<[u32; N]> {
        let at = self.address as *mut [u32; N];
        // SAFETY: a mapping is aligned and longer than the head, and any bytes are numbers. The
        // kernel reads the head, and writes an answer up to the guard at most.
        unsafe {
            at.write(*head);
            ethtool.ethtool(interface, &mut *at)?;
            Ok(at.read_volatile())
        }
    }

    fn bytes(&self, from: usize, length: usize) -> io::Result<&[u8]> {
        if from + length > MEMORY_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        // SAFETY: inside the mapping, which is readable and lives as long as `self`; nothing writes
        // to it meanwhile, as that needs `&mut self`.
        Ok(unsafe { std::slice::from_raw_parts((self.address as *const u8).add(from), length) })
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`; no borrow of it lives on.
        let _ = unsafe { rustix::mm::munmap(self.address as *mut _, MEMORY_BYTES + GUARD_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_testkit::netns::{INTERFACE, PairOptions, VethPair};

    #[test]
    fn a_card_has_a_value_for_each_name() {
        let Some(pair) = VethPair::new(PairOptions { queues: 3, ..Default::default() }) else {
            return;
        };
        pair.left.run(|| {
            let (ethtool, mut counters) = (Ethtool::open().unwrap(), CardCounters::new().unwrap());
            let names = counters.names(&ethtool, INTERFACE).unwrap();
            let values: Vec<u64> = counters.values(&ethtool, INTERFACE).unwrap().collect();
            assert_eq!(names.len(), values.len(), "{names:?}");
            assert!(names.iter().any(|name| name == "rx_queue_2_drops"), "{names:?}");
            // The number of the other end's interface, which is not zero.
            let peer = names.iter().position(|name| name == "peer_ifindex").unwrap();
            assert!(values[peer] > 0, "{values:?}");
            assert!(counters.names(&ethtool, "lo").is_err(), "lo has none");
        });
    }

    #[test]
    fn an_answer_longer_than_the_memory_is_an_error_and_touches_nothing_else() {
        let memory = Memory::new().unwrap();
        assert!(memory.bytes(8, MEMORY_BYTES).is_err());
        assert_eq!(memory.bytes(8, MEMORY_BYTES - 8).unwrap().len(), MEMORY_BYTES - 8);
        // The kernel refuses to write there.
        let guard = (memory.address + MEMORY_BYTES) as *mut libc::c_void;
        let zero = std::fs::File::open("/dev/zero").unwrap();
        use std::os::fd::AsRawFd;
        // SAFETY: the guard is memory of this process that nothing else uses.
        let read = unsafe { libc::read(zero.as_raw_fd(), guard, 8) };
        assert_eq!((read, io::Error::last_os_error().raw_os_error()), (-1, Some(libc::EFAULT)));
    }
}
