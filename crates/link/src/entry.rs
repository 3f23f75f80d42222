//! The entry of a link: everything that the other crates know of it. Each stands in its link's own
//! folder.

use std::net::SocketAddrV4;

use millstream_host::pci::Card;

use crate::frame::{FrameLink, FrameOptions};
use crate::options::Opt;
use crate::port::{Port, PortOptions};
use crate::rights::Family;
use crate::{InterfaceState, LinkError, Spec};

/// A link that can be chosen by name.
#[derive(Debug)]
pub struct LinkEntry {
    /// The name in a link string.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// Its options, for errors, help texts and schemas.
    pub options: fn() -> Vec<Opt>,
    /// The part behind the colon, before the options.
    pub target: Target,
    /// The way to open it.
    pub factory: Factory,
    /// Checks that its options can be understood. Nothing is opened or examined.
    pub check: fn(&Spec) -> Result<(), LinkError>,
    /// The rights that it needs and that a broker can have. `None` when every user may open it, or
    /// when no broker can help.
    pub rights: Option<&'static Family>,
    /// Why this build does not have it, and what to do. `None` when it is present.
    pub missing: Option<&'static str>,
    /// Predicts what opening it on a target would meet. Nothing is opened.
    pub foresee: fn(&Spec, &OpenTarget<'_>) -> Vec<Remark>,
}

/// The kind of object that a link works on.
#[derive(Debug, Clone, Copy)]
pub enum Target {
    /// No object: the link string has options only.
    None,
    /// An interface of the kernel.
    Interface {
        /// Describes in a few words how a link on this target would work.
        outlook: fn(&OpenTarget<'_>) -> String,
    },
    /// A device that the kernel has given up, or a software port.
    Device,
    /// A file.
    File,
}

/// The way to open a link.
#[derive(Debug, Clone, Copy)]
pub enum Factory {
    /// The link opens ports itself.
    Ports(PortFactory),
    /// The link carries Ethernet frames; `net` makes ports of them.
    Frames(FrameFactory),
}

/// Opens a port of one link. Arguments: options, address to bind, sizes.
pub type PortFactory = fn(&Spec, SocketAddrV4, &PortOptions) -> Result<Port, LinkError>;

/// Opens a frame link. Arguments: target and options, sizes.
pub type FrameFactory = fn(&Spec, &FrameOptions) -> Result<Box<dyn FrameLink>, LinkError>;

/// A target on which a link may be opened, as the system describes it.
#[derive(Debug, Clone, Copy)]
pub struct OpenTarget<'a> {
    /// The interface's name, even when the kernel no longer has the interface.
    pub name: &'a str,
    /// The interface.
    pub state: Option<&'a InterfaceState>,
    /// Network devices on the PCI bus.
    pub cards: &'a [Card],
}

/// A remark about what opening a link would meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    /// An obstacle: what it is, and what to do about it.
    Obstacle(String),
    /// Useful information that does not prevent opening.
    Note(String),
}

impl LinkEntry {
    /// Whether the link works on an interface of the kernel.
    #[must_use]
    pub fn takes_interface(&self) -> bool {
        matches!(self.target, Target::Interface { .. })
    }

    /// Whether the link carries frames, so that `net` has to make ports of them.
    #[must_use]
    pub fn carries_frames(&self) -> bool {
        matches!(self.factory, Factory::Frames(_))
    }

    /// Whether the link has an option of this name.
    #[must_use]
    pub fn has_option(&self, name: &str) -> bool {
        (self.options)().iter().any(|option| option.name == name)
    }
}

/// [`LinkEntry::foresee`] of links that can be opened anywhere.
pub(crate) fn nothing_ahead(_: &Spec, _: &OpenTarget<'_>) -> Vec<Remark> {
    Vec::new()
}
