//! Echo ensembles for laboratory tests of receivers.

use crate::named::named;
use millstream_atsc::tx::Echo;
use serde::{Deserialize, Serialize};

/// A published set of paths.
///
/// `BrazilA` to `BrazilE` are the profiles of the comparison of systems in São Paulo (SET, ABERT
/// and Universidade Mackenzie 2000), reused by later test plans; `R21` is the ATSC's ensemble of
/// that name for dynamic multipath (the phase of one path rotates at 5 Hz), as used with
/// recommended practice A/74. Unpublished phases are zero at the channel's centre.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ensemble {
    /// Outdoor antenna: weak echoes.
    BrazilA,
    /// Outdoor antenna: echoes to 12.7 µs.
    BrazilB,
    /// Indoor antenna: six paths of about the same strength within 2.8 µs.
    BrazilC,
    /// Indoor antenna: the strongest of six paths comes 5.7 µs late.
    BrazilD,
    /// Three transmitters on one frequency.
    BrazilE,
    /// Static echoes before and after the signal, and one with a rotating phase.
    R21,
}

named!(
    Ensemble,
    6,
    [
        (BrazilA, "Brazil A"),
        (BrazilB, "Brazil B"),
        (BrazilC, "Brazil C"),
        (BrazilD, "Brazil D"),
        (BrazilE, "Brazil E"),
        (R21, "ATSC R2.1"),
    ]
);

impl Ensemble {
    /// Every path except the one at delay zero, which is the signal: microseconds, dB over the
    /// signal, degrees, Hz.
    fn paths(self) -> &'static [[f64; 4]] {
        match self {
            Self::BrazilA => &[
                [0.15, -13.8, 0.0, 0.0],
                [2.22, -16.2, 0.0, 0.0],
                [3.05, -14.9, 0.0, 0.0],
                [5.86, -13.6, 0.0, 0.0],
                [5.93, -16.4, 0.0, 0.0],
            ],
            Self::BrazilB => &[
                [0.3, -12.0, 0.0, 0.0],
                [3.5, -4.0, 0.0, 0.0],
                [4.4, -7.0, 0.0, 0.0],
                [9.5, -15.0, 0.0, 0.0],
                [12.7, -22.0, 0.0, 0.0],
            ],
            // The first path is 2.8 dB below the strongest.
            Self::BrazilC => &[
                [0.089, 2.8, 0.0, 0.0],
                [0.419, -1.0, 0.0, 0.0],
                [1.506, 2.7, 0.0, 0.0],
                [2.322, 0.3, 0.0, 0.0],
                [2.799, 1.5, 0.0, 0.0],
            ],
            // Here 0.1 dB.
            Self::BrazilD => &[
                [0.48, -3.8, 0.0, 0.0],
                [2.07, -2.5, 0.0, 0.0],
                [2.9, -1.2, 0.0, 0.0],
                [5.71, 0.1, 0.0, 0.0],
                [5.78, -2.7, 0.0, 0.0],
            ],
            Self::BrazilE => &[[1.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]],
            Self::R21 => &[
                [-1.8, -20.0, 125.0, 0.0],
                [0.15, -20.0, 80.0, 0.0],
                [1.8, -10.0, 45.0, 0.0],
                [5.7, -14.0, 0.0, 5.0],
                [35.0, -18.0, 90.0, 0.0],
            ],
        }
    }

    /// Its echoes.
    #[must_use]
    pub fn echoes(self) -> Vec<Echo> {
        let echo = |[delay_us, level_db, phase_deg, doppler_hz]: &[f64; 4]| Echo {
            delay_s: delay_us * 1e-6,
            level_db: *level_db,
            phase_deg: *phase_deg,
            doppler_hz: *doppler_hz,
        };
        self.paths().iter().map(echo).collect()
    }
}
