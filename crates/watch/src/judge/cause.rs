//! What can be the cause of a loss, and what helps against it: one table, which documents follow.

/// The cause of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LossCause {
    /// Packets came damaged.
    Damaged,
    /// Packets did not reach this host, or did not reach the radio.
    Wire,
    /// The card's ring was full.
    CardRing,
    /// The driver dropped packets that came.
    Driver,
    /// A CPU's backlog was full.
    Backlog,
    /// Our capture missed packets.
    Capture,
    /// A packet filter, a wrong checksum or another rule of the kernel's network layers.
    Stack,
    /// The socket's buffer was full, and its reader had no known trouble.
    SocketFull,
    /// The reader or writer was ready, and waited for a CPU.
    ThreadWaited,
    /// The program was stopped.
    ThreadStopped,
    /// The program waited for a disk.
    ThreadDisk,
    /// The program was busy elsewhere.
    ProgramSlow,
    /// No socket was there.
    NoSocket,
    /// The radio could not send, although it had credit.
    Radio,
    /// The queueing discipline or the driver had no room on the way out.
    SendQueue,
    /// The program sent too late.
    SentLate,
    /// A command's time had passed.
    LateCommand,
    /// It is not known.
    Unknown,
}

impl LossCause {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::Damaged,
        Self::Wire,
        Self::CardRing,
        Self::Driver,
        Self::Backlog,
        Self::Capture,
        Self::Stack,
        Self::SocketFull,
        Self::ThreadWaited,
        Self::ThreadStopped,
        Self::ThreadDisk,
        Self::ProgramSlow,
        Self::NoSocket,
        Self::Radio,
        Self::SendQueue,
        Self::SentLate,
        Self::LateCommand,
        Self::Unknown,
    ];

    /// Returns what helps, the most promising first, with `{interface}`, `{ring}`, `{bytes}`,
    /// `{pid}` and `{tid}` in place of values. A remedy whose values are not known is left out.
    #[must_use]
    pub const fn remedies(self) -> &'static [&'static str] {
        match self {
            Self::Damaged => {
                &["Clean or replace the cable and the modules at both ends of {interface}; \
                 `ethtool -S {interface}` counts damaged packets."]
            }
            Self::Wire => &[
                "Read the counters of the switch's ports and of the far end's card, or capture \
                 there: `tcpdump -Z root -s 256 -w FILE udp`.",
                "Let the switch wait in place of dropping: turn on flow control (PAUSE) at its \
                 ports and at the cards, `ethtool -A {interface} rx on tx on`.",
            ],
            Self::CardRing => &[
                "`ethtool -G {interface} rx {ring}`",
                "Use jumbo frames, so that fewer packets come: `ip link set {interface} mtu 9000`.",
                "Keep the CPU that serves the card's interrupts free of other work.",
            ],
            Self::Driver => &[
                "`ethtool -S {interface}` and `ip -s -s link show {interface}` say what the \
                 driver dropped.",
                "Use jumbo frames, so that fewer packets come: `ip link set {interface} mtu 9000`.",
            ],
            Self::Backlog => &[
                "`sysctl -w net.core.netdev_max_backlog=10000`, if it is less now",
                "`sysctl -w net.core.netdev_budget=600`, if it is less now",
                "Keep the CPU that serves the card's interrupts free of other work.",
            ],
            Self::Capture => &[
                "Watch less: one port or one interface.",
                "Ask the program itself: UHD prints O or D where samples are missing.",
            ],
            Self::Stack => {
                &["`nft list ruleset` shows the rules that drop packets.", "`nstat -az`"]
            }
            Self::SocketFull => &[
                "`sysctl -w net.core.rmem_max={bytes}`, if it is less now, and with UHD the device \
                 argument `recv_buff_size={bytes}`",
                "Pin the thread that reads to a CPU of its own: `taskset -cp CPU {tid}`.",
                "Use jumbo frames, so that fewer packets come: `ip link set {interface} mtu 9000`.",
            ],
            Self::ThreadWaited => &[
                "Pin the thread to a CPU of its own: `taskset -cp CPU {tid}`.",
                "Let it run before others: `chrt -f -p 50 {tid}`.",
                "`sysctl -w net.core.rmem_max={bytes}`, if it is less now, and with UHD the device \
                 argument `recv_buff_size={bytes}`",
            ],
            Self::ThreadStopped => {
                &["Find who stops it (SIGSTOP, Ctrl-Z, a debugger, a frozen cgroup): `kill -CONT \
                 {pid}` lets it go on."]
            }
            Self::ThreadDisk => &[
                "Write to a faster disk, or to memory (`/dev/shm`), or in a thread of its own.",
                "Keep its memory from being swapped out: `swapoff -a`, or lock it (`mlockall`).",
            ],
            Self::ProgramSlow => &[
                "Do less between two reads: write and compute in other threads.",
                "`sysctl -w net.core.rmem_max={bytes}`, if it is less now, and with UHD the device \
                 argument `recv_buff_size={bytes}`",
                "Lower the sample rate, or use fewer channels.",
            ],
            Self::NoSocket => {
                &["The program has closed the port or ended: stop the stream before it closes."]
            }
            Self::Radio => &[
                "Read the radio's log, and its own counters.",
                "Lower the sample rate, or use fewer channels.",
            ],
            Self::SendQueue => &[
                "`tc -s qdisc show dev {interface}` says which queue dropped.",
                "`ip link set {interface} txqueuelen 10000`, for queues with that limit (pfifo).",
            ],
            Self::SentLate => &[
                "Send earlier: begin a burst some 10 ms ahead of its time, and keep the next \
                 buffer ready.",
                "Pin the thread that sends to a CPU of its own: `taskset -cp CPU {tid}`.",
                "Send larger buffers; with UHD the device argument `send_buff_size={bytes}` and \
                 `sysctl -w net.core.wmem_max={bytes}`",
            ],
            Self::LateCommand => &[
                "Give commands a time further ahead: now + 0.1 s.",
                "Set the radio's time before you use it (UHD: `set_time_now`, \
                 `set_time_unknown_pps`).",
            ],
            Self::Unknown => &[
                "Run it again with the rights that `millstream watch` names: the kernel then says \
                 which packets it drops.",
            ],
        }
    }
}

