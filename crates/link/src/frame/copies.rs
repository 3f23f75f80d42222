//! Copies of a packet's content, as they follow from the way in which a link works.

use super::Mode;

/// How often a processor copies the content of a packet on one side of a link: between the memory
/// of the link's user and the kernel's packet, the device, or the memory of the process at the
/// other end. `None` where a driver decides that, and does not report it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copies {
    /// Of a sent packet.
    pub send: Option<u32>,
    /// Of a received packet.
    pub receive: Option<u32>,
}

impl Copies {
    /// One each way. The kernel's sockets copy from and to the user's memory; GSO and GRO do not
    /// change that.
    pub const ONCE: Self = Self { send: Some(1), receive: Some(1) };

    /// Devices that read and write the user's memory.
    pub const NONE: Self = Self { send: Some(0), receive: Some(0) };

    /// AF_XDP sockets at an interface with this driver (Documentation/networking/af_xdp.rst): in
    /// copy mode the kernel copies each received frame into the frame memory. A sent one it copies
    /// into a socket buffer, unless the driver takes the pages of the frame memory.
    #[must_use]
    pub fn of_xdp(mode: Mode, driver: &str) -> Self {
        match mode {
            Mode::ZeroCopy => Self::NONE,
            _ => Self { send: (driver == "veth").then_some(1), receive: Some(1) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_copy_copies_nothing_and_copy_mode_once() {
        assert_eq!(Copies::of_xdp(Mode::ZeroCopy, "ice"), Copies::NONE);
        for mode in [Mode::NativeCopy, Mode::Generic] {
            assert_eq!(Copies::of_xdp(mode, "veth"), Copies::ONCE);
            let unknown = Copies { send: None, receive: Some(1) };
            assert_eq!(Copies::of_xdp(mode, "virtio_net"), unknown);
        }
    }
}
