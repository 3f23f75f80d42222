//! Published figures of other projects, as data.

use serde::{Deserialize, Serialize};

/// The file that comes with the program.
const BUILTIN: &str = include_str!("references.toml");

/// A published measurement of another project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The comparable measurement: `timer`, `udp`, `irq`.
    pub measurement: String,
    /// The measured system and its machine.
    pub name: String,
    /// The most frequent latency, microseconds.
    pub mode_us: Option<f64>,
    /// The largest, microseconds.
    pub max_us: f64,
    /// The source, and its method.
    pub source: String,
}

#[derive(Deserialize)]
struct File {
    reference: Vec<Reference>,
}

/// Returns all references that come with the program.
///
/// # Panics
/// Never: a test reads them.
#[must_use]
pub fn builtin() -> Vec<Reference> {
    toml::from_str::<File>(BUILTIN).expect("the references are right").reference
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_references_of_the_program_are_right() {
        let timers: Vec<_> =
            builtin().into_iter().filter(|reference| reference.measurement == "timer").collect();
        let figures: Vec<_> =
            timers.iter().map(|timer| (timer.mode_us.unwrap(), timer.max_us)).collect();
        assert_eq!(figures, [(7.0, 17.0), (19.0, 54.0)]);
    }
}
