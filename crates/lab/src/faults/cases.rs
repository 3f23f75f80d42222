//! The faults of both directions.

use crate::Direction;

/// One line of the matrix. A fault names the way of the samples `{forth}` and the other way
/// `{back}`: `to_host` or `to_device`, by the direction of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FaultCase {
    /// Its name.
    pub name: &'static str,
    faults: &'static [&'static str],
    /// The faults of a transmit stream, where they are others.
    transmit: Option<&'static [&'static str]>,
    /// The faults begin before the stream opens, and last until it has ended.
    pub throughout: bool,
    /// Samples after the last fault.
    pub samples_after: u64,
    /// Samples that the device's receive buffer holds.
    pub rx_buffer_samples: u64,
    /// Each hit loses a packet, and no other packet is lost.
    pub loses_hits: bool,
    /// Samples arrive with another value, which the host cannot detect.
    pub damages_samples: bool,
    /// The packets hit carry false fields, or arrive after they were given up, and no field of the
    /// protocol shows it: each may be counted wrong, by a packet at most.
    pub misleads: bool,
    /// A packet hit on its way to the device may arrive after the count query that gave it up: the
    /// device counts it all the same.
    pub passes_audits: bool,
    /// The directions in which the stream cannot continue; its error gives the reason.
    pub ends: &'static [Direction],
}

impl FaultCase {
    const fn new(name: &'static str, faults: &'static [&'static str]) -> Self {
        Self {
            name,
            faults,
            transmit: None,
            throughout: false,
            samples_after: 200_000,
            // Four seconds: a busy machine causes no overrun.
            rx_buffer_samples: 1 << 22,
            loses_hits: false,
            damages_samples: false,
            misleads: false,
            passes_audits: false,
            ends: &[],
        }
    }

    const fn losing(self) -> Self {
        Self { loses_hits: true, ..self }
    }

    const fn misleading(self) -> Self {
        Self { misleads: true, ..self }
    }

    const fn throughout(self) -> Self {
        Self { throughout: true, ..self }
    }

    const fn with_small_buffer(self) -> Self {
        Self { rx_buffer_samples: 1 << 16, ..self }
    }

    /// The faults in one direction, as the radio parses them.
    pub fn specs(&self, direction: Direction) -> Vec<String> {
        let (forth, back, faults) = match direction {
            Direction::Rx => ("to_host", "to_device", self.faults),
            Direction::Tx => ("to_device", "to_host", self.transmit.unwrap_or(self.faults)),
        };
        faults.iter().map(|spec| spec.replace("{forth}", forth).replace("{back}", back)).collect()
    }
}

const BOTH: &[Direction] = &[Direction::Rx, Direction::Tx];

/// The matrix.
pub const CASES: &[FaultCase] = &[
    FaultCase::new("one packet lost", &["lose {forth} data count=1"]).losing(),
    FaultCase::new("burst of 100 lost", &["lose {forth} data count=100"]).losing(),
    FaultCase::new("every 1000th lost", &["lose {forth} data every=1000 count=3"]).losing(),
    FaultCase::new("duplicated", &["duplicate {forth} data every=10 count=20"]).misleading(),
    FaultCase {
        passes_audits: true,
        ..FaultCase::new("reordered", &["reorder {forth} data packets=3 every=20 count=20"])
    },
    FaultCase::new("late by 20 ms", &["delay {forth} data ms=20 every=20 count=20"]).misleading(),
    FaultCase::new("header corrupted", &["corrupt {forth} data to=8 every=20 count=20 seed=7"])
        .misleading(),
    FaultCase {
        damages_samples: true,
        ..FaultCase::new(
            "samples corrupted",
            &["corrupt {forth} data bits=8 from=16 every=20 count=20"],
        )
    },
    FaultCase::new("truncated", &["truncate {forth} data bytes=100 every=20 count=20"]).losing(),
    FaultCase::new("short stall", &["stall ms=30"]),
    FaultCase::new("long stall", &["stall ms=400"]).with_small_buffer(),
    FaultCase {
        // A radio whose message is not acknowledged executes no further start.
        ends: &[Direction::Rx],
        ..FaultCase::new("overrun unreported", &["lose to_host request", "stall ms=400"])
            .with_small_buffer()
    },
    FaultCase::new("half of the credit lost", &["lose {back} status every=2 for_ms=300"]),
    FaultCase::new("all credit lost for 400 ms", &["lose {back} status for_ms=400"]),
    FaultCase::new(
        "cable out for 300 ms",
        &["lose to_host any for_ms=300", "lose to_device any for_ms=300"],
    ),
    FaultCase {
        // More than the device had delayed meanwhile.
        samples_after: 2_000_000,
        ..FaultCase::new(
            "stream lost for 1 s",
            &["lose {forth} data for_ms=1000", "lose {forth} command for_ms=1000"],
        )
    },
    FaultCase {
        transmit: Some(&["lose to_device command count=1", "lose to_host status for_ms=200"]),
        ..FaultCase::new(
            "stream command lost",
            &["lose to_host resync count=1", "lose to_host data count=1"],
        )
    },
    FaultCase::new("requests lost", &["lose to_device request every=3"]).throughout(),
    FaultCase::new("acknowledgements lost", &["lose to_host ack every=3"]).throughout(),
    FaultCase::new(
        "management lost",
        &["lose to_device management every=3", "lose to_host management every=4"],
    )
    .throughout(),
    FaultCase::new("clock jumps", &["clock_jump ticks=5000"]),
    FaultCase { ends: BOTH, ..FaultCase::new("reboot", &["reboot silent_ms=200"]) },
    FaultCase {
        // Long enough for the claim to expire: the radio's logic knows no claims, and goes on.
        samples_after: 12_000_000,
        ..FaultCase::new("management port gone", &["rpc_down ms=3600000"])
    },
];
