//! The test signals for receivers.

use super::ensemble::Ensemble;
use crate::named::named;
use millstream_atsc::tx::{Echo, Impairments};
use serde::{Deserialize, Serialize};
use std::fmt;

/// C/N of the signals whose other parameters vary, dB.
pub const BACKGROUND_CN_DB: f64 = 30.0;

/// The varied parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// White noise.
    Noise,
    /// One echo: delay and level.
    Echo,
    /// One echo with a rotating phase: rate and level.
    Doppler,
    /// Published sets of echoes.
    Ensemble,
    /// Carrier offset.
    Carrier,
    /// Sample clock error.
    Clock,
}

named!(
    Axis,
    "an axis; the axes are",
    6,
    [
        (Noise, "noise"),
        (Echo, "echo"),
        (Doppler, "doppler"),
        (Ensemble, "ensemble"),
        (Carrier, "carrier"),
        (Clock, "clock"),
    ]
);

/// One signal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// White noise.
    Noise {
        /// C/N in the channel's 6 MHz.
        cn_db: f64,
    },
    /// One echo.
    Echo {
        /// Its delay; negative for an echo that precedes the signal.
        delay_us: f64,
        /// Its power over the signal's.
        level_db: f64,
    },
    /// One echo, `DOPPLER_DELAY_US` late, with a rotating phase.
    Doppler {
        /// Rate of the rotation.
        doppler_hz: f64,
        /// Its power over the signal's.
        level_db: f64,
    },
    /// A published set of echoes.
    Ensemble {
        /// The ensemble.
        name: Ensemble,
    },
    /// A carrier with an offset.
    Carrier {
        /// The offset.
        offset_hz: f64,
    },
    /// A sample clock with an error.
    Clock {
        /// The error, positive when the sender's clock is faster.
        ppm: f64,
    },
}

impl Point {
    /// White noise.
    #[must_use]
    pub fn noise(cn_db: f64) -> Self {
        Self::Noise { cn_db }
    }

    /// The varied parameter.
    #[must_use]
    pub fn axis(&self) -> Axis {
        match self {
            Self::Noise { .. } => Axis::Noise,
            Self::Echo { .. } => Axis::Echo,
            Self::Doppler { .. } => Axis::Doppler,
            Self::Ensemble { .. } => Axis::Ensemble,
            Self::Carrier { .. } => Axis::Carrier,
            Self::Clock { .. } => Axis::Clock,
        }
    }

    /// The impairments: this one, and noise at [`BACKGROUND_CN_DB`] unless noise is the axis.
    #[must_use]
    pub fn impairments(&self) -> Impairments {
        let base = Impairments { cn_db: Some(BACKGROUND_CN_DB), ..Impairments::default() };
        match *self {
            Self::Noise { cn_db } => Impairments { cn_db: Some(cn_db), ..base },
            Self::Echo { delay_us, level_db } => {
                Impairments { echoes: vec![echo(delay_us, level_db, 0.0)], ..base }
            }
            Self::Doppler { doppler_hz, level_db } => {
                let echoes = vec![echo(DOPPLER_DELAY_US, level_db, doppler_hz)];
                Impairments { echoes, ..base }
            }
            Self::Ensemble { name } => Impairments { echoes: name.echoes(), ..base },
            Self::Carrier { offset_hz } => Impairments { offset_hz, ..base },
            Self::Clock { ppm } => Impairments { clock_ppm: ppm, ..base },
        }
    }
}

fn echo(delay_us: f64, level_db: f64, doppler_hz: f64) -> Echo {
    // Neither in phase nor in opposition.
    Echo { delay_s: delay_us * 1e-6, level_db, phase_deg: 72.0, doppler_hz }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&match self {
            Self::Noise { cn_db } => format!("C/N {cn_db} dB"),
            Self::Echo { delay_us, level_db } => format!("echo {delay_us:+} µs {level_db} dB"),
            Self::Doppler { doppler_hz, level_db } => {
                format!("echo {level_db} dB, {doppler_hz} Hz")
            }
            Self::Ensemble { name } => name.name().to_owned(),
            Self::Carrier { offset_hz } => format!("carrier {:+} kHz", offset_hz / 1e3),
            Self::Clock { ppm } => format!("clock {ppm:+} ppm"),
        })
    }
}

/// Echo delays in microseconds, from before our equaliser's span (-11.9 to 41.6 µs) to its end, and
/// levels in dB.
pub const DELAYS_US: [f64; 16] =
    [-20.0, -11.5, -8.0, -5.6, -2.8, -1.0, 0.1, 0.3, 1.0, 2.8, 5.6, 10.0, 18.6, 30.0, 40.0, 45.0];
/// See [`DELAYS_US`].
pub const LEVELS_DB: [f64; 6] = [-20.0, -15.0, -10.0, -6.0, -3.0, -1.0];

/// Echoes with a rotating phase: microseconds, Hz, and dB.
pub const DOPPLER_DELAY_US: f64 = 2.8;
/// See [`DOPPLER_DELAY_US`].
pub const DOPPLERS_HZ: [f64; 6] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0];
/// See [`DOPPLER_DELAY_US`].
pub const DOPPLER_LEVELS_DB: [f64; 4] = [-15.0, -10.0, -6.0, -3.0];

/// The signals of an axis.
#[must_use]
pub fn grid(axis: Axis) -> Vec<Point> {
    match axis {
        Axis::Noise => {
            // Steps of a quarter of a decibel around the threshold of a good receiver, one decibel
            // beyond.
            let near = (0..=10).map(|n| 14.0 + 0.25 * f64::from(n));
            near.chain((17..=22).map(f64::from)).map(Point::noise).collect()
        }
        Axis::Echo => DELAYS_US
            .into_iter()
            .flat_map(|delay_us| LEVELS_DB.map(|level_db| Point::Echo { delay_us, level_db }))
            .collect(),
        Axis::Doppler => {
            let levels = |doppler_hz| {
                DOPPLER_LEVELS_DB.map(|level_db| Point::Doppler { doppler_hz, level_db })
            };
            DOPPLERS_HZ.into_iter().flat_map(levels).collect()
        }
        Axis::Ensemble => Ensemble::ALL.map(|name| Point::Ensemble { name }).to_vec(),
        Axis::Carrier => {
            [-50e3, -20e3, 0.0, 20e3, 50e3].map(|offset_hz| Point::Carrier { offset_hz }).to_vec()
        }
        Axis::Clock => [-100.0, -50.0, -20.0, -10.0, -5.0, 5.0, 10.0, 20.0, 50.0, 100.0]
            .map(|ppm| Point::Clock { ppm })
            .to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_axis_has_points_of_its_own_and_a_name() {
        for axis in Axis::ALL {
            assert_eq!(axis.name().parse(), Ok(axis));
            let points = grid(axis);
            assert!(points.len() >= 5 && points.iter().all(|point| point.axis() == axis));
        }
        assert!(
            "rain".parse::<Axis>().unwrap_err().contains("the axes are: noise, echo, doppler, ens")
        );
        let point = Point::Echo { delay_us: -1.0, level_db: -3.0 };
        assert_eq!(point.to_string(), "echo -1 µs -3 dB");
        let text = serde_json::to_string(&point).unwrap();
        assert_eq!(serde_json::from_str::<Point>(&text).unwrap(), point);
    }
}
