//! The commands of the RPC thread to the device thread.

use crate::device::RemoteRoute;
use crate::front_end::FrontEnd;
use crate::generation::Generation;
use crate::time::DeviceClock;

/// A command to the device.
///
/// It is in the mailbox before the host gets the answer to its call, and the device empties the
/// mailbox before it takes datagrams: so the command is executed before the host's next packet.
///
/// None says that a session begins or ends. The logic knows no sessions: what a host has set, and
/// what it has left running, is there when the next one comes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum DeviceCommand {
    /// The power was off: nothing is left of what hosts configured, and ticks restart.
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
