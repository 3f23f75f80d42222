//! Ports by link name, whatever carries them: a user-space IPv4 host on a frame link, or the
//! kernel's own UDP.

pub mod config;
pub mod engine;
mod options;
mod port;
pub mod stack;

use std::net::SocketAddrV4;

use millstream_link::LinkError;
use millstream_link::port::{Port, PortOptions};

pub use config::configure;
pub use options::OPTIONS_HELP;

/// Opens a port on the link that `link` names, bound to `bind` (port 0: any free one).
///
/// A link that carries frames is driven by the [`engine`]; [`OPTIONS_HELP`] says what its link
/// string may say beside the link's own options.
///
/// # Errors
/// [`LinkError`], which says what to do.
pub fn open(link: &str, bind: SocketAddrV4, options: &PortOptions) -> Result<Port, LinkError> {
    let link = config::expand(link);
    if millstream_link::registry::carries_frames(&link) {
        return engine::open(&link, bind, options);
    }
    millstream_link::open(&link, bind, options)
}
