//! The process that holds a UDP port, for an error message (proc(5)).

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};

/// Returns the process that holds the UDP port at `wanted`, as `NAME (process PID)`. `None` when it
/// cannot be seen, as is the case for other users' processes.
pub(super) fn of_udp_port(wanted: SocketAddrV4) -> Option<String> {
    let table = fs::read_to_string("/proc/net/udp").ok()?;
    let inode = table.lines().skip(1).find_map(|line| inode_if_bound(line, wanted))?;
    let socket = format!("socket:[{inode}]");
    for process in fs::read_dir("/proc").ok()?.flatten() {
        let Ok(pid) = process.file_name().to_string_lossy().parse::<u32>() else { continue };
        let Ok(descriptors) = fs::read_dir(process.path().join("fd")) else { continue };
        let holds = |link: fs::DirEntry| {
            fs::read_link(link.path()).is_ok_and(|target| target.as_os_str() == socket.as_str())
        };
        if descriptors.flatten().any(holds) {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(format!("{} (process {pid}) holds it", name.trim()));
        }
    }
    None
}

/// Returns the inode in a line of `/proc/net/udp` whose local address prevents binding `wanted`:
/// the same port, and the same address or either of them every address.
fn inode_if_bound(line: &str, wanted: SocketAddrV4) -> Option<&str> {
    let mut fields = line.split_whitespace();
    let (address, port) = fields.nth(1)?.split_once(':')?;
    // The kernel prints the four bytes as a number in this machine's byte order.
    let address = Ipv4Addr::from(u32::from_str_radix(address, 16).ok()?.to_ne_bytes());
    let overlap =
        address == *wanted.ip() || address.is_unspecified() || wanted.ip().is_unspecified();
    let same_port = u16::from_str_radix(port, 16).ok()? == wanted.port();
    if overlap && same_port { fields.nth(7) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_the_one_whose_address_is_in_the_way() {
        let line = "  12: 0100007F:C180 00000000:0000 07 00000000:00000000 00:00000000 00000000 \
                    0 0 4711 2 0000000000000000 0";
        let bound = |wanted: &str| inode_if_bound(line, wanted.parse().unwrap());
        assert_eq!(bound("127.0.0.1:49536"), Some("4711"));
        assert_eq!(bound("0.0.0.0:49536"), Some("4711"));
        assert_eq!(bound("127.0.0.2:49536"), None);
        assert_eq!(bound("127.0.0.1:49537"), None);
        assert_eq!(inode_if_bound("", "127.0.0.1:1".parse().unwrap()), None);
    }
}
