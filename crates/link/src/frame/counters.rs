//! The counters of a link, and the number of its frames in each place.

/// Declares a struct of counters (`u64`) that can list their names.
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
            /// Lists every counter with its name, in the order of declaration.
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
        /// Times that the kernel found no buffer to receive into: frames were lost or delayed in
        /// the device.
        rx_starved,
        /// Received frames lost below the link for other reasons (too long, in too many parts).
        rx_dropped,
        /// Descriptors that the kernel refused to transmit.
        tx_invalid,
        /// Frames that the kernel lost after it took them.
        tx_dropped,
        /// Calls to transmit that found the ring full.
        tx_ring_full,
        /// Wanted frames that came on a queue that the link does not watch; the kernel got them.
        unwatched,
        /// Wanted frames beyond the rate limit.
        rate_limited,
        /// System calls made to receive, transmit or wake the kernel.
        syscalls,
        /// Stalls that the watchdog found and ended.
        recoveries,
        /// Frames that passed but are missing in the link's capture: the disk was slow, or failed.
        uncaptured,
        /// Received and sent frames that injected faults removed.
        fault_lost,
        /// Copies of frames that injected faults added.
        fault_added,
    }
}

/// The number of a link's frames in each place. The sum is constant while the link is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameCounts {
    /// Free frames.
    pub pool: usize,
    /// Frames with the kernel, to receive into, or received and not yet polled.
    pub receiving: usize,
    /// Frames with the kernel, to be transmitted, or transmitted and not yet reclaimed.
    pub transmitting: usize,
    /// Frames lent to the user.
    pub lent: usize,
}

impl FrameCounts {
    /// Returns the number of all frames of the link.
    #[must_use]
    pub fn total(&self) -> usize {
        self.pool + self.receiving + self.transmitting + self.lent
    }
}
