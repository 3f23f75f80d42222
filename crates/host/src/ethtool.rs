//! Settings of a network device, by ioctl(2): `SIOCETHTOOL` (`linux/ethtool.h`) and the MTU
//! (netdevice(7)), in the network namespace of the thread that opens the connection.

mod counters;
mod rings;

pub use counters::CardCounters;
pub use rings::{Coalescing, Rings};

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// `linux/ethtool.h`, `linux/sockios.h`.
const SIOCETHTOOL: u32 = 0x8946;
const SIOCGIFMTU: u32 = 0x8921;
const SIOCSIFMTU: u32 = 0x8922;
const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GCHANNELS: u32 = 0x3c;
const ETHTOOL_SCHANNELS: u32 = 0x3d;

/// The numbers of queues of a device (ethtool(8), `-l`).
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Channels {
    /// Queues that only receive.
    pub receive: u32,
    /// Queues that only transmit.
    pub transmit: u32,
    /// Queues that do both.
    pub combined: u32,
}

impl Channels {
    /// Returns the number of queues that receive.
    #[must_use]
    pub fn receiving(&self) -> u32 {
        self.receive + self.combined
    }

    /// Returns the number of queues that transmit.
    #[must_use]
    pub fn transmitting(&self) -> u32 {
        self.transmit + self.combined
    }
}

/// A task of the protocol stack that the device, or the kernel, does.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Offload {
    /// The device writes the checksums of transmitted frames.
    TransmitChecksum,
    /// The device checks the checksums of received frames.
    ReceiveChecksum,
    /// Received segments are joined before the stack gets them (GRO).
    Gro,
    /// Segments to transmit are split late (GSO).
    Gso,
    /// The device splits TCP segments (TSO).
    Tso,
}

impl Offload {
    /// All offloads.
    pub const ALL: [Self; 5] =
        [Self::TransmitChecksum, Self::ReceiveChecksum, Self::Gro, Self::Gso, Self::Tso];

    /// Returns the name in the configuration file.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// Returns its name in the configuration file, its name for ethtool(8), and the commands that
    /// get and set it.
    pub(crate) fn row(self) -> (&'static str, &'static str, u32, u32) {
        match self {
            Self::TransmitChecksum => ("transmit-checksum", "tx", 0x16, 0x17),
            Self::ReceiveChecksum => ("receive-checksum", "rx", 0x14, 0x15),
            Self::Gro => ("gro", "gro", 0x2b, 0x2c),
            Self::Gso => ("gso", "gso", 0x23, 0x24),
            Self::Tso => ("tso", "tso", 0x1e, 0x1f),
        }
    }
}

/// `struct ethtool_value`.
#[repr(C)]
struct ValueArgs {
    command: u32,
    data: u32,
}

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct ChannelArgs {
    command: u32,
    receive_max: u32,
    transmit_max: u32,
    other_max: u32,
    combined_max: u32,
    receive: u32,
    transmit: u32,
    other: u32,
    combined: u32,
}

/// `struct ethtool_drvinfo`.
#[repr(C)]
struct DriverArgs {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

/// A connection to the devices of one network namespace.
#[derive(Debug)]
pub struct Ethtool {
    socket: OwnedFd,
}

impl Ethtool {
    /// Opens a connection; needs no rights. Reading settings needs no rights either; changing them
    /// needs CAP_NET_ADMIN.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn open() -> io::Result<Self> {
        let (family, kind) = (AddressFamily::INET, SocketType::DGRAM);
        Ok(Self { socket: socket_with(family, kind, SocketFlags::CLOEXEC, None)? })
    }

    /// Returns the number of an interface.
    ///
    /// # Errors
    /// `ENODEV` when there is no such interface.
    pub fn index(&self, interface: &str) -> io::Result<u32> {
        Ok(name_to_index(&self.socket, interface)?)
    }

    /// Returns the name of the driver: `veth`, `ice`.
    ///
    /// # Errors
    /// `Unsupported` where the driver does not report it, `ENODEV` when there is no such interface.
    pub fn driver(&self, interface: &str) -> io::Result<String> {
        let mut args = DriverArgs { command: ETHTOOL_GDRVINFO, driver: [0; 32], rest: [0; 160] };
        // SAFETY: the structure that the command writes.
        unsafe { self.ethtool(interface, &mut args)? };
        let end = args.driver.iter().position(|byte| *byte == 0).unwrap_or(args.driver.len());
        Ok(String::from_utf8_lossy(&args.driver[..end]).into_owned())
    }

    /// Returns the active and the largest possible numbers of queues.
    ///
    /// # Errors
    /// As [`Ethtool::driver`]; many virtual devices do not report them.
    pub fn channels(&self, interface: &str) -> io::Result<(Channels, Channels)> {
        let args = self.channel_args(interface)?;
        let now =
            Channels { receive: args.receive, transmit: args.transmit, combined: args.combined };
        let max = Channels {
            receive: args.receive_max,
            transmit: args.transmit_max,
            combined: args.combined_max,
        };
        Ok((now, max))
    }

