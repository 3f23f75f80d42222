//! Named counters: the radio's actions, and events from outside.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The live counters. Each has one writing thread; reading is always allowed.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($(#[$doc])* pub $name: EventCounter,)*
        }

        /// The counters at one moment.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct CounterSnapshot {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            pub fn snapshot(&self) -> CounterSnapshot {
                CounterSnapshot { $($name: self.$name.get(),)* }
            }
        }

        impl CounterSnapshot {
            /// Name and value of every counter, in a fixed order.
            pub fn entries(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

counters! {
    /// Discovery requests answered.
    discovery_requests,
    /// Echo datagrams returned.
    discovery_echoes,
    /// Echo datagrams longer than the network's MTU; ignored.
    discovery_oversized,
    /// Datagrams on the discovery port that are neither.
    discovery_malformed,
    /// Answers on the discovery port that could not be sent.
    discovery_send_errors,
    /// Failed polls of the discovery port: its interface may be gone.
    discovery_receive_errors,
    /// Failed polls of the port that answers echoes on a link with a separate address.
    echo_receive_errors,
    /// TCP connections accepted.
    rpc_connections,
    /// Calls answered, errors included.
    rpc_calls,
    /// Calls answered with an error.
    rpc_call_errors,
    /// Connections closed because their bytes are neither MessagePack-RPC nor gRPC.
    rpc_malformed,
    /// Connections closed or refused because there are too many, or because the peer does not read.
    rpc_refused,
    /// Claims that ended because their holder was silent.
    rpc_claims_expired,
    /// Rates not among [`RadioConfig::rates`](crate::RadioConfig::rates) that a host
    /// requested; it got the nearest of them.
    rate_coercions,
    /// Failed polls of the CHDR port: its interface may be gone, and the radio receives nothing.
    chdr_receive_errors,
    /// Datagrams received on the CHDR port.
    chdr_datagrams,
    /// Datagrams that came to the CHDR port while the radio rebooted.
    chdr_unheard,
    /// Datagrams that are not CHDR packets.
    chdr_malformed,
    /// Well-formed packets to an endpoint that does not exist, or for a host without an address.
    chdr_unroutable,
    /// Stream status packets from an endpoint that is not the stream's destination.
    chdr_unexpected,
    /// Requests on the control channel.
    control_channel_requests,
    /// Requests on the control channel that could not be decoded.
    control_channel_errors,
    /// Connections of the control channel refused or closed.
    control_channel_refused,
    /// Reboots.
    reboots,
    /// Management packets answered.
    management_packets,
    /// Management packets without an answer: no node at the port, a host that has not advertised
    /// itself, or a crossbar that has stopped.
    management_unanswered,
    /// Management packets whose hops cannot be executed.
    management_malformed,
    /// Control packets with an invalid payload.
    control_malformed,
    /// Stream status and command packets with an invalid payload.
    stream_malformed,
    /// Control requests executed.
    control_requests,
    /// Control and management packets dropped because too many waited behind a full command FIFO.
    control_overflows,
    /// Control requests to a register that does not exist.
    control_bad_registers,
    /// Asynchronous messages sent to the host.
    async_messages,
    /// Sample packets sent.
    rx_packets,
    /// Payload bytes of them.
    rx_bytes,
    /// Receive commands that began to stream.
    rx_commands,
    /// Timed receive commands that arrived too late.
    rx_late_commands,
    /// Overruns: the packet buffer overflowed while the host granted no credit.
    rx_overruns,
    /// Those overruns that are the radio's own fault: packets were due, and its thread did not run
    /// for half of the packet buffer's time. The machine is too busy for the radio.
    rx_overruns_own,
    /// The number of times that a due packet found the host's credit window closed.
    rx_credit_stalls,
    /// Stream status packets accepted.
    rx_status_packets,
    /// Stream status packets that claim slightly more than was sent: a packet counted twice.
    rx_status_excess,
    /// Stream status packets that claim far more than was sent.
    rx_status_invalid,
    /// Samples that were zero because the antenna could not deliver.
    rx_starved_samples,
    /// Ticks that loopback channels skipped at once because the process had been stopped: signals
    /// of that time were not received.
    loopback_skipped_samples,
    /// Transmit sample packets received.
    tx_packets,
    /// Payload bytes of them. Every sample is transmitted, waiting, late, skipped, flushed or lost
    /// to an overflow, and counted as such below.
    tx_bytes,
    /// Gaps in the sequence numbers of transmit packets and stream commands.
    tx_sequence_errors,
    /// Samples transmitted.
    tx_samples,
    /// Samples that wait in the packet buffers now.
    tx_waiting_samples,
    /// Bursts begun; after an underflow the rest of a burst counts as a new one.
    tx_bursts,
    /// Bursts that ended with EOB, which was reported to the host.
    tx_burst_acks,
    /// Bursts that ended because the next sample did not arrive in time.
    tx_underflows,
    /// Ticks between an underflow and the next sample transmitted.
    tx_gap_samples,
    /// Transmit packets dropped because they came after their time.
    tx_late_packets,
    /// Samples in them.
    tx_late_samples,
    /// Samples dropped after an underflow or a late packet, up to the next burst: error policy 2.
    tx_skipped_samples,
    /// Samples dropped because a host flushed the packet buffer.
    tx_flushed_samples,
    /// Packets dropped because a host exceeded its window: no space in the packet buffer.
    tx_overflow_packets,
    /// Samples in them.
    tx_overflow_samples,
    /// Transmitted samples that are missing in the file: the disk is too slow, or full.
    tx_out_lost_samples,
    /// Failed sends on the CHDR port; packet loss for the host.
    send_errors,
    /// Datagrams dropped by the system because the CHDR port's receive queue was full.
    queue_drops,
}

/// A counter with one writer.
#[derive(Debug, Default)]
pub(crate) struct EventCounter(AtomicU64);

impl EventCounter {
    /// Adds one.
    pub fn inc(&self) {
        self.add(1);
    }

    /// Adds `count`.
    pub fn add(&self, count: u64) {
        // One writer per counter, so no read-modify-write instruction is needed.
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    /// Sets the value to a total that is counted elsewhere.
    pub fn set(&self, total: u64) {
        self.0.store(total, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_names_every_counter() {
        let counters = Counters::default();
        counters.rx_packets.add(3);
        counters.chdr_malformed.inc();
        let snapshot = counters.snapshot();
        assert_eq!((snapshot.rx_packets, snapshot.chdr_malformed), (3, 1));
        assert!(snapshot.entries().contains(&("rx_packets", 3)));
    }
}
