//! What the antennas hear: stations at absolute frequencies, from a file.
//!
//! A station at frequency f appears f minus the radio's oscillator away from the middle of the
//! samples, so tuning has an effect.

mod file;
mod receiver;
mod signal;

pub use file::{SceneError, Station, StationKind};
pub(crate) use receiver::SceneReceiver;

use crate::Error;
use crate::antenna::open_regular;
use millstream_wire::regs::front_end::RxAntenna;
use std::path::Path;

/// The scene of a device for which no other one is named.
pub const DEFAULT_SCENE: &str = include_str!("default.toml");

/// Stations of one radio's surroundings.
#[derive(Debug, Clone, PartialEq)]
pub struct Scene {
    /// The stations, in the order of the file.
    pub stations: Vec<Station>,
}

impl Default for Scene {
    fn default() -> Self {
        Scene::parse(DEFAULT_SCENE).expect("a test parses the default scene")
    }
}

impl Scene {
    /// Reads a scene from a file; paths in it are relative to the folder of the file.
    ///
    /// # Errors
    /// [`Error::Scene`] when the file cannot be read or understood.
    pub fn load(path: &Path) -> Result<Scene, Error> {
        let fail = |reason: String| Error::Scene { path: path.to_owned(), reason };
        let text = open_regular(path).and_then(std::io::read_to_string);
        let text = text.map_err(|error| fail(error.to_string()))?;
        let mut scene = Scene::parse(&text).map_err(|error| fail(error.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        scene.stations.iter_mut().for_each(|station| station.kind.place_in(folder));
        Ok(scene)
    }

    /// Parses a scene; it opens no file.
    ///
    /// # Errors
    /// [`SceneError`], with the station and the key at fault, and the keys that there are.
    pub fn parse(text: &str) -> Result<Scene, SceneError> {
        file::parse(text)
    }

    /// Returns the power, in milliwatts, of the stations within `bandwidth_hz` around `lo_hz`.
    pub(crate) fn power_mw(&self, lo_hz: f64, bandwidth_hz: f64) -> f64 {
        let near = |station: &&Station| (station.frequency_hz - lo_hz).abs() <= bandwidth_hz / 2.0;
        self.stations.iter().filter(near).map(|one| 10f64.powf(one.level_dbm / 10.0)).sum()
    }
}

impl Station {
    /// Returns the loss on the way to a receiver that is joined to `antenna`, dB.
    pub(crate) fn loss_db(&self, antenna: Option<RxAntenna>) -> f64 {
        let heard = antenna.is_some_and(|antenna| self.antenna.is_none_or(|own| own == antenna));
        if heard { 0.0 } else { crate::front_end::ISOLATION_DB }
    }
}
