//! The process that holds a UDP port, for an error message (proc(5)).

use millstream_host::netlink::UdpSocketState;
use std::fs;
use std::net::SocketAddrV4;

/// Returns the process that holds the UDP port at `wanted`, as `NAME (process PID)`. `None` when it
/// cannot be seen, as is the case for other users' processes.
pub(super) fn of_udp_port(wanted: SocketAddrV4) -> Option<String> {
    let table = fs::read_to_string("/proc/net/udp").ok()?;
    let holder = UdpSocketState::of_table(&table).find(|one| is_in_the_way(one.local, wanted))?;
    let socket = format!("socket:[{}]", holder.inode);
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

/// Returns whether a socket at `local` prevents binding `wanted`: the same port, and the same
/// address or either of them every address.
fn is_in_the_way(local: SocketAddrV4, wanted: SocketAddrV4) -> bool {
    let any = local.ip().is_unspecified() || wanted.ip().is_unspecified();
    local.port() == wanted.port() && (any || local.ip() == wanted.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_the_one_whose_address_is_in_the_way() {
        let local = "127.0.0.1:49536".parse().unwrap();
        let is_it = |wanted: &str| is_in_the_way(local, wanted.parse().unwrap());
        assert!(is_it("127.0.0.1:49536") && is_it("0.0.0.0:49536"));
        assert!(!is_it("127.0.0.2:49536") && !is_it("127.0.0.1:49537"));
    }
}
