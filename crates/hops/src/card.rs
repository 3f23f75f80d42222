//! What a card says of its receive ring: how large it is, and how often it was full.
//!
//! The kernel has a counter for that, `rx_missed_errors`, and two older ones that drivers use for
//! it, `rx_fifo_errors` and `rx_over_errors` (`linux/if_link.h`). Some drivers count under names of
//! their own, beside the kernel's counter or in place of it.

use millstream_host::ethtool::{CardCounters, Ethtool};
use millstream_host::netlink::LinkCounters;

/// Where a driver counts the packets for which its ring had no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RingCounter {
    /// In the kernel's counters. Where there is no ring they stay zero.
    Kernel,
    /// Nowhere: what fills the ring drops without a word.
    Untold,
    /// In the kernel's counters, and others in those of these names.
    Beside(&'static [&'static str]),
    /// In those of these names; the kernel's counters have some of them or none, by the version.
    Instead(&'static [&'static str]),
}

/// The drivers that do not count in the kernel's counters alone, by their sources in Linux,
/// `drivers/net/`. (`rx_no_buffer_count` of Intel's drivers is left out: the card's own memory may
/// still have held the packet. So are `rx_queue_N_drops`, which `rx_dropped` contains.)
const DRIVERS: [(&str, RingCounter); 6] = [
    // The hypervisor fills its ring.
    ("virtio_net", RingCounter::Untold),
    // `out_of_buffer`: no buffer in the ring (in `rx_dropped` before Linux 6.10, then in
    // `rx_missed_errors`). `discards_phy`: the port's memory was full (since 6.14 in `rx_dropped`).
    ("mlx5_core", RingCounter::Instead(&["rx_out_of_buffer", "rx_discards_phy"])),
    // Register QPRDC: dropped because one queue of several had no descriptor.
    ("ixgbe", RingCounter::Beside(&["rx_no_dma_resources"])),
    // What the device dropped; `rx_dropped` has the same.
    ("ena", RingCounter::Instead(&["rx_drops"])),
    // "Out of buffers", each queue; in `rx_dropped`, too.
    ("vmxnet3", RingCounter::Instead(&["pkts rx OOB"])),
    // The DMA engine had no descriptor; in `rx_dropped`, too.
    ("atlantic", RingCounter::Instead(&["InDroppedDma"])),
];

/// The receive ring of an interface's card.
#[derive(Debug)]
pub(crate) struct CardRing {
    driver: String,
    counter: RingCounter,
    /// The places of the counters among those of the driver, and how many the driver had then.
    places: (Vec<usize>, usize),
}

/// What a card says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CardReading {
    /// The sum of the driver's own counters, if it has them.
    own: Option<u64>,
    /// The entries of the ring, and the most that it can have.
    pub(crate) entries: Option<(u32, u32)>,
}

impl CardRing {
    pub(crate) fn of(ethtool: &Ethtool, interface: &str) -> Self {
        let driver = ethtool.driver(interface).unwrap_or_default();
        let row = DRIVERS.iter().find(|(name, _)| *name == driver);
        let counter = match row {
            Some((_, counter)) => *counter,
            None => RingCounter::Kernel,
        };
        Self { driver, counter, places: (Vec::new(), 0) }
    }

    /// Asks the driver, which may take long.
    pub(crate) fn read(
        &mut self,
        ethtool: &Ethtool,
        counters: &mut CardCounters,
        interface: &str,
    ) -> CardReading {
        let own = match self.counter {
            RingCounter::Beside(names) | RingCounter::Instead(names) => {
                self.sum(ethtool, counters, interface, names)
            }
            _ => None,
        };
        let rings = ethtool.rings(interface).ok();
        let entries = rings.map(|(now, most)| (now.receive, most.receive));
        CardReading { own, entries: entries.filter(|(now, _)| *now > 0) }
    }

    fn sum(
        &mut self,
        ethtool: &Ethtool,
        counters: &mut CardCounters,
        interface: &str,
        names: &[&str],
    ) -> Option<u64> {
        let (places, known) = &mut self.places;
        let mut values: Vec<u64> = counters.values(ethtool, interface).ok()?.collect();
        if values.len() != *known {
            let all = counters.names(ethtool, interface).ok()?;
            *places = places_of(&all, names);
            *known = all.len();
            values = counters.values(ethtool, interface).ok()?.collect();
        }
        // It has changed once more.
        if values.len() != *known || places.is_empty() {
            return None;
        }
        Some(places.iter().fold(0, |sum, place| values[*place].wrapping_add(sum)))
    }

    /// Returns the packets for which the ring had no room; `None` where nobody counts them.
    pub(crate) fn full(&self, kernel: &LinkCounters, card: &CardReading) -> Option<u64> {
        let general = [kernel.rx_missed_errors, kernel.rx_fifo_errors, kernel.rx_over_errors];
        let general = general.into_iter().fold(0, u64::wrapping_add);
        match self.counter {
            RingCounter::Untold => None,
            RingCounter::Kernel => Some(general),
            RingCounter::Beside(_) => Some(general.wrapping_add(card.own.unwrap_or(0))),
            RingCounter::Instead(_) => Some(card.own.unwrap_or(general)),
        }
    }

    /// Returns the driver if its ring can be full without a counter that says so.
    pub(crate) fn silent(&self) -> Option<&str> {
        (self.counter == RingCounter::Untold).then_some(&self.driver)
    }
}

fn places_of(all: &[String], names: &[&str]) -> Vec<usize> {
    let mut places = Vec::new();
    places.extend((0..all.len()).filter(|place| names.contains(&all[*place].as_str())));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(driver: &str) -> CardRing {
        let (_, counter) = DRIVERS.iter().find(|(name, _)| *name == driver).unwrap();
        CardRing { driver: driver.to_owned(), counter: *counter, places: (Vec::new(), 0) }
    }

    #[test]
    fn no_packet_is_counted_twice() {
        let kernel = LinkCounters { rx_missed_errors: 5, rx_fifo_errors: 1, ..Default::default() };
        let card = CardReading { own: Some(7), entries: None };
        let full = |driver| of(driver).full(&kernel, &card);
        assert_eq!(full("virtio_net"), None, "nobody counts them");
        assert_eq!(full("ixgbe"), Some(13), "one counts what the other does not");
        assert_eq!(full("mlx5_core"), Some(7), "both count the same");
        let silent = CardReading::default();
        assert_eq!(of("mlx5_core").full(&kernel, &silent), Some(6), "the driver does not answer");
    }

    #[test]
    fn a_counter_of_each_queue_is_found_at_all_its_places() {
        let names = ["Tx Queue#", "pkts rx OOB", "drv dropped rx total", "pkts rx OOB"];
        let names = names.map(str::to_owned);
        assert_eq!(places_of(&names, &["pkts rx OOB"]), [1, 3]);
        assert!(places_of(&names, &["rx_drops"]).is_empty());
    }
}
