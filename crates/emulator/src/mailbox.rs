//! The commands of the RPC thread to the device thread.

use crate::device::RemoteRoute;
use crate::front_end::FrontEnd;
use crate::generation::Generation;
use crate::time::DeviceClock;

/// A command to the device.
///
/// It is in the mailbox before the host gets the answer to its call, and the device empties the
/// mailbox before it takes datagrams: so the command is executed before the host's next packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum DeviceCommand {
    /// A session begins or ends: drop everything that hosts configured.
    Reset(DeviceClock),
    /// The power was off: like the end of a session, and ticks restart.
    PowerCycle(DeviceClock),
    /// Rate or time changed.
    Time(DeviceClock),
    /// The settings of the front end of a radio block changed.
    FrontEnd(usize, FrontEnd),
    /// The id of the nodes in their information responses.
    DeviceId(u16),
    /// Packets to an endpoint leave for another host.
    Route(RemoteRoute),
    /// The caller of the session is known: speak its generation.
    Speak(&'static Generation),
}
