//! What a link counts, and where its frames are.

/// Declares a struct of counters (`u64`) that can say the name of each.
#[macro_export]
macro_rules! counters {
    ($(#[$outer:meta])* $name:ident { $($(#[$doc:meta])* $counter:ident,)* }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$doc])* pub $counter: u64,)*
        }

        impl $name {
            /// Every counter with its name, in the order of declaration.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($counter), self.$counter),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Events of one link since it was opened.
    LinkCounters {
        /// Frames received and lent.
        rx_frames,
        /// Their bytes, Ethernet header included.
        rx_bytes,
        /// Frames that the kernel (or device) has taken to transmit.
        tx_frames,
        /// Their bytes, Ethernet header included.
        tx_bytes,
        /// Received frames lost because the receive ring was full: the consumer was slow.
        rx_ring_full,
        /// Times that the kernel found no buffer to receive into: frames lost or
        /// held in the device.
        rx_starved,
        /// Received frames lost below for other reasons (too long, in too many parts).
        rx_dropped,
        /// Descriptors that the kernel refused to transmit.
        tx_invalid,
        /// Frames that the kernel lost after it took them.
        tx_dropped,
        /// Calls to transmit that found the ring full.
        tx_ring_full,
        /// Wanted frames that came on a queue that nobody watches; the kernel got them.
        unwatched,
        /// Wanted frames beyond the rate guard.
        rate_limited,
        /// System calls made to receive, transmit or wake the kernel.
        syscalls,
        /// Stalls that the watchdog found and ended.
        recoveries,
        /// Frames that passed and are missing in the link's capture: the disk was slow, or failed.
        uncaptured,
        /// Frames that faults on demand took away, received ones and sent ones.
        fault_lost,
        /// Copies of frames that faults on demand added.
        fault_added,
    }
}

/// Where the frames of a link are. The sum never changes while the link is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameCounts {
    /// Free.
    pub pool: usize,
    /// With the kernel, to receive into, or received and not yet looked at.
    pub receiving: usize,
    /// With the kernel, to be transmitted, or transmitted and not yet taken back.
    pub transmitting: usize,
    /// Lent to the user.
    pub lent: usize,
}

impl FrameCounts {
    /// All frames of the link.
    #[must_use]
    pub fn total(&self) -> usize {
        self.pool + self.receiving + self.transmitting + self.lent
    }
}
