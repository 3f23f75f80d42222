//! The wait mode of a link, as a command line option.

use millstream_lab::packets::PacketWait;

/// The wait modes.
pub const WAITS: [(&str, &str, PacketWait); 3] = [
    ("block", "Sleep in the kernel", PacketWait::Block),
    ("spin", "Never sleep. The thread needs a whole core", PacketWait::Spin),
    ("adaptive", "Poll for a while, then sleep", PacketWait::Adaptive),
];
