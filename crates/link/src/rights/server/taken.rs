//! UDP ports that other users have bound in the kernel: their datagrams are not granted.

use std::fs;
use std::net::Ipv4Addr;

use millstream_host::netlink::UdpSocketState;

use crate::frame::Steer;

/// Returns a wanted port that a socket of another user than `uid` has, in the network namespace of
/// this thread: the port, and its owner. `broadcast` are the addresses whose frames are taken, too.
pub fn by_another(wanted: &Steer, uid: u32, broadcast: &[Ipv4Addr]) -> Option<(u16, u32)> {
    let tables = ["udp", "udp6"].map(|name| format!("/proc/thread-self/net/{name}"));
    // Without IPv6 there is no second table.
    let tables = tables.iter().filter_map(|path| fs::read_to_string(path).ok());
    let addresses = [&wanted.addresses, broadcast].concat();
    tables.into_iter().find_map(|table| in_table(&table, &addresses, &wanted.udp_ports, uid))
}

/// Does the same for one table in the kernel's format (proc(5), `/proc/net/udp`).
fn in_table(table: &str, addresses: &[Ipv4Addr], ports: &[u16], uid: u32) -> Option<(u16, u32)> {
    let taken = UdpSocketState::of_table(table).find(|one| {
        let (address, port) = (one.local.ip(), one.local.port());
        let any = address.is_unspecified() || address.is_broadcast();
        (any || addresses.contains(address)) && one.user != uid && ports.contains(&port)
    })?;
    Some((taken.local.port(), taken.user))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;

    const HEAD: &str = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when \
                        retrnsmt   uid  timeout inode ref pointer drops\n";

    fn line(local: &str, uid: u32) -> String {
        format!(
            "{HEAD}  100: {local} 00000000:0000 07 00000000:00000000 00:00000000 00000000  {uid}  \
             0 12345 2 0000000000000000 0\n"
        )
    }

    #[test]
    fn a_port_of_another_user_is_found_at_our_addresses_only() {
        let addresses = [Ipv4Addr::new(127, 0, 0, 1)];
        let find = |local: &str, uid| in_table(&line(local, uid), &addresses, &[0xC001], 1000);
        assert_eq!(find("FFFFFFFF:C001", 7), Some((0xC001, 7)), "broadcast frames are taken");
        assert_eq!(find("00000000:C001", 7), Some((0xC001, 7)));
        assert_eq!(find("0100007F:C001", 7), Some((0xC001, 7)));
        assert_eq!(find("0200007F:C001", 7), None, "another address");
        assert_eq!(find("00000000:C002", 7), None, "another port");
        assert_eq!(find("00000000:C001", 1000), None, "their own");
        assert_eq!(find(&format!("{}:C001", "0".repeat(32)), 7), Some((0xC001, 7)));
        assert_eq!(find("0000000000000000FFFF00000100007F:C001", 7), Some((0xC001, 7)));
        assert_eq!(find("B80D01200000000000000000FF000000:C001", 7), None);
    }

    #[test]
    fn the_table_of_this_machine_is_read() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let addresses = vec![Ipv4Addr::LOCALHOST];
        let wanted = Steer { addresses, udp_ports: vec![port], ..Steer::default() };
        let own = rustix::process::geteuid().as_raw();
        assert_eq!(by_another(&wanted, own, &[]), None);
        assert_eq!(by_another(&wanted, own + 1, &[]), Some((port, own)));
    }
}