/// The values in remedies, as far as they are known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values {
    pub interface: Option<String>,
    pub ring: Option<u32>,
    pub bytes: Option<u64>,
    pub pid: Option<u32>,
    pub tid: Option<u32>,
}

impl Values {
    /// Returns the remedies all whose values are known.
    pub fn remedies(&self, cause: LossCause) -> Vec<String> {
        let values = [
            ("{interface}", self.interface.clone()),
            ("{ring}", self.ring.map(|ring| ring.to_string())),
            ("{bytes}", self.bytes.map(|bytes| bytes.to_string())),
            ("{pid}", self.pid.map(|pid| pid.to_string())),
            ("{tid}", self.tid.map(|tid| tid.to_string())),
        ];
        let fill = |remedy: &&str| {
            values.iter().try_fold((*remedy).to_owned(), |text, (name, value)| {
                match (text.contains(name), value) {
                    (false, _) => Some(text),
                    (true, Some(value)) => Some(text.replace(name, value)),
                    (true, None) => None,
                }
            })
        };
        cause.remedies().iter().filter_map(fill).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_has_its_values_or_is_left_out() {
        let values = Values { interface: Some("eth0".into()), ..Values::default() };
        assert!(values.remedies(LossCause::CardRing).iter().all(|text| !text.contains("-G")));
        let values = Values { ring: Some(4096), ..values };
        assert_eq!(values.remedies(LossCause::CardRing)[0], "`ethtool -G eth0 rx 4096`");
        let all = Values { bytes: Some(1), pid: Some(2), tid: Some(3), ..values };
        for cause in LossCause::ALL {
            let filled = all.remedies(cause);
            assert_eq!(filled.len(), cause.remedies().len(), "{cause:?}");
            assert!(filled.iter().all(|text| !text.contains('{')), "{filled:?}");
        }
    }
}
