//! Where the kernel frees copies of packets for packet sockets, on kernels that have no reason for
//! it (before Linux 6.10).

use std::fs;
use std::ops::Range;
use std::path::Path;

/// The functions that take packets for packet sockets.
const FUNCTIONS: [&str; 2] = ["packet_rcv", "tpacket_rcv"];

/// The addresses of these functions; none where they are not known.
#[derive(Debug, Default)]
pub struct Taps(Vec<Range<u64>>);

impl Taps {
    /// Reads the kernel's symbols; their addresses are shown to those who have CAP_SYSLOG.
    pub fn of_kernel(root: &Path) -> Self {
        Self::parse(&fs::read_to_string(root.join("proc/kallsyms")).unwrap_or_default())
    }

    fn parse(symbols: &str) -> Self {
        let lines = || {
            symbols.lines().filter_map(|line| {
                let mut words = line.split_ascii_whitespace();
                let address = u64::from_str_radix(words.next()?, 16).ok()?;
                Some((address, words.nth(1)?))
            })
        };
        let ours = lines().filter(|(address, name)| *address > 0 && FUNCTIONS.contains(name));
        // Symbols of modules are not in order.
        let end = |begin| lines().map(|(address, _)| address).filter(|at| *at > begin).min();
        Self(ours.filter_map(|(begin, _)| Some(begin..end(begin)?)).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an instruction belongs to one of them.
    pub fn have(&self, location: u64) -> bool {
        self.0.iter().any(|range| range.contains(&location))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_reach_to_the_next_symbol() {
        let taps = Taps::parse(
            "ffffffff81000000 T _text\nffffffffc0002000 t tpacket_rcv\t[af_packet]\n\
             ffffffffc0001000 t packet_rcv\t[af_packet]\nffffffffc0001800 t other [af_packet]\n\
             ffffffffc0002800 d data [af_packet]\n",
        );
        let inside = [0xffff_ffff_c000_1000, 0xffff_ffff_c000_17ff, 0xffff_ffff_c000_2010];
        assert!(inside.iter().all(|at| taps.have(*at)));
        let outside = [0xffff_ffff_c000_1800, 0xffff_ffff_c000_2800, 0xffff_ffff_8100_0000];
        assert!(!outside.iter().any(|at| taps.have(*at)));
    }

    #[test]
    fn addresses_that_are_not_shown_are_not_used() {
        let hidden = "0000000000000000 t packet_rcv\n0000000000000000 t tpacket_rcv\n1 t x\n";
        assert!(!Taps::parse(hidden).have(0));
    }
}
