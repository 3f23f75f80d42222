//! The wait mode of a link, as a command line option.

use millstream_lab::packets::PacketWait;

/// A wait mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum WaitArg {
    /// Sleeps in the kernel.
    Block,
    /// Never sleeps: owns a core.
    Spin,
    /// Spins for a while, then sleeps.
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
