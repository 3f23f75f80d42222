//! How a network device coalesces interrupts, as its driver tells (ethtool, `ETHTOOL_GCOALESCE`).

use serde::{Deserialize, Serialize};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const ETHTOOL_GCOALESCE: u32 = 0x0e;
const SIOCETHTOOL: libc::c_ulong = 0x8946;
/// `struct ethtool_coalesce` is 23 numbers; the kernel writes no more.
const NUMBERS: usize = 23;

/// The wait before an interrupt, and the frames that end it. Drivers without one of these numbers
/// show 0.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NicCoalescing {
    /// Longest wait before the interrupt of a received frame, microseconds.
    pub rx_usecs: u32,
    /// Received frames that end the wait.
    pub rx_frames: u32,
    /// Longest wait before the interrupt of a transmitted frame, microseconds.
    pub tx_usecs: u32,
    /// Transmitted frames that end the wait.
    pub tx_frames: u32,
    /// Whether the driver changes the receive side by the load.
    pub adaptive_rx: bool,
    /// Whether the driver changes the transmit side by the load.
    pub adaptive_tx: bool,
}

impl NicCoalescing {
    /// Asks the driver of the interface; `None` if it does not tell.
    pub(super) fn read(interface: &str) -> Option<Self> {
        let numbers = ask(interface)?;
        Some(Self {
            rx_usecs: numbers[1],
            rx_frames: numbers[2],
            tx_usecs: numbers[5],
            tx_frames: numbers[6],
            adaptive_rx: numbers[10] != 0,
            adaptive_tx: numbers[11] != 0,
        })
    }
}

/// Returns the numbers of `struct ethtool_coalesce`, in the order of linux/ethtool.h.
fn ask(interface: &str) -> Option<[u32; NUMBERS]> {
    let name = interface.as_bytes();
    if name.len() >= libc::IFNAMSIZ {
        return None;
    }
    // SAFETY: no pointers are passed.
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if socket < 0 {
        return None;
    }
    // SAFETY: the descriptor was just opened, and nobody else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(socket) };
    let mut numbers = [0u32; NUMBERS];
    numbers[0] = ETHTOOL_GCOALESCE;
    // SAFETY: `ifreq` is plain data, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name) {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = numbers.as_mut_ptr().cast();
    // SAFETY: the name ends with a zero, and `ifru_data` points to the command and room for its
    // answer; both outlive the call.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
    (answer == 0).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Returns the number behind `name: ` in the text of ethtool.
    fn told(text: &str, name: &str) -> Option<u32> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().parse().ok()
    }

    #[test]
    fn ethtool_tells_the_same() {
        let mut compared = 0;
        for interface in crate::folders::names("/sys/class/net".as_ref()) {
            let Ok(output) = Command::new("ethtool").args(["-c", &interface]).output() else {
                eprintln!("skipped: no ethtool");
                return;
            };
            let text = String::from_utf8_lossy(&output.stdout);
            let Some(found) = NicCoalescing::read(&interface) else {
                assert_eq!(told(&text, "rx-usecs"), None, "{interface}: {text}");
                continue;
            };
            for (name, number) in [
                ("rx-usecs", found.rx_usecs),
                ("rx-frames", found.rx_frames),
                ("tx-usecs", found.tx_usecs),
                ("tx-frames", found.tx_frames),
            ] {
                let same = told(&text, name).is_none_or(|told| told == number);
                assert!(same, "{interface}: {name} {number}, ethtool: {text}");
                compared += 1;
            }
        }
        eprintln!("compared {compared} numbers");
    }

    #[test]
    fn what_has_no_such_setting_is_not_known() {
        assert_eq!(NicCoalescing::read("lo"), None);
        assert_eq!(NicCoalescing::read("no-such-interface-anywhere"), None);
    }
}
