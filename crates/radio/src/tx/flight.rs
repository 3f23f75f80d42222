//! The record of what is in flight: how many samples lie before a point of the stream.

use std::collections::VecDeque;

/// Runs of equal packets that the record holds: as many as the smallest bursts make in a window.
const RUNS: usize = 4096;

/// Equal packets in a row, each at the time where the one before ends, or all without time.
#[derive(Debug, Clone, Copy)]
struct Run {
    packets: u64,
    flow_bytes: u64,
    /// Samples of the caller in each.
    samples: u64,
    /// Time of the first one, ticks.
    start: Option<u64>,
}

impl Run {
    /// Time behind the last one, ticks.
    fn end(&self) -> Option<u64> {
        self.start.map(|start| start.wrapping_add(self.packets * self.samples))
    }
}

/// Packets in the order in which they were sent, those that the device has passed removed.
///
/// It never grows: where it is full, sending has to wait.
#[derive(Debug)]
pub(super) struct Flight {
    runs: VecDeque<Run>,
    /// Bytes before the first packet of the record, modulo 2⁶⁴.
    passed_bytes: u64,
    samples: u64,
}

impl Flight {
    pub fn new() -> Self {
        Self { runs: VecDeque::with_capacity(RUNS), passed_bytes: 0, samples: 0 }
    }

    /// Whether nothing more can be noted but a train and a few commands.
    pub fn is_full(&self) -> bool {
        self.runs.len() + 16 >= RUNS
    }

    /// Whether it is time to ask what the device has passed.
    pub fn is_half_full(&self) -> bool {
        self.runs.len() >= RUNS / 2
    }

    /// Samples in flight.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The time of the first packet in flight that has one, ticks.
    pub fn first_ticks(&self) -> Option<u64> {
        self.runs.iter().find_map(|run| run.start)
    }

    /// Packets leave.
    pub fn push(&mut self, packets: u64, flow_bytes: u64, samples: u64, start: Option<u64>) {
        self.samples += packets * samples;
        if let Some(last) = self.runs.back_mut()
            && (last.flow_bytes, last.samples) == (flow_bytes, samples)
            && last.end() == start
        {
            last.packets += packets;
            return;
        }
        self.runs.push_back(Run { packets, flow_bytes, samples, start });
    }

    /// The device has passed all packets before `bytes`. The samples in those.
    pub fn pass(&mut self, bytes: u64) -> u64 {
        let mut passed = 0;
        while let Some(run) = self.runs.front_mut() {
            let ahead = bytes.wrapping_sub(self.passed_bytes);
            // Further back than half way round is behind us.
            let fit = if ahead > u64::MAX / 2 { 0 } else { ahead / run.flow_bytes };
            let packets = fit.min(run.packets);
            self.passed_bytes = self.passed_bytes.wrapping_add(packets * run.flow_bytes);
            passed += packets * run.samples;
            run.start = run.start.map(|start| start.wrapping_add(packets * run.samples));
            run.packets -= packets;
            if run.packets > 0 {
                break;
            }
            self.runs.pop_front();
        }
        self.samples -= passed;
        passed
    }

    /// Forgets everything, as the handshake does. The samples that were in flight.
    pub fn reset(&mut self) -> u64 {
        self.runs.clear();
        self.passed_bytes = 0;
        std::mem::take(&mut self.samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_passed_packet_by_packet() {
        let mut flight = Flight::new();
        flight.push(3, 416, 100, Some(1000));
        flight.push(2, 416, 100, Some(1300));
        flight.push(1, 24, 0, None);
        flight.push(1, 56, 10, Some(1500));
        assert_eq!((flight.runs.len(), flight.samples()), (3, 510));
        assert_eq!(flight.pass(415), 0);
        assert_eq!(flight.pass(2 * 416 + 3), 200);
        assert_eq!(flight.first_ticks(), Some(1200));
        assert_eq!(flight.pass(416), 0, "not backwards");
        assert_eq!(flight.pass(5 * 416 + 24), 300);
        assert_eq!(flight.first_ticks(), Some(1500));
        assert_eq!(flight.pass(u64::MAX / 4), 10);
        assert_eq!(flight.samples(), 0);
    }

    #[test]
    fn equal_packets_of_different_times_keep_them() {
        let mut flight = Flight::new();
        flight.push(1, 416, 100, Some(1000));
        flight.push(1, 416, 100, Some(9000));
        flight.push(3, 416, 100, Some(9100));
        assert_eq!(flight.runs.len(), 2);
        assert_eq!(flight.pass(416), 100);
        assert_eq!(flight.first_ticks(), Some(9000));
    }

    #[test]
    fn a_full_record_says_so_before_it_would_grow() {
        let mut flight = Flight::new();
        let capacity = flight.runs.capacity();
        let mut packets = 0;
        while !flight.is_full() {
            flight.push(1, 16 + packets % 2 * 8, 1, None);
            packets += 1;
        }
        assert!(packets > 900);
        assert_eq!((flight.runs.capacity(), flight.reset()), (capacity, packets));
    }
}
