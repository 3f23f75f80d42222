//! Fuzzes the file of a scene: any text gives stations within their limits, or an error that says
//! where.
#![no_main]

use millstream_emulator::scene::{Scene, SceneError};

libfuzzer_sys::fuzz_target!(|text: &str| {
    match Scene::parse(text) {
        Ok(scene) => assert!(scene.stations.iter().all(|one| one.frequency_hz >= 0.0)),
        Err(SceneError::Station { number, reason, .. }) => {
            assert!(number > 0 && !reason.is_empty());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
