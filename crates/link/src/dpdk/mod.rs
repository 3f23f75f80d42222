//! DPDK: the driver runs in this process, and frames are lent out of its buffers.
//!
//! ```text
//!   dpdk:0000:03:00.0                            a device on the PCI bus, bound to vfio-pci
//!   dpdk:memif0,role=server,socket=/run/radio.sock       shared memory with another process
//!   dpdk:vhost0,iface=/run/radio.sock                    the same by virtio (virtio_user0)
//!   dpdk:ring0                                           receives what it sends
//! ```
//!
//! The memory pools of a port are the frame memory, so nothing is copied except by the driver
//! itself. Closing a link closes its device; EAL stays until the process ends, is started by a
//! separate thread and leaves nothing in the file system (`millstream-dpdk`).
//!
//! It exists when the feature `dpdk` is on (libdpdk 22.11 or newer); otherwise `dpdk:` returns an
//! error that says so.

#[cfg(feature = "dpdk")]
mod advice;
#[cfg_attr(not(feature = "dpdk"), allow(dead_code, reason = "what opens a port reads it"))]
mod device;
mod foresee;
#[cfg(feature = "dpdk")]
mod link;
#[cfg(feature = "dpdk")]
mod open;
#[cfg_attr(not(feature = "dpdk"), allow(dead_code, reason = "what opens a port reads it"))]
mod options;
#[cfg(feature = "dpdk")]
mod seam;

use crate::entry::{Factory, LinkEntry, Target};
use crate::frame::{FrameLink, FrameOptions};
use crate::{LinkError, Spec};

/// Whether this build has DPDK.
pub const AVAILABLE: bool = cfg!(feature = "dpdk");

/// The entry of `dpdk`. Every build has it; without DPDK it describes what to do.
pub static LINK: LinkEntry = LinkEntry {
    name: "dpdk",
    about: "DPDK: the device's driver in this process, or memory shared with another one",
    options: options::describe,
    target: Target::Device,
    factory: Factory::Frames(open),
    // Checks our options, not the driver's.
    check: |spec| options::DpdkOptions::from_spec(spec).map(drop),
    rights: None,
    missing: if AVAILABLE { None } else { Some(MISSING) },
    foresee: foresee::foresee,
};

/// The advice for a build without DPDK.
const MISSING: &str = "this build is without it: install libdpdk-dev and pkg-config, then build \
     with `--features dpdk`";

/// Opens a link.
///
/// # Errors
/// [`LinkError`], which says what to do.
#[cfg(feature = "dpdk")]
pub fn open(spec: &Spec, sizes: &FrameOptions) -> Result<Box<dyn FrameLink>, LinkError> {
    Ok(Box::new(open::open(spec, sizes)?))
}

/// Returns the error that this build has no DPDK.
///
/// # Errors
/// [`LinkError`], always.
#[cfg(not(feature = "dpdk"))]
pub fn open(spec: &Spec, _: &FrameOptions) -> Result<Box<dyn FrameLink>, LinkError> {
    let options = options::DpdkOptions::from_spec(spec)?;
    Err(LinkError::Interface {
        link: LINK.name,
        interface: options.device.to_string(),
        step: "look for DPDK".to_owned(),
        source: std::io::ErrorKind::Unsupported.into(),
        hint: MISSING.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use crate::frame::FrameOptions;
    use crate::open_frames;

    #[test]
    fn a_device_is_checked_before_anything_is_started() {
        for (text, reason) in [
            ("dpdk", "names no device: write dpdk:DEVICE"),
            ("dpdk:warp9", "is neither a PCI address"),
            ("dpdk:memif0,queues=0", "wants queues from 1 to 16"),
        ] {
            let error = open_frames(text, &FrameOptions::default()).err().unwrap().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[cfg(not(feature = "dpdk"))]
    #[test]
    fn a_build_without_it_says_what_to_do() {
        let error = open_frames("dpdk:ring0", &FrameOptions::default()).err().unwrap().to_string();
        let start = "cannot open dpdk on ring0 (failed step: look for DPDK):";
        assert!(error.starts_with(start) && error.contains("install libdpdk-dev"), "{error}");
        let error = open_frames("dpdk", &FrameOptions::default()).err().unwrap().to_string();
        assert!(error.contains("install libdpdk-dev"), "{error}");
    }
}
