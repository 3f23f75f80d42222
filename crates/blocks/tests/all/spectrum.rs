//! The spectrum of `graphs/spectrum.toml`, of two tones that are synthesised here.

use millstream_blocks::Sample;
use millstream_dsp::noise::Noise;
use millstream_flow::{GraphFile, Registry};
use std::f64::consts::TAU;
use std::path::Path;

const SIZE: usize = 256;
const ROWS: usize = 10;
const AVERAGE: usize = 4;

/// Returns a tone of full scale at an eighth of the rate, one 40 dB below at minus a quarter, and
/// noise at -80 dB.
fn tones() -> Vec<Sample> {
    let mut noise = Noise::new(3);
    let sample = |n: usize| {
        let tone = |turns: f64| {
            let (sin, cos) = (TAU * turns * n as f64).sin_cos();
            Sample::new(cos as f32, sin as f32)
        };
        tone(0.125) + tone(-0.25) * 0.01 + noise.gaussian_pair() * 1e-4
    };
    // The last, incomplete row is left out.
    (0..ROWS * AVERAGE * SIZE + SIZE / 2).map(sample).collect()
}

#[test]
fn tones_stand_where_they_are_with_their_power() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.cf32"), folder.path().join("rows.f32"));
    std::fs::write(&input, bytemuck::cast_slice(&tones())).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../graphs/spectrum.toml");
    let file = GraphFile::read(&path).unwrap();
    let mut registry = Registry::builtin();
    millstream_blocks::register(&mut registry);
    let set = [
        format!("in={}", input.display()),
        format!("out={}", output.display()),
        format!("size={SIZE}"),
        format!("average={AVERAGE}"),
    ];
    file.build(&registry, &set).unwrap().run(file.plan()).unwrap();
    let rows: Vec<f32> =
        std::fs::read(&output).unwrap().chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
    assert_eq!(rows.len(), ROWS * SIZE);
    let (large, small) = (SIZE / 2 + SIZE / 8, SIZE / 2 - SIZE / 4);
    for row in rows.chunks_exact(SIZE) {
        assert!(row[large].abs() < 0.01, "{} dB", row[large]);
        assert!((row[small] + 40.0).abs() < 0.2, "{} dB", row[small]);
        // The window leaks into three bins on either side of a tone.
        let far = |bin: &usize| bin.abs_diff(large) > 3 && bin.abs_diff(small) > 3;
        let loudest = (0..SIZE).filter(far).map(|bin| row[bin]).fold(f32::MIN, f32::max);
        assert!(loudest < -80.0, "{loudest} dB");
    }
}
