//! What interfaces, backlogs, the IPv4 and UDP layers and the hypervisor count.

use crate::card::{CardReading, CardRing};
use crate::pace::Paced;
use millstream_host::ethtool::{CardCounters, Ethtool};
use millstream_host::netlink::{Netlink, NetlinkError, NetlinkInterface, Queued};
use millstream_watch::{InterfaceReading, StackReading};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// The least time between two questions to a card's driver, some of which ask their firmware, and
/// between two readings of `/proc/stat`, which is long on large machines and counts in 10 ms.
const SLOW: Duration = Duration::from_millis(100);

/// The counters of one network namespace, opened once.
#[derive(Debug)]
pub(crate) struct Counters {
    netlink: Netlink,
    ethtool: Ethtool,
    card_counters: CardCounters,
    interfaces: Vec<Interface>,
    backlog: ProcFile,
    stack: ProcFile,
    machine: ProcFile,
    stolen: Paced<Option<u64>>,
}

#[derive(Debug)]
struct Interface {
    name: String,
    card: CardRing,
    reading: Paced<CardReading>,
}

impl Counters {
    /// Opens the counters of the calling thread's namespace: of these interfaces and of those below
    /// them (the card of a VLAN, the cards of a bond), or of all. A bond itself is left out.
    pub(crate) fn open(names: &[String]) -> Result<Self, NetlinkError> {
        let refused = |source| NetlinkError::Refused { what: "read the cards' counters", source };
        let mut netlink = Netlink::open()?;
        let all = netlink.interfaces()?;
        let mut wanted: Vec<_> = all.iter().map(|interface| interface.index).collect();
        if !names.is_empty() {
            let named = names.iter().map(|name| Ok(netlink.interface(name)?.index));
            wanted = named.collect::<Result<_, NetlinkError>>()?;
            let layers = netlink.layers()?;
            let mut place = 0;
            while let Some(upper) = wanted.get(place).copied() {
                let below = layers.iter().filter(|(index, _)| *index == upper);
                let new: Vec<_> = below
                    .map(|(_, lower)| *lower)
                    .filter(|lower| !wanted.contains(lower))
                    .collect();
                wanted.extend(new);
                place += 1;
            }
        }
        let ethtool = Ethtool::open().map_err(refused)?;
        let wanted = wanted.iter().filter_map(|index| all.iter().find(|one| one.index == *index));
        let interfaces = wanted
            .filter(|one| !is_sum(one))
            .map(|NetlinkInterface { name, .. }| Interface {
                name: name.clone(),
                card: CardRing::of(&ethtool, name),
                reading: Paced::new(SLOW),
            })
            .collect();
        Ok(Self {
            netlink,
            ethtool,
            card_counters: CardCounters::new().map_err(refused)?,
            interfaces,
            backlog: ProcFile::open("/proc/thread-self/net/softnet_stat"),
            stack: ProcFile::open("/proc/thread-self/net/snmp"),
            machine: ProcFile::open("/proc/stat"),
            stolen: Paced::new(SLOW),
        })
    }

    /// Reads the interfaces, those that were named first.
    pub(crate) fn interfaces(&mut self, now: Instant) -> Vec<InterfaceReading> {
        let Self { netlink, ethtool, card_counters, interfaces, .. } = self;
        let queues = netlink.root_queues().unwrap_or_default();
        let read = |one: &mut Interface| {
            let name = one.name.clone();
            one.read(now, netlink, ethtool, card_counters, &queues)
                .unwrap_or(InterfaceReading { name, ..Default::default() })
        };
        interfaces.iter_mut().map(read).collect()
    }

    pub(crate) fn backlog_dropped(&mut self) -> Option<u64> {
        backlog_dropped(self.backlog.read()?)
    }

    pub(crate) fn stack(&mut self) -> StackReading {
        self.stack.read().map(stack).unwrap_or_default()
    }

    pub(crate) fn stolen_ns(&mut self, now: Instant) -> Option<u64> {
        let machine = &mut self.machine;
        *self.stolen.read(now, || stolen_ns(machine.read()?))
    }

    /// Says what these counters leave open.
    pub(crate) fn lacks(&self) -> Vec<String> {
        let silent = self.interfaces.iter().filter_map(|one| Some((one, one.card.silent()?)));
        let mut lacks: Vec<_> = silent
            .map(|(one, driver)| {
                format!(
                    "{}: its driver ({driver}) does not count packets that found its ring full: \
                     such a loss looks like one on the wire",
                    one.name
                )
            })
            .collect();
        if self.backlog.file.is_none() {
            lacks.push("/proc/net/softnet_stat cannot be read: a full backlog is not seen".into());
        }
        if self.stack.file.is_none() {
            lacks.push("/proc/net/snmp cannot be read: losses in IPv4 and UDP are not seen".into());
        }
        lacks
    }
}

/// Whether the counters of an interface are the sums of those of others, and would count twice.
fn is_sum(interface: &NetlinkInterface) -> bool {
    matches!(interface.kind.as_deref(), Some("bond" | "team"))
}

impl Interface {
    /// Reads it; `None` while there is no such interface.
    fn read(
        &mut self,
        now: Instant,
        netlink: &mut Netlink,
        ethtool: &Ethtool,
        card_counters: &mut CardCounters,
        queues: &[(u32, Queued)],
    ) -> Option<InterfaceReading> {
        let Self { name, card, reading } = self;
        // Anew each time: an interface that is made again has another number.
        let index = ethtool.index(name).ok()?;
        let kernel = netlink.link_counters(index).ok().flatten()?;
        let said = *reading.read(now, || card.read(ethtool, card_counters, name));
        let damaged = [kernel.rx_crc_errors, kernel.rx_frame_errors, kernel.rx_length_errors];
        let queue = queues.iter().find(|(number, _)| *number == index);
        Some(InterfaceReading {
            name: name.clone(),
            ring_full: card.full(&kernel, &said),
            damaged: Some(damaged.into_iter().fold(0, u64::wrapping_add)),
            receive_dropped: Some(kernel.rx_dropped),
            send_dropped: Some(kernel.tx_dropped.wrapping_add(kernel.tx_errors)),
            queue_dropped: queue.map(|(_, queue)| u64::from(queue.drops)),
            ring_entries: said.entries,
        })
    }
}

