//! The same sockets as text (proc_pid_net(5), `/proc/net/udp` and `/proc/net/udp6`), which says
//! nothing of their buffers.

use super::UdpSocketState;
use std::net::{Ipv4Addr, SocketAddrV4};

impl UdpSocketState {
    /// Returns the sockets of a table in the kernel's format, in its order. Those that do not
    /// receive IPv4, and lines of another form, are left out.
    pub fn of_table(table: &str) -> impl Iterator<Item = Self> + '_ {
        table.lines().skip(1).filter_map(line)
    }
}

fn line(line: &str) -> Option<UdpSocketState> {
    let words: Vec<_> = line.split_whitespace().collect();
    let (unsent, received) = words.get(4)?.split_once(':')?;
    Some(UdpSocketState {
        local: end(words.get(1)?)?,
        remote: end(words.get(2)?).filter(|end| end.port() != 0),
        user: words.get(7)?.parse().ok()?,
        inode: words.get(9)?.parse().ok()?,
        received: u32::from_str_radix(received, 16).ok()?,
        receive_buffer: 0,
        unsent: u32::from_str_radix(unsent, 16).ok()?,
        drops: words.get(12)?.parse().ok()?,
    })
}

/// Reads an address of IPv4, one that is mapped into IPv6, or all addresses.
fn end(text: &str) -> Option<SocketAddrV4> {
    let (address, port) = text.split_once(':')?;
    let mapped = address.strip_prefix("0000000000000000FFFF0000").unwrap_or(address);
    let address = match mapped.len() {
        // The kernel prints the four bytes as one number of the machine.
        8 => Ipv4Addr::from(u32::from_str_radix(mapped, 16).ok()?.to_ne_bytes()),
        32 if mapped.bytes().all(|digit| digit == b'0') => Ipv4Addr::UNSPECIFIED,
        _ => return None,
    };
    Some(SocketAddrV4::new(address, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::UdpSockets;
    use std::net::UdpSocket;

    const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n";

    fn table(local: &str) -> String {
        let line = "00000000:0000 07 00000001:00000002 00:00000000 00000000  7  0 4711 2 0 5";
        format!("{HEAD}  12: {local} {line}\n")
    }

    #[test]
    fn the_table_says_the_same_as_the_list_but_for_the_buffers() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        socket.connect(("127.0.0.1", port)).unwrap();
        socket.send(&[7; 100]).unwrap();
        let text = std::fs::read_to_string("/proc/net/udp").unwrap();
        let is_it = |state: &UdpSocketState| state.local.port() == port;
        let of_table = UdpSocketState::of_table(&text).find(is_it).unwrap();
        let of_list = UdpSockets::open().unwrap().list().unwrap().into_iter().find(is_it).unwrap();
        assert_eq!(of_table, UdpSocketState { receive_buffer: 0, ..of_list });
        assert!(of_table.received >= 100, "{of_table:?}");
    }

    #[test]
    fn an_address_of_ipv6_is_one_that_receives_ipv4_or_left_out() {
        let local = |address: &str| {
            let table = table(&format!("{address}:C180"));
            UdpSocketState::of_table(&table).next().map(|state| state.local.to_string())
        };
        assert_eq!(local("0100007F").unwrap(), "127.0.0.1:49536");
        assert_eq!(local("0000000000000000FFFF00000100007F").unwrap(), "127.0.0.1:49536");
        assert_eq!(local(&"0".repeat(32)).unwrap(), "0.0.0.0:49536");
        assert_eq!(local("B80D01200000000000000000FF000000"), None);
    }

    #[test]
    fn a_table_cut_anywhere_gives_a_part_or_nothing() {
        let text = table("0100007F:C180");
        let all: Vec<_> = UdpSocketState::of_table(&text).collect();
        let [state] = all[..] else { panic!("{all:?}") };
        assert_eq!((state.remote, state.user, state.inode), (None, 7, 4711));
        assert_eq!((state.unsent, state.received, state.drops), (1, 2, 5));
        for cut in 0..text.len() - 2 {
            assert_eq!(UdpSocketState::of_table(&text[..cut]).next(), None, "{cut} bytes");
        }
    }
}
