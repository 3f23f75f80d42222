//! A bank of filters: each residue of the samples' numbers by the number of channels is filtered
//! alone, and a transform takes the results to channels.

use super::fft::Fft;
use super::{
    DIRECT_MAX, Groups, KernelStep, Limits, Transform, Way, add, add_turns, line, plain,
    sum_of_turns, transform,
};
use std::fmt::Write;

/// Invocations of a workgroup without transforms in it.
const THREADS: usize = 128;

/// Makes the kernel, or says why there is none.
pub fn program(
    channels: usize,
    hop: usize,
    taps: &[f32],
    frames: usize,
    limits: Limits,
) -> Result<Way, String> {
    let mut constants = vec![];
    let begin = 2 * add(&mut constants, taps);
    let sums = residues(channels, hop, taps.len(), begin);
    let rows = channels / hop;
    if channels.is_power_of_two() && channels <= limits.transform_max() {
        let turns = add_turns(&mut constants, channels);
        let mut fft = Fft::new(channels, channels, turns);
        let group = fft.group(limits);
        let groups = Groups::of(rows, group);
        let load = format!(
            "{sums}fn load(item: u32, turn: u32, n: u32) -> vec2f {{ return residue(item, n); }}\n"
        );
        let store =
            format!("fn store(item: u32, n: u32, v: vec2f) {{ y[item * {channels}u + n] = v; }}\n");
        let source = transform(&fft, group, &groups, &Transform { load, store });
        let name = format!("transforms of {channels}");
        return Ok(Way { name, constants, scratch: 0, steps: vec![KernelStep { source, groups }] });
    }
    if channels > DIRECT_MAX {
        return Err(format!(
            "{channels} channels, and the limit is {DIRECT_MAX}. Take fewer, or the CPU"
        ));
    }
    let turns = add_turns(&mut constants, channels);
    let groups = Groups::of(rows * channels, THREADS);
    let items = groups.expression();
    let first = format!("  s[item] = residue(item / {channels}u, item % {channels}u);\n");
    let mut second = String::new();
    line!(second, "  let row = item - item % {channels}u;");
    line!(second, "  let step = item % {channels}u;");
    second.push_str(&sum_of_turns(channels, turns, "s[row + i]"));
    line!(second, "  y[item] = sum;");
    let steps = vec![
        KernelStep { source: plain(false, THREADS, &items, &sums, &first), groups },
        KernelStep { source: plain(false, THREADS, &items, "", &second), groups },
    ];
    let name = "sums of all residues".into();
    Ok(Way { name, constants, scratch: frames * rows * channels, steps })
}

/// Returns the function that filters one residue for one set of results.
fn residues(channels: usize, hop: usize, taps: usize, begin: usize) -> String {
    let mut text = String::new();
    line!(text, "fn residue(item: u32, n: u32) -> vec2f {{");
    line!(text, "  let t = item * {hop}u;");
    line!(text, "  let first = (t + {channels}u - n) % {channels}u;");
    line!(text, "  var sum = vec2f();");
    line!(text, "  for (var k = first; k < {taps}u; k += {channels}u) {{");
    line!(text, "    sum += x[t + {}u - k] * r[{begin}u + k];", taps - 1);
    line!(text, "  }}\n  return sum;\n}}");
    text
}
