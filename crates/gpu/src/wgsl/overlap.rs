//! A long filter by transforms (overlap-save).
//!
//! A filter that fits into one transform is calculated in one step, within the memory of a
//! workgroup. A longer one is cut into parts: the first step transforms the samples, the second
//! sums over the parts and transforms back.

use super::fft::Fft;
use super::{
    Groups, KernelStep, Limits, Transform, Way, add_pairs, add_turns, grouped, line, transform,
};
use millstream_dsp::{Complex, Sample};
use rustfft::FftPlanner;
use std::fmt::Write;

/// Makes the kernel.
pub fn program(taps: &[Sample], decimation: usize, frames: usize, limits: Limits) -> Way {
    let longest = limits.transform_max();
    if 2 * (taps.len() - 1) <= longest {
        one_step(taps, decimation, longest, limits)
    } else {
        in_parts(taps, decimation, longest, frames, limits)
    }
}

/// Returns the transform of some taps, divided by its length.
fn response(taps: &[Sample], n: usize) -> Vec<Sample> {
    let wide = |tap: &Sample| Complex::new(f64::from(tap.re), f64::from(tap.im)) / n as f64;
    let mut values: Vec<Complex<f64>> = taps.iter().map(wide).collect();
    values.resize(n, Complex::default());
    FftPlanner::new().plan_fft_forward(n).process(&mut values);
    values.iter().map(|v| Sample::new(v.re as f32, v.im as f32)).collect()
}

/// Returns the function that stores a result with the number `o`, before decimation.
fn store(skipped: usize, useful: usize, decimation: usize) -> String {
    let mut text = String::new();
    line!(text, "fn store(item: u32, n: u32, v: vec2f) {{");
    line!(text, "  if (n < {skipped}u) {{ return; }}");
    line!(text, "  let o = item * {useful}u + n - {skipped}u;");
    line!(text, "  let k = o / {decimation}u;");
    line!(text, "  if (o == k * {decimation}u && k < p.frames) {{ y[k] = conj(v); }}\n}}");
    text
}

/// Makes the kernel whose filter fits into one transform.
fn one_step(taps: &[Sample], decimation: usize, longest: usize, limits: Limits) -> Way {
    let skipped = taps.len() - 1;
    // The work for one result: transforms, and reading and writing about as much as four stages.
    let work = |n: usize| (n * (2 * n.ilog2() as usize + 12)) as f64 / (n - skipped) as f64;
    let n = (1..=longest.ilog2())
        .map(|bits| 1usize << bits)
        .filter(|&n| n >= (2 * skipped).max(64.min(longest)))
        .min_by(|&a, &b| work(a).total_cmp(&work(b)))
        .unwrap_or(longest);
    let useful = n - skipped;

    let mut constants = vec![];
    let turns = add_turns(&mut constants, n);
    let filter = add_pairs(&mut constants, &response(taps, n));
    let mut fft = Fft::new(n, n, turns);
    let group = fft.group(limits);

    let mut functions = store(skipped, useful, decimation);
    line!(functions, "fn load(item: u32, n: u32) -> vec2f {{");
    line!(functions, "  let i = item * {useful}u + n;");
    line!(functions, "  if (i < p.samples) {{ return x[i]; }}\n  return vec2f();\n}}");
    let mut body = String::new();
    fft.load(&mut body, "load(item, n)");
    fft.run(&mut body, &fft.radices, true);
    fft.change(&mut body, &fft.radices, |i| format!("v{i} = conj(mul(v{i}, c[{filter}u + n]));"));
    // Back in the opposite order: the first stage takes the values where they are.
    let back: Vec<usize> = fft.radices.iter().rev().copied().collect();
    fft.run(&mut body, &back, false);
    fft.store(&mut body, &back, "store(item, n, v);");

    let groups = Groups { per_frame: decimation, more: 0, share: group, unit: useful };
    let source = grouped(false, &fft, group, &groups, &functions, &body);
    let steps = vec![KernelStep { source, groups }];
    Way { name: format!("transforms of {n}"), constants, scratch: 0, steps }
}

/// Makes the kernel whose filter is cut into parts, each of half a transform.
fn in_parts(taps: &[Sample], decimation: usize, n: usize, frames: usize, limits: Limits) -> Way {
    let useful = n / 2;
    let parts = taps.len().div_ceil(useful);
    let mut constants = vec![];
    let turns = add_turns(&mut constants, n);
    let responses: Vec<Sample> = taps.chunks(useful).flat_map(|part| response(part, n)).collect();
    let filter = add_pairs(&mut constants, &responses);
    let mut fft = Fft::new(n, n, turns);
    let group = fft.group(limits);
    let back = Groups { per_frame: decimation, more: 0, share: group, unit: useful };
    let forward = Groups { more: parts - 1, ..back };

    let mut load = String::new();
    line!(load, "fn load(item: u32, turn: u32, n: u32) -> vec2f {{");
    line!(load, "  let i = item * {useful}u + n + {}u;", taps.len() - 1);
    line!(load, "  if (i < {0}u || i - {0}u >= p.samples) {{ return vec2f(); }}", parts * useful);
    line!(load, "  return x[i - {}u];\n}}", parts * useful);
    let store_block =
        format!("fn store(item: u32, n: u32, v: vec2f) {{ s[item * {n}u + n] = v; }}\n");
    let there = Transform { load, store: store_block };

    let mut load = String::new();
    line!(load, "fn load(item: u32, turn: u32, n: u32) -> vec2f {{");
    line!(load, "  var sum = vec2f();");
    line!(load, "  for (var k = 0u; k < {parts}u; k++) {{");
    line!(load, "    let block = s[(item + {}u - k) * {n}u + n];", parts - 1);
    line!(load, "    sum += mul(block, c[{filter}u + k * {n}u + n]);");
    line!(load, "  }}\n  return conj(sum);\n}}");
    let again = Transform { load, store: store(useful, useful, decimation) };

    Way {
        name: format!("{parts} parts, transforms of {n}"),
        constants,
        scratch: forward.items(frames) * n,
        steps: vec![
            KernelStep { source: transform(&fft, group, &forward, &there), groups: forward },
            KernelStep { source: transform(&fft, group, &back, &again), groups: back },
        ],
    }
}
