//! One round: what it does follows from the seed, its number, the faults to choose from and the
//! number of links.

use crate::Direction;
use crate::faults::FaultCase;
use millstream_dsp::noise::Noise;
use serde::Serialize;

/// Sample rates of a channel. The radio keeps four seconds of the highest one, so a busy machine
/// loses nothing.
const RATES_HZ: [f64; 3] = [250e3, 500e3, 1e6];

/// The rate at which a stall of the radio overflows its buffer of [`RX_BUFFER_SAMPLES`].
const OVERRUN_RATE_HZ: f64 = 12e6;

/// Samples that each channel of the radio keeps while the host grants no credit.
pub const RX_BUFFER_SAMPLES: u64 = 1 << 22;

/// Samples of each transmit buffer of the radio: a quarter of a second at the highest rate, so that
/// streams end soon.
pub const TX_BUFFER_SAMPLES: u64 = 1 << 18;

/// Samples of a packet.
const PACKET_SAMPLES: [u32; 3] = [100, 200, 364];

/// Most streams that a round opens one after the other.
const STREAMS_MAX: u64 = 3;

/// Directions of the streams of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RoundWay {
    /// From the radio.
    Rx,
    /// To the radio.
    Tx,
    /// Both at once, in one thread.
    Both,
}

impl RoundWay {
    /// Whether it has a stream of this direction.
    #[must_use]
    pub fn has(self, direction: Direction) -> bool {
        match self {
            Self::Rx => direction == Direction::Rx,
            Self::Tx => direction == Direction::Tx,
            Self::Both => true,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rx => Direction::Rx.name(),
            Self::Tx => Direction::Tx.name(),
            Self::Both => "both",
        }
    }
}

/// The fault of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundFault {
    /// The fault.
    pub case: &'static FaultCase,
    /// The direction whose samples it concerns.
    pub direction: Direction,
    /// The stream of the round during which it acts, from 0.
    pub stream: u64,
}

/// What a round does.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RoundPlan {
    /// Its number, from 0.
    pub number: u64,
    /// The link, by its place in the list of links: they come in turn.
    pub link: usize,
    /// Directions.
    pub way: RoundWay,
    /// Channels of each direction, one or two.
    pub channels: usize,
    /// Samples per second of a channel.
    pub rate_hz: f64,
    /// Samples of a packet.
    pub packet_samples: u32,
    /// Streams of each direction, opened one after the other on one device.
    pub streams: u64,
    /// Whether channels are tuned while samples flow, and between the streams.
    pub retunes: bool,
    /// The fault, if it has one.
    pub fault: Option<RoundFault>,
}

impl RoundPlan {
    /// Draws round `number` of the soak with this seed, with one of the faults `cases`, over one of
    /// `links` links.
    ///
    /// # Panics
    /// Without a link.
    #[must_use]
    pub fn draw(seed: u64, number: u64, links: usize, cases: &[&'static FaultCase]) -> Self {
        let mut random = Noise::new(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut below = |limit: u64| random.bits() % limit;
        let way = [RoundWay::Rx, RoundWay::Tx, RoundWay::Both][below(3) as usize];
        let channels = 1 + below(2) as usize;
        let streams = 1 + below(STREAMS_MAX);
        let packet_samples = PACKET_SAMPLES[below(PACKET_SAMPLES.len() as u64) as usize];
        let rate_hz = RATES_HZ[below(RATES_HZ.len() as u64) as usize];
        let retunes = below(2) == 0;
        let both = [Direction::Rx, Direction::Tx];
        let ways: Vec<_> = both.into_iter().filter(|one| way.has(*one)).collect();
        // A third of the rounds has no fault: there nothing may be lost at all.
        let fault = (!cases.is_empty() && below(3) > 0).then(|| RoundFault {
            case: cases[below(cases.len() as u64) as usize],
            direction: ways[below(ways.len() as u64) as usize],
            stream: below(streams),
        });
        let overruns = fault.is_some_and(|fault| overruns(fault.case));
        Self {
            number,
            link: (number % links as u64) as usize,
            way,
            channels: if overruns { 1 } else { channels },
            rate_hz: if overruns { OVERRUN_RATE_HZ } else { rate_hz },
            packet_samples: if overruns { 364 } else { packet_samples },
            streams,
            // A fault of the whole stream may hit the messages that tune, too.
            retunes: retunes && fault.is_none_or(|fault| !fault.case.throughout),
            fault,
        }
    }

    /// The round of one fault alone, on one stream at the rate of the faults.
    #[must_use]
    pub(crate) fn of_case(case: &'static FaultCase, direction: Direction) -> Self {
        Self {
            number: 0,
            link: 0,
            way: match direction {
                Direction::Rx => RoundWay::Rx,
                Direction::Tx => RoundWay::Tx,
            },
            channels: 1,
            rate_hz: crate::faults::RATE_HZ,
            packet_samples: PACKET_SAMPLES[0],
            streams: 1,
            retunes: false,
            fault: Some(RoundFault { case, direction, stream: 0 }),
        }
    }

    /// The name of its fault.
    #[must_use]
    pub fn fault_name(&self) -> &'static str {
        self.fault.map_or("none", |fault| fault.case.name)
    }
}

/// Whether the fault overflows the radio's buffer, where that is small enough.
pub(super) fn overruns(case: &FaultCase) -> bool {
    case.rx_buffer_samples < RX_BUFFER_SAMPLES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::CASES;

    fn all() -> Vec<&'static FaultCase> {
        CASES.iter().collect()
    }