    /// Sets the numbers of active queues.
    ///
    /// # Errors
    /// `InvalidInput` for more than possible (or zero); `PermissionDenied`; other errors of the
    /// driver.
    pub fn set_channels(&self, interface: &str, channels: Channels) -> io::Result<()> {
        let mut args = self.channel_args(interface)?;
        let Channels { receive, transmit, combined } = channels;
        if (args.receive, args.transmit, args.combined) == (receive, transmit, combined) {
            // Some drivers refuse an unchanged value, or reset the device for it.
            return Ok(());
        }
        args.command = ETHTOOL_SCHANNELS;
        (args.receive, args.transmit, args.combined) = (receive, transmit, combined);
        // SAFETY: the structure that the command reads.
        unsafe { self.ethtool(interface, &mut args) }
    }

    fn channel_args(&self, interface: &str) -> io::Result<ChannelArgs> {
        let mut args = ChannelArgs { command: ETHTOOL_GCHANNELS, ..Default::default() };
        // SAFETY: the structure that the command writes.
        unsafe { self.ethtool(interface, &mut args)? };
        Ok(args)
    }

    /// Returns whether an offload is on.
    ///
    /// # Errors
    /// As [`Ethtool::driver`].
    pub fn offload(&self, interface: &str, offload: Offload) -> io::Result<bool> {
        let mut args = ValueArgs { command: offload.row().2, data: 0 };
        // SAFETY: the structure that the command writes.
        unsafe { self.ethtool(interface, &mut args)? };
        Ok(args.data != 0)
    }

    /// Switches an offload. Others may change with it: TSO needs checksums.
    ///
    /// # Errors
    /// `Unsupported` where it cannot be switched, or another offload keeps it; `PermissionDenied`.
    pub fn set_offload(&self, interface: &str, offload: Offload, on: bool) -> io::Result<()> {
        let mut args = ValueArgs { command: offload.row().3, data: u32::from(on) };
        // SAFETY: the structure that the command reads.
        unsafe { self.ethtool(interface, &mut args)? };
        // The kernel reports success even when it changed nothing.
        if self.offload(interface, offload)? == on {
            return Ok(());
        }
        let reason =
            if on { "it stays off: it needs another offload that is off" } else { "it stays on" };
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }

    /// Returns the largest IP packet, bytes.
    ///
    /// # Errors
    /// `ENODEV` when there is no such interface.
    pub fn mtu(&self, interface: &str) -> io::Result<u32> {
        let mut request = request(interface)?;
        // SAFETY: the command writes the MTU into the request.
        unsafe { self.ioctl(SIOCGIFMTU, &mut request)? };
        // SAFETY: the field that the command has written.
        Ok(unsafe { request.ifr_ifru.ifru_mtu }.unsigned_abs())
    }

    /// Sets the largest IP packet, bytes.
    ///
    /// # Errors
    /// `InvalidInput` for a size that the device does not support; `PermissionDenied`.
    pub fn set_mtu(&self, interface: &str, mtu: u32) -> io::Result<()> {
        let mut request = request(interface)?;
        request.ifr_ifru.ifru_mtu = i32::try_from(mtu).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the command reads the MTU from the request.
        unsafe { self.ioctl(SIOCSIFMTU, &mut request) }
    }

    /// # Safety
    /// `args` begins with the command and is the structure that it reads and writes.
    pub(crate) unsafe fn ethtool<T>(&self, interface: &str, args: &mut T) -> io::Result<()> {
        let mut request = request(interface)?;
        request.ifr_ifru.ifru_data = std::ptr::from_mut(args).cast();
        // SAFETY: `args` outlives the call; its type suits by the caller's contract.
        unsafe { self.ioctl(SIOCETHTOOL, &mut request) }
    }

    /// # Safety
    /// `request` is the structure that `command` reads and writes, with any pointer in it valid.
    unsafe fn ioctl(&self, command: u32, request: &mut libc::ifreq) -> io::Result<()> {
        let descriptor = self.socket.as_raw_fd();
        // SAFETY: by the caller's contract.
        let done = unsafe { libc::ioctl(descriptor, command as _, std::ptr::from_mut(request)) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Returns a request for an interface.
fn request(interface: &str) -> io::Result<libc::ifreq> {
    // SAFETY: zeros are a valid request: an empty name and a null pointer.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    if interface.is_empty() || interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (slot, byte) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *slot = byte as libc::c_char;
    }
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_said_to_be_no_device() {
        let ethtool = Ethtool::open().unwrap();
        for name in ["", "nonsense0", "a-name-that-is-much-too-long"] {
            let error = ethtool.mtu(name).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{name}");
            assert!(ethtool.channels(name).is_err() && ethtool.driver(name).is_err());
        }
        assert!(ethtool.mtu("lo").unwrap() > 0);
    }

    #[test]
    fn structures_have_the_size_of_the_kernel() {
        assert_eq!(size_of::<DriverArgs>(), 196);
        assert_eq!(size_of::<ChannelArgs>(), 36);
    }
}
