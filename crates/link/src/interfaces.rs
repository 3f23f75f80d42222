//! The IPv4 addresses of this machine's network interfaces (getifaddrs(3)).

use std::ffi::CStr;
use std::io;
use std::net::Ipv4Addr;

/// One IPv4 address of one interface that is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// Its name, such as `eth0`.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// The broadcast address of its network. `None` on loopback and point-to-point interfaces.
    pub broadcast: Option<Ipv4Addr>,
}

/// Returns every IPv4 address of every interface that is up.
///
/// # Errors
/// The error of getifaddrs(3).
pub fn list() -> io::Result<Vec<InterfaceAddress>> {
    let mut head: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: getifaddrs writes the head of a list that it allocates; freed below.
    if unsafe { libc::getifaddrs(&raw mut head) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut next = head;
    // SAFETY: every element of the list stays valid until freeifaddrs, and `ifa_next` of the last
    // one is null.
    while let Some(entry) = unsafe { next.as_ref() } {
        found.extend(interface(entry));
        next = entry.ifa_next;
    }
    // SAFETY: `head` came from getifaddrs and nothing borrowed from the list remains.
    unsafe { libc::freeifaddrs(head) };
    Ok(found)
}

fn interface(entry: &libc::ifaddrs) -> Option<InterfaceAddress> {
    let has = |flag: libc::c_int| entry.ifa_flags & flag as libc::c_uint != 0;
    if !has(libc::IFF_UP) {
        return None;
    }
    let address = ipv4(entry.ifa_addr)?;
    let told = if has(libc::IFF_BROADCAST) { ipv4(entry.ifa_ifu) } else { None };
    let broadcast = told.map(|told| broadcast(told, address, ipv4(entry.ifa_netmask)));
    // SAFETY: `ifa_name` is a NUL-terminated string that lives as long as the list.
    let name = unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned();
    Some(InterfaceAddress { name, address, broadcast })
}

/// Returns the interface's configured broadcast address; where there is none (`ip addr add` without
/// `brd`), the last address of its network.
fn broadcast(told: Ipv4Addr, address: Ipv4Addr, netmask: Option<Ipv4Addr>) -> Ipv4Addr {
    match netmask {
        Some(netmask) if told.is_unspecified() => address | !netmask,
        _ => told,
    }
}

fn ipv4(address: *const libc::sockaddr) -> Option<Ipv4Addr> {
    // SAFETY: null, or a sockaddr that lives as long as the list.
    let family = unsafe { address.as_ref() }?.sa_family;
    if libc::c_int::from(family) != libc::AF_INET {
        return None;
    }
    // SAFETY: the family shows that a sockaddr_in lies there; it may be unaligned for the cast
    // type.
    let inet = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
    Some(Ipv4Addr::from(u32::from_be(inet.sin_addr.s_addr)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_listed_without_a_broadcast_address() {
        let all = list().unwrap();
        let lo = all.iter().find(|i| i.address.is_loopback()).expect("loopback is up");
        assert_eq!(lo.broadcast, None, "{lo:?}");
    }

    #[test]
    fn a_broadcast_address_that_was_not_given_follows_from_the_network() {
        let [address, netmask, none] =
            ["10.1.2.3", "255.255.252.0", "0.0.0.0"].map(|a| a.parse().unwrap());
        assert_eq!(broadcast(none, address, Some(netmask)), Ipv4Addr::new(10, 1, 3, 255));
        let told = Ipv4Addr::new(10, 1, 2, 255);
        assert_eq!(broadcast(told, address, Some(netmask)), told);
    }
}
