//! What the RPC thread tells the device thread.

use crate::time::DeviceClock;

/// An order to the device.
///
/// It is in the mailbox before the host sees the answer to its call, and the device empties the
/// mailbox before it looks at datagrams: so a host's next packet always finds the order obeyed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum DeviceCommand {
    /// A session begins or ends: forget everything that hosts configured.
    Reset(DeviceClock),
    /// The power was off: as a session's end, and ticks begin anew.
    PowerCycle(DeviceClock),
    /// Rate or time changed.
    Time(DeviceClock),
    /// The id that the nodes state in their information responses.
    DeviceId(u16),
}
