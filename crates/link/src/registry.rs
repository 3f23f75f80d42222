//! The links of this build, by name: those that open ports, and those that carry frames.
//!
//! Every link understands two options that are not its own: [`capture`]`=FILE.pcapng` and
//! [`fault`]`=ACTION rx|tx …`. A capture shows what the faults have left.

use std::net::SocketAddrV4;

use crate::LinkError;
use crate::frame::{FrameLink, FrameOptions};
use crate::port::{Port, PortOptions};
use crate::spec::{Spec, split_name};
use crate::{capture, dpdk, fault, loopback, null, packet, replay, udp, xdp};

/// Opens a port of one link: options, address to bind, sizes.
pub type Factory = fn(&Spec, SocketAddrV4, &PortOptions) -> Result<Port, LinkError>;

/// A link that can be chosen by name.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// The name in a link string.
    pub name: &'static str,
    /// Its options, for help texts and errors.
    pub options_help: &'static str,
    /// How a port of this link is opened.
    pub factory: Factory,
}

/// Opens a frame link: what it works on and its options, sizes.
pub type FrameFactory = fn(&Spec, &FrameOptions) -> Result<Box<dyn FrameLink>, LinkError>;

/// A frame link that can be chosen by name.
#[derive(Debug, Clone, Copy)]
pub struct FrameEntry {
    /// The name in a link string.
    pub name: &'static str,
    /// Its options, for help texts and errors.
    pub options_help: &'static str,
    /// How it is opened.
    pub factory: FrameFactory,
}

/// Every frame link. `dpdk` is a name in every build, and says what to do where it was left out
/// ([`dpdk::AVAILABLE`]).
pub const FRAME_LINKS: &[FrameEntry] = &[
    FrameEntry { name: "xdp", options_help: xdp::OPTIONS_HELP, factory: xdp::open },
    FrameEntry { name: "packet", options_help: packet::OPTIONS_HELP, factory: packet::open },
    FrameEntry { name: "dpdk", options_help: dpdk::OPTIONS_HELP, factory: dpdk::open },
    FrameEntry { name: "null", options_help: null::OPTIONS_HELP, factory: null::open },
    FrameEntry { name: "replay", options_help: replay::OPTIONS_HELP, factory: replay::open },
    FrameEntry { name: "loop", options_help: loopback::OPTIONS_HELP, factory: loopback::open },
];

/// Every link of this build that opens ports by itself.
pub const LINKS: &[Link] =
    &[Link { name: "udp", options_help: udp::OPTIONS_HELP, factory: udp::open }];

/// Opens a port on the link that `link` names, bound to `bind` (port 0: any free one).
///
/// # Errors
/// [`LinkError`], which says what to do.
pub fn open(link: &str, bind: SocketAddrV4, options: &PortOptions) -> Result<Port, LinkError> {
    let (name, _) = split_name(link);
    let found = LINKS.iter().find(|candidate| candidate.name == name);
    let found = found.ok_or_else(|| unknown(name))?;
    let mut spec = Spec::parse(link, found.options_help)?;
    let (captured, faults) = (spec.take(capture::OPTION), spec.take_all(fault::OPTION));
    fault::check(&faults)?;
    let mut port = (found.factory)(&spec, bind, options)?;
    if !faults.is_empty() {
        port = fault::port(port, &faults)?;
    }
    match captured {
        Some(path) => capture::port(port, &path, name),
        None => Ok(port),
    }
}

/// Whether `link` names a frame link: one that [`open_frames`] opens.
#[must_use]
pub fn carries_frames(link: &str) -> bool {
    let (name, _) = split_name(link);
    FRAME_LINKS.iter().any(|candidate| candidate.name == name)
}

/// Opens the frame link that `link` names, such as `xdp:eth1`.
///
/// # Errors
/// [`LinkError`], which says what to do.
pub fn open_frames(link: &str, options: &FrameOptions) -> Result<Box<dyn FrameLink>, LinkError> {
    let (name, _) = split_name(link);
    let found = FRAME_LINKS.iter().find(|candidate| candidate.name == name);
    let found = found.ok_or_else(|| unknown(name))?;
    let mut spec = Spec::parse(link, found.options_help)?;
    let (captured, faults) = (spec.take(capture::OPTION), spec.take_all(fault::OPTION));
    fault::check(&faults)?;
    let mut opened = (found.factory)(&spec, options)?;
    if !faults.is_empty() {
        opened = fault::frames(opened, &faults)?;
    }
    match captured {
        Some(path) => capture::frames(opened, &path),
        None => Ok(opened),
    }
}

/// Whether the options of a link on an interface (`xdp` or `packet`) can be understood; nothing is
/// opened or looked at.
///
/// # Errors
/// [`LinkError::BadOption`], which says what to do.
pub fn check_options(link: &str) -> Result<(), LinkError> {
    let (name, _) = split_name(link);
    let found = FRAME_LINKS.iter().find(|candidate| candidate.name == name);
    let found = found.ok_or_else(|| unknown(name))?;
    let mut spec = Spec::parse(link, found.options_help)?;
    drop(spec.take(capture::OPTION));
    fault::check(&spec.take_all(fault::OPTION))?;
    match name {
        "xdp" => xdp::check(&spec),
        "packet" => packet::check(&spec),
        "dpdk" => dpdk::check(&spec),
        _ => Ok(()),
    }
}

fn unknown(name: &str) -> LinkError {
    let ports = LINKS.iter().map(|link| link.name);
    let frames = FRAME_LINKS.iter().map(|link| link.name);
    let built = |name: &&str| dpdk::AVAILABLE || *name != "dpdk";
    let known: Vec<_> = ports.chain(frames).filter(built).collect();
    LinkError::UnknownLink { name: name.to_owned(), known: known.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn an_unknown_link_lists_those_that_exist() {
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let error = open("warp:speed=9", any, &PortOptions::default()).err().unwrap();
        let start = "there is no link called \"warp\"; this build has: udp";
        assert!(error.to_string().starts_with(start), "{error}");
    }

    #[test]
    fn a_link_that_this_build_is_without_is_not_listed() {
        let LinkError::UnknownLink { known, .. } = unknown("warp") else { panic!() };
        assert_eq!(known.split(", ").any(|name| name == "dpdk"), dpdk::AVAILABLE, "{known}");
        assert!(known.split(", ").any(|name| name == "xdp"), "{known}");
    }
}
