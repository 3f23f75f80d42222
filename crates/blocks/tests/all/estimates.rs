//! The costs that block types estimate for themselves, by their parameters.

use millstream_flow::{BlockFacts, Registry};

fn ns_per_item(kind: &str, values: &str) -> f64 {
    let mut registry = Registry::builtin();
    millstream_blocks::register(&mut registry);
    BlockFacts::of(&registry.make(kind, values).unwrap()).ns_per_item
}

fn taps(count: usize) -> String {
    format!("taps = [{}]", vec!["0.1"; count].join(", "))
}

#[test]
fn a_filter_costs_by_its_taps_its_items_and_its_rate() {
    let fir = |count, rest: &str| ns_per_item("fir", &format!("{}\n{rest}", taps(count)));
    let twice = fir(512, "") / fir(256, "");
    assert!((1.9..2.0).contains(&twice), "{twice}");
    assert!(fir(256, "item = \"f32\"") < fir(256, ""));
    let fewer = fir(256, "decimation = 4") / fir(256, "decimation = 8");
    assert!((fewer - 2.0).abs() < 1e-9, "{fewer}");
    let resample = |up| {
        let values = format!("{}\ninterpolation = {up}\ndecimation = 7", taps(240));
        ns_per_item("rational_resampler", &values)
    };
    // More outputs, of fewer taps each.
    assert!((resample(3) - resample(2)).abs() < 1e-9);
    let size = |size| ns_per_item("fft", &format!("size = {size}"));
    assert!(size(16_384) > size(64));
}

/// Ratios that were measured on one machine, to a factor of two.
#[test]
fn what_is_heavy_is_estimated_above_what_is_light() {
    let noise = ns_per_item("noise_source", "");
    let (light, long) = (ns_per_item("multiply_const", "factor = 0.5"), taps(256));
    let filter = ns_per_item("fir", &long);
    assert!((70.0..300.0).contains(&(noise / light)), "{noise} {light}");
    assert!((1.2..5.0).contains(&(noise / filter)), "{noise} {filter}");
    assert!(ns_per_item("noise_source", "distribution = \"uniform\"") < noise / 5.0);
    assert!(ns_per_item("null_sink", "") < light);
}
