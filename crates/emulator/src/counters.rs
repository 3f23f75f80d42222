//! Named counters: what the radio did, and what others did to it.

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
    /// Echo datagrams longer than the network's MTU allows; passed over.
    discovery_oversized,
    /// Datagrams on the discovery port that are neither.
    discovery_malformed,
    /// Answers on the discovery port that could not be sent.
    discovery_send_errors,
    /// Looks at the discovery port that failed: its interface may be gone.
    discovery_receive_errors,
    /// The same at the port that answers echoes on a link with an address of its own.
    echo_receive_errors,
    /// TCP connections accepted.
    rpc_connections,
    /// Calls answered, errors included.
    rpc_calls,
    /// Calls answered with an error.
    rpc_call_errors,
    /// Connections closed because their bytes are no MessagePack-RPC.
    rpc_malformed,
    /// Connections closed or refused because there are too many, or the peer does not read.
    rpc_refused,
    /// Claims that ended because their holder fell silent.
    rpc_claims_expired,
    /// Rates outside [`RadioConfig::rate_range_hz`](crate::RadioConfig::rate_range_hz) that a host
    /// asked for; it was given the nearest inside.
    rate_coercions,
    /// Looks at the CHDR port that failed: its interface may be gone. A radio that hears nothing.
    chdr_receive_errors,
    /// Datagrams received on the CHDR port.
    chdr_datagrams,
    /// Datagrams that came to the CHDR port while the radio rebooted.
    chdr_unheard,
    /// Datagrams that are no CHDR packet.
    chdr_malformed,
    /// Well-formed packets to an endpoint, port or block that does not exist.
    chdr_unroutable,
    /// Stream status packets from an endpoint that the stream does not go to.
    chdr_unexpected,
    /// Requests on the control channel.
    control_channel_requests,
    /// Requests on the control channel that could not be understood.
    control_channel_errors,
    /// Connections of the control channel refused or closed.
    control_channel_refused,
    /// Reboots.
    reboots,
    /// Management packets answered.
    management_packets,
    /// Management packets not answered: no node there, or a route that leads nowhere.
    management_unanswered,
    /// Management packets whose hops cannot be executed.
    management_malformed,
    /// Control packets whose payload is none.
    control_malformed,
    /// Stream status and command packets whose payload is none.
    stream_malformed,
    /// Control requests executed.
    control_requests,
    /// Control requests dropped because more were queued than the command FIFO holds.
    control_overflows,
    /// Control requests to a register that does not exist (answered with a command error).
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
    /// Receive commands lost because 32 were queued.
    rx_command_overflows,
    /// Overruns: the packet buffer overflowed while the host granted no credit.
    rx_overruns,
    /// Overruns of these that are the radio's own fault: packets were due, and its thread was not
    /// run for half of the packet buffer's time. The machine is too busy to be the radio.
    rx_overruns_own,
    /// Times that a due packet found the host's credit window closed.
    rx_credit_stalls,
    /// Stream status packets accepted.
    rx_status_packets,
    /// Stream status packets that claim a little more than was sent: a packet counted twice.
    rx_status_excess,
    /// Stream status packets that claim far more than was sent.
    rx_status_invalid,
    /// Samples that were zero because the antenna could not deliver.
    rx_starved_samples,
    /// Ticks that loopback channels passed over at once because the process had been stopped: what
    /// was on the air then was not heard.
    loopback_skipped_samples,
    /// Transmit sample packets received.
    tx_packets,
    /// Payload bytes of them. Every sample is transmitted, waiting, late, skipped, flushed or lost
    /// to an overflow, and counted so below.
    tx_bytes,
    /// Gaps in the sequence numbers of transmit packets and stream commands.
    tx_sequence_errors,
    /// Samples transmitted.
    tx_samples,
    /// Samples that wait in the packet buffers now.
    tx_waiting_samples,
    /// Bursts begun; after an underflow the rest of a burst begins anew.
    tx_bursts,
    /// Bursts that ended with EOB, which the host was told.
    tx_burst_acks,
    /// Bursts that ended because the next sample was not there in time.
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
    /// Packets dropped because a host sent more than its window: no room in the packet buffer.
    tx_overflow_packets,
    /// Samples in them.
    tx_overflow_samples,
    /// Samples transmitted that the file for them lacks: the disk is too slow, or full.
    tx_out_lost_samples,
    /// Sends on the CHDR port that failed; to the host it is packet loss.
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

    /// Replaces the value by a total kept elsewhere.
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
