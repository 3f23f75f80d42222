//! The wait mode of a link, as a command line option.

use millstream_lab::packets::PacketWait;

/// A wait mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum WaitArg {
    /// Sleep in the kernel.
    Block,
    /// Never sleep. The thread needs a whole core.
    Spin,
    /// Poll for a while, then sleep.
    Adaptive,
}

impl From<WaitArg> for PacketWait {
    fn from(arg: WaitArg) -> Self {
        match arg {
            WaitArg::Block => Self::Block,
            WaitArg::Spin => Self::Spin,
            WaitArg::Adaptive => Self::Adaptive,
        }
    }
}
