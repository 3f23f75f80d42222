//! Captures of any link: `…,capture=FILE.pcapng` in a link string records both directions.
//!
//! The link's thread copies packets into a bounded buffer, and a thread of the capture writes them.
//! A slow disk loses packets in the file, never on the link; the file's statistics block counts
//! them (`isb_osdrop`, next to the link's own losses, `isb_ifdrop`), and so does the link
//! (`uncaptured`). A disk that fails ends the file: the link explains it ([`FrameLink::explain`]),
//! and a line on standard error reports it when the link is closed. Time stamps are taken once for
//! each batch, in nanoseconds. For ports, Ethernet, IPv4 and UDP headers are made up and put in
//! front.
//!
//! A file that exists is an error. Links of one program with the same file share it, as the ports
//! of a radio do, and a link that is opened again appends a further section.
//!
//! The crate `pcap-file` is not used: it requires each packet in one piece with a vector of
//! options, while these come in pieces and go directly into a ring, without an allocation.
//!
//! ```
//! use millstream_link::frame::{FrameLink, FrameOptions};
//!
//! let path = std::env::temp_dir().join(format!("capture-{}.pcapng", std::process::id()));
//! let text = format!("loop:capture={}", path.display());
//! let mut link = millstream_link::open_frames(&text, &FrameOptions::default())?;
//! let mut frames = Vec::new();
//! link.reserve(&mut frames, 1);
//! frames[0].set_len(60);
//! link.transmit(&mut frames)?;
//! drop(link);
//! assert!(std::fs::metadata(&path)?.len() > 60);
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod file;
mod link;
mod place;
mod port;
mod tap;

use std::io;
use std::sync::Arc;

use crate::LinkError;
use crate::frame::FrameLink;
use crate::port::{FrameLoan, Port};
use crate::spec::bad;
use file::Writing;
use link::CaptureLink;
use port::{CaptureRx, CaptureTx};
use tap::{CaptureCounts, CaptureWriter};

/// The option of link strings.
pub const OPTION: &str = "capture";

/// Adds a capture to a frame link.
///
/// # Errors
/// [`LinkError::BadOption`] when the file cannot be written.
pub fn frames(inner: Box<dyn FrameLink>, path: &str) -> Result<Box<dyn FrameLink>, LinkError> {
    let name = inner.info().interface.clone().unwrap_or_else(|| inner.info().name.to_owned());
    let counts = Arc::new(CaptureCounts::default());
    let begun = CaptureWriter::new(&counts)
        .and_then(|(tap, reader)| Ok((tap, Writing::begin(path, &name, vec![reader], &counts)?)));
    let (tap, writing) = begun.map_err(|error| cannot(path, &error))?;
    Ok(Box::new(CaptureLink::new(inner, tap, counts, writing)))
}

/// Adds a capture to a port of the link called `name`.
///
/// # Errors
/// [`LinkError::BadOption`] when the file cannot be written.
pub fn port(port: Port, path: &str, name: &str) -> Result<Port, LinkError> {
    let counts = Arc::new(CaptureCounts::default());
    let begun = CaptureWriter::new(&counts).and_then(|(rx, one)| {
        let (tx, other) = CaptureWriter::new(&counts)?;
        Ok((rx, tx, Writing::begin(path, name, vec![one, other], &counts)?))
    });
    let (rx_tap, tx_tap, writing) = begun.map_err(|error| cannot(path, &error))?;
    let (writing, Port { local, rx, tx }) = (Arc::new(writing), port);
    let rx = CaptureRx { tap: rx_tap, local, counts, inner: rx, _writing: Arc::clone(&writing) };
    let tx =
        CaptureTx { tap: tx_tap, local, inner: tx, loan: FrameLoan::default(), _writing: writing };
    Ok(Port { local, rx: Box::new(rx), tx: Box::new(tx) })
}

fn cannot(path: &str, error: &io::Error) -> LinkError {
    bad(&format!("{OPTION}={path}"), &format!("cannot be written: {error}"))
}

/// Returns the time of day, nanoseconds since 1970.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
