//! The XDP features of a driver, as it reports them: the generic netlink family `netdev`
//! (Documentation/netlink/specs/netdev.yaml), in Linux since 6.3.

use super::NetlinkError;
use super::message::{NetlinkMessage, NetlinkRequest, attributes_after, u16_at, u32_at, u64_at};
use super::socket::{Socket, refused};
use rustix::net::netlink::GENERIC;
use serde::Serialize;
use std::io;

/// Bytes of `struct genlmsghdr`: command, version, reserved.
const FIXED_BYTES: usize = 4;
/// The family that finds the others (`linux/genetlink.h`).
const CONTROLLER: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
/// The command of the family `netdev`.
const NETDEV_CMD_DEV_GET: u8 = 1;
const NETDEV_A_DEV_IFINDEX: u16 = 1;
const NETDEV_A_DEV_XDP_FEATURES: u16 = 3;
const NETDEV_A_DEV_XDP_ZC_MAX_SEGS: u16 = 4;
/// The errors where the kernel does not know the requested family or device.
const UNKNOWN: [i32; 2] = [libc::ENOENT, libc::EOPNOTSUPP];

/// The XDP features of a driver.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct XdpFeatures {
    /// Programs in the driver (native mode).
    pub native: bool,
    /// Redirection of frames by its programs, which AF_XDP needs.
    pub redirect: bool,
    /// AF_XDP without copies.
    pub zero_copy: bool,
    /// Received frames of several parts (jumbo).
    pub parts: bool,
    /// The largest number of parts of one frame that AF_XDP without copies can send.
    pub zero_copy_parts_max: u32,
}

impl XdpFeatures {
    /// Returns the features of an interface's driver; `None` where the driver or the kernel does
    /// not report them.
    ///
    /// # Errors
    /// [`NetlinkError::Refused`] with the kernel's answer.
    pub fn of(interface: u32) -> Result<Option<Self>, NetlinkError> {
        let mut socket = Socket::open(Some(GENERIC))?;
        let fixed = [CTRL_CMD_GETFAMILY, 1, 0, 0];
        let request = NetlinkRequest::new(CONTROLLER, libc::NLM_F_ACK, &fixed)
            .with(CTRL_ATTR_FAMILY_NAME, b"netdev\0");
        let what = "find the family netdev";
        let Some(family) = socket.ask_for(what, &request, &UNKNOWN, |found| Some(family(found)))?
        else {
            return Ok(None);
        };
        let what = "ask the driver for its XDP features";
        let family = family.ok_or_else(|| refused(what)(io::ErrorKind::InvalidData.into()))?;
        let request = NetlinkRequest::new(family, libc::NLM_F_ACK, &[NETDEV_CMD_DEV_GET, 1, 0, 0])
            .with(NETDEV_A_DEV_IFINDEX, &interface.to_ne_bytes());
        socket.ask_for(what, &request, &UNKNOWN, parse)
    }
}

fn family(message: &NetlinkMessage<'_>) -> Option<u16> {
    let mut attributes = attributes_after(message.body, FIXED_BYTES);
    let (_, value) = attributes.find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID)?;
    u16_at(value, 0)
}

fn parse(message: &NetlinkMessage<'_>) -> Option<XdpFeatures> {
    let mut features = None;
    let mut parts_max = 0;
    for (kind, value) in attributes_after(message.body, FIXED_BYTES) {
        match kind {
            NETDEV_A_DEV_XDP_FEATURES => features = u64_at(value, 0),
            NETDEV_A_DEV_XDP_ZC_MAX_SEGS => parts_max = u32_at(value, 0)?,
            _ => {}
        }
    }
    // `enum netdev_xdp_act`.
    let features = features?;
    let has = |bit: u32| features & (1 << bit) != 0;
    Some(XdpFeatures {
        native: has(0),
        redirect: has(1),
        zero_copy: has(3),
        parts: has(5),
        zero_copy_parts_max: parts_max,
    })
}
