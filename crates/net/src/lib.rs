//! Ports by link name, whatever carries them: a user-space IPv4 host on a frame link, or the
//! kernel's own UDP.

pub mod config;
pub mod stack;

use std::net::SocketAddrV4;

use millstream_link::LinkError;
use millstream_link::port::{Port, PortOptions};

pub use config::configure;

/// Opens a port on the link that `link` names, bound to `bind` (port 0: any free one).
///
/// # Errors
/// [`LinkError`], which says what to do.
pub fn open(link: &str, bind: SocketAddrV4, options: &PortOptions) -> Result<Port, LinkError> {
    millstream_link::open(&config::expand(link), bind, options)
}
