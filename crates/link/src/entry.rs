//! What the rest of the project knows of a link: one entry, which stands in the link's own folder.

use std::net::SocketAddrV4;

use millstream_host::ethtool::Channels;
use millstream_host::netlink::{NetlinkInterface, XdpFeatures};
use millstream_host::pci::Card;

use crate::frame::{FrameLink, FrameOptions};
use crate::options::Opt;
use crate::port::{Port, PortOptions};
use crate::rights::Family;
use crate::{LinkError, Spec};

/// A link that can be chosen by name.
#[derive(Debug)]
pub struct LinkEntry {
    /// The name in a link string.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Its options, for errors, help texts and schemas.
    pub options: fn() -> Vec<Opt>,
    /// What stands behind the colon, before the options.
    pub target: Target,
    /// How it is opened.
    pub factory: Factory,
    /// Whether its options can be understood. Nothing is opened or looked at.
    pub check: fn(&Spec) -> Result<(), LinkError>,
    /// The rights that it needs and that a broker can have; none: every user may open it, or no
    /// broker can help.
    pub rights: Option<&'static Family>,
    /// Why this build is without it, and what to do; none: it is there.
    pub missing: Option<&'static str>,
    /// What opening it in a place would meet. Nothing is opened.
    pub foresee: fn(&Spec, &OpenTarget<'_>) -> Vec<Remark>,
}

/// What a link works on.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// Nothing: its string has options only.
    None,
    /// An interface of the kernel.
    Interface {
        /// What a link there would be like, in a few words.
        outlook: fn(&OpenTarget<'_>) -> String,
    },
    /// A device that the kernel has given up, or a port in software.
    Device,
    /// A file.
    File,
}

/// How a link is opened.
#[derive(Debug, Clone, Copy)]
pub enum Factory {
    /// It opens ports by itself.
    Ports(PortFactory),
    /// It carries Ethernet frames; `net` makes ports of them.
    Frames(FrameFactory),
}

/// Opens a port of one link: options, address to bind, sizes.
pub type PortFactory = fn(&Spec, SocketAddrV4, &PortOptions) -> Result<Port, LinkError>;

/// Opens a frame link: what it works on and its options, sizes.
pub type FrameFactory = fn(&Spec, &FrameOptions) -> Result<Box<dyn FrameLink>, LinkError>;

/// A place where a link may be opened, as the system describes it.
#[derive(Debug, Clone, Copy)]
pub struct OpenTarget<'a> {
    /// The interface's name, also where the kernel does not have it any more.
    pub name: &'a str,
    /// The interface.
    pub interface: Option<&'a NetlinkInterface>,
    /// Its driver.
    pub driver: Option<&'a str>,
    /// Queues that serve, and that could.
    pub channels: Option<(Channels, Channels)>,
    /// What the driver can do for XDP.
    pub features: XdpFeatures,
    /// Network devices on the PCI bus.
    pub cards: &'a [Card],
}

/// Something that opening a link would meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    /// It stands in the way: what it is, and what to do about it.
    Obstacle(String),
    /// It is worth knowing.
    Note(String),
}

impl LinkEntry {
    /// Whether it works on an interface of the kernel.
    #[must_use]
    pub fn takes_interface(&self) -> bool {
        matches!(self.target, Target::Interface { .. })
    }

    /// Whether it carries frames, so that `net` has to make ports of them.
    #[must_use]
    pub fn carries_frames(&self) -> bool {
        matches!(self.factory, Factory::Frames(_))
    }

    /// Whether it has an option of this name.
    #[must_use]
    pub fn has_option(&self, name: &str) -> bool {
        (self.options)().iter().any(|option| option.name == name)
    }
}

/// [`LinkEntry::foresee`] of links that can be opened anywhere.
pub(crate) fn nothing_ahead(_: &Spec, _: &OpenTarget<'_>) -> Vec<Remark> {
    Vec::new()
}