/// A file of `/proc` that is read again and again.
#[derive(Debug)]
pub(crate) struct ProcFile {
    file: Option<File>,
    text: Vec<u8>,
    /// Whether the kernel refused the last reading.
    pub(crate) is_refused: bool,
}

impl ProcFile {
    pub(crate) fn open(path: impl AsRef<Path>) -> Self {
        Self { file: File::open(path).ok(), text: Vec::new(), is_refused: false }
    }

    /// Returns the text as it is now; `None` if it cannot be read, or is no text.
    pub(crate) fn read(&mut self) -> Option<&str> {
        let file = self.file.as_ref()?;
        self.is_refused = false;
        let mut length = 0;
        loop {
            self.text.resize(self.text.len().max(length + 4096), 0);
            match file.read_at(&mut self.text[length..], length as u64) {
                Ok(0) => break,
                Ok(bytes) => length += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.is_refused = error.kind() == io::ErrorKind::PermissionDenied;
                    return None;
                }
            }
        }
        std::str::from_utf8(&self.text[..length]).ok()
    }
}

/// Sums the second column of `/proc/net/softnet_stat` over the CPUs.
fn backlog_dropped(text: &str) -> Option<u64> {
    let column = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    text.lines().map(column).try_fold(0u64, |sum, dropped| Some(sum.wrapping_add(dropped?)))
}

/// Reads `/proc/net/snmp`, which has two lines for each layer: names and numbers.
fn stack(text: &str) -> StackReading {
    let sum = |layer, names: &[&str]| {
        let mut lines = text.lines().filter_map(|line| line.split_once(": "));
        let mut line = || lines.find(|(name, _)| *name == layer).map(|(_, rest)| rest);
        let (heads, numbers) = (line()?, line()?);
        let columns = heads.split(' ').zip(numbers.split(' '));
        let wanted = columns.filter(|(head, _)| names.contains(head));
        let mut numbers = wanted.map(|(_, number)| number.parse::<u64>().ok()).peekable();
        numbers.peek()?;
        numbers.try_fold(0u64, |sum, number| Some(sum.wrapping_add(number?)))
    };
    let unsent = [sum("Udp", &["SndbufErrors"]), sum("Ip", &["OutDiscards"])];
    let unsent = unsent.into_iter().flatten().reduce(u64::wrapping_add);
    StackReading {
        ip_discarded: sum("Ip", &["InDiscards", "InHdrErrors", "InAddrErrors"]),
        reassembly_failed: sum("Ip", &["ReasmFails"]),
        udp_damaged: sum("Udp", &["InCsumErrors"]),
        udp_no_room: sum("Udp", &["RcvbufErrors"]),
        send_dropped: unsent,
    }
}

/// Reads the stolen time of all CPUs in `/proc/stat`.
fn stolen_ns(text: &str) -> Option<u64> {
    const STEAL: usize = 7;
    let times = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: u64 = times.split_whitespace().nth(STEAL)?.parse().ok()?;
    let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
    Some(ticks.wrapping_mul(tick_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "\
Ip: Forwarding InHdrErrors InAddrErrors InDiscards OutDiscards ReasmFails\n\
Ip: 2 1 20 300 4000 50000\n\
IcmpMsg: InType3\n\
Udp: InDatagrams InErrors RcvbufErrors SndbufErrors InCsumErrors\n\
Udp: 9 9 6 70 8\n\
UdpLite: RcvbufErrors\n\
UdpLite: 99\n";

    #[test]
    fn the_layers_of_the_stack_are_told_apart() {
        let expected = StackReading {
            ip_discarded: Some(321),
            reassembly_failed: Some(50_000),
            udp_damaged: Some(8),
            udp_no_room: Some(6),
            send_dropped: Some(4_070),
        };
        assert_eq!(stack(SNMP), expected);
        let wrong = SNMP.replace("Udp: 9 9 6 70 8", "Udp: 9 9 x -1 99999999999999999999999");
        assert_eq!((stack(&wrong).udp_no_room, stack(&wrong).udp_damaged), (None, None));
    }

    #[test]
    fn a_file_cut_anywhere_gives_a_part_or_nothing() {
        for cut in 0..SNMP.len() {
            let _ = stack(&SNMP[..cut]);
        }
        assert_eq!(stack(""), StackReading::default());
        assert_eq!(backlog_dropped("00ff 0000000a 00\n00ff 0000001f 00\n"), Some(41));
        assert_eq!(backlog_dropped("00ff"), None);
        assert_eq!(stolen_ns("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2\n"), Some(80_000_000));
        for text in ["", "cpu", "cpu 1 2 3", "cpu  1 2 3 4 5 6 7 x"] {
            assert_eq!(stolen_ns(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_file_is_read_whole_and_anew() {
        let mut stat = ProcFile::open("/proc/stat");
        let whole = stat.read().unwrap().lines().any(|line| line.starts_with("softirq"));
        assert!(whole && stolen_ns(stat.read().unwrap()).is_some());
        assert_eq!(ProcFile::open("/proc/nonsense").read(), None);
    }
}