    #[test]
    fn a_round_follows_from_its_seed_and_number() {
        let draw = |seed, number| RoundPlan::draw(seed, number, 3, &all());
        assert_eq!(draw(7, 5), draw(7, 5));
        let differ = |a: &dyn Fn(u64) -> RoundPlan, b: &dyn Fn(u64) -> RoundPlan| {
            {
                (0..20).filter(|n| {
                    RoundPlan { number: 0, ..a(*n) } != RoundPlan { number: 0, ..b(*n) }
                })
            }
            .count()
        };
        assert!(differ(&|n| draw(7, n), &|n| draw(8, n)) > 10, "another seed, other rounds");
    }

    #[test]
    fn everything_is_drawn_sooner_or_later() {
        let rounds: Vec<_> = (0..2000).map(|n| RoundPlan::draw(1, n, 3, &all())).collect();
        let some = |is: &dyn Fn(&RoundPlan) -> bool| rounds.iter().any(is);
        for case in CASES {
            for direction in Direction::ALL {
                let is_it = |fault: RoundFault| fault.case == case && fault.direction == direction;
                assert!(some(&|round| round.fault.is_some_and(is_it)), "{}", case.name);
            }
        }
        for way in [RoundWay::Rx, RoundWay::Tx, RoundWay::Both] {
            for channels in [1, 2] {
                assert!(some(&|round| round.way == way && round.channels == channels));
            }
        }
        for rate_hz in RATES_HZ {
            assert!(some(&|round| round.rate_hz == rate_hz && round.fault.is_none()));
        }
        assert!(some(&|round| round.retunes) && some(&|round| !round.retunes));
        assert!(some(&|round| round.streams == 1) && some(&|round| round.streams == 3));
        assert!(rounds.iter().all(|round| round.link == (round.number % 3) as usize));
        let within = |round: &RoundPlan| {
            round
                .fault
                .is_none_or(|fault| fault.stream < round.streams && round.way.has(fault.direction))
        };
        assert!(rounds.iter().all(within));
    }

    #[test]
    fn a_stall_overflows_the_buffer_only_where_it_should() {
        let buffer_s = |rate_hz: f64| RX_BUFFER_SAMPLES as f64 / rate_hz;
        assert!(buffer_s(OVERRUN_RATE_HZ) < 0.4, "the stalls last 400 ms");
        assert!(RATES_HZ.iter().all(|rate_hz| buffer_s(*rate_hz) > 4.0));
        let names: Vec<_> = CASES.iter().filter(|case| overruns(case)).map(|c| c.name).collect();
        assert_eq!(names, ["long stall", "overrun unreported"]);
    }
}
