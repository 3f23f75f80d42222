//! Ports by link name: over a user-space IPv4 host on a frame link, or over the kernel's own UDP.

pub mod choice;
pub mod config;
pub mod engine;
mod options;
mod port;
pub mod stack;

use std::net::SocketAddrV4;

use millstream_link::port::{Port, PortOptions};
use millstream_link::{LinkError, Spec};

pub use config::configure;
pub use options::{EngineOptions, IoMode};

/// Opens a port on the link that `link` names, bound to `bind` (port 0: any free one).
///
/// The [`engine`] drives a link that carries frames; its link string may have [`EngineOptions`] in
/// addition to the link's own options.
///
/// The link [`choice::AUTO`] stands for the one that measured best for the interface of that
/// address.
///
/// # Errors
/// [`LinkError`], which says what to do.
pub fn open(link: &str, bind: SocketAddrV4, options: &PortOptions) -> Result<Port, LinkError> {
    let chosen = (link == choice::AUTO).then(|| choice::for_local(*bind.ip()).link);
    let link = config::expand(chosen.as_deref().unwrap_or(link));
    if millstream_link::registry::carries_frames(&link) {
        return engine::open(&link, bind, options);
    }
    millstream_link::open(&link, bind, options)
}

/// Checks a link string, the engine's options included, and returns it without these. It opens
/// nothing, and does not apply the configuration.
///
/// # Errors
/// [`LinkError`], which says what to do.
pub fn check(link: &str) -> Result<Spec, LinkError> {
    if !millstream_link::registry::carries_frames(link) {
        millstream_link::check_options(link)?;
        return Spec::parse(link);
    }
    let asked = options::Asked::parse(link)?;
    millstream_link::check_options(&asked.link.to_string()).map_err(engine::with_our_options)?;
    Ok(asked.link)
}

/// Whether a port on this link has an address that the kernel does not have (`address=`).
#[must_use]
pub fn has_own_address(link: &str) -> bool {
    let link = config::expand(link);
    millstream_link::registry::carries_frames(&link)
        && options::Asked::parse(&link).is_ok_and(|asked| asked.engine.address.is_some())
}
