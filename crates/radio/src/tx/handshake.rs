//! Sets up a host-to-device stream.

use millstream_link::port::Port;
use millstream_wire::Width;
use millstream_wire::chdr::round_to_word;
use millstream_wire::stream::CommandRepr;

use super::accounting::Opened;
use super::opening::TxOpening;
use crate::stream::StreamPath;
use crate::{RadioError, opening};

/// Routes the stream to `port` and opens it with the device's advertised window. Afterwards both
/// sides count from zero.
pub(super) fn open(port: &mut Port, path: &StreamPath) -> Result<Opened, RadioError> {
    opening::run(port, path, TxOpening::new(path))
}

/// Returns the length of a stream command in flow control, bytes.
pub(super) fn command_bytes(width: Width) -> u64 {
    round_to_word(CommandRepr::packet_len(width), width) as u64
}
