//! Kernels as texts in WGSL, each made for the lengths at hand.
//!
//! All kernels see the same six bindings: the numbers of the batch, its samples (`x`), constants
//! (`c` as pairs, `r` as single numbers: the same memory), memory between steps (`s`) and results
//! (`y`).

mod channelizer;
mod fft;
mod fir;
mod overlap;
mod spectrum;

use bytemuck::cast_slice;
use millstream_accel::Kernel;
use millstream_dsp::Sample;
use std::f64::consts::TAU;
use std::fmt::Write;

/// Writes a line.
macro_rules! line {
    ($text:expr, $($arg:tt)*) => {{
        // Writing to a string cannot fail.
        let _ = writeln!($text, $($arg)*);
    }};
}
use line;

/// The longest transform in one workgroup.
const TRANSFORM_MAX: usize = 4096;
/// The longest transform that is summed up term by term.
const DIRECT_MAX: usize = 4096;
/// Terms of a sum, after which the next sum begins; a multiple of four.
const TERMS: usize = 32;
/// Workgroups in a row of the grid; below the limit that every device has.
pub const GRID_WIDTH: u32 = 32_768;
/// Zeros behind the samples of a batch, which a kernel may read.
pub const SLACK: usize = 16;

/// What a device allows a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of memory that the invocations of a workgroup share.
    pub workgroup_bytes: usize,
    /// Invocations of a workgroup.
    pub invocations: usize,
}

impl Limits {
    /// Returns the length of the longest transform in one workgroup, a power of two.
    fn transform_max(&self) -> usize {
        let fits = |n: usize| {
            let fft = fft::Fft::new(n, n, 0);
            n * 8 <= self.workgroup_bytes && fft.threads <= self.invocations
        };
        (1..=TRANSFORM_MAX.ilog2()).map(|bits| 1 << bits).filter(|&n| fits(n)).max().unwrap_or(1)
    }
}

/// How a kernel is calculated: steps, one after the other.
pub struct Way {
    /// What it is called in messages and measurements.
    pub name: String,
    /// Taps, twiddle factors and so on.
    pub constants: Vec<f32>,
    /// Samples of memory between the steps of a batch.
    pub scratch: usize,
    /// The steps.
    pub steps: Vec<KernelStep>,
}

/// A kernel's step.
pub struct KernelStep {
    /// The text in WGSL.
    pub source: String,
    /// Workgroups for so many frames.
    pub groups: Groups,
}

/// How many workgroups a step needs: `⌈(frames · per_frame + more) / share⌉`.
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    /// Items for a frame.
    pub per_frame: usize,
    /// Items beside those.
    pub more: usize,
    /// Items that a workgroup has.
    pub share: usize,
    /// Items are counted in units of so many.
    pub unit: usize,
}

impl Groups {
    /// Returns a number of workgroups by the number of items for a frame.
    pub const fn of(per_frame: usize, share: usize) -> Self {
        Self { per_frame, more: 0, share, unit: 1 }
    }

    /// Returns the number of items for so many frames.
    pub const fn items(&self, frames: usize) -> usize {
        (frames * self.per_frame).div_ceil(self.unit) + self.more
    }

    /// Returns the grid for so many frames.
    pub fn grid(&self, frames: usize) -> (u32, u32) {
        let groups = u32::try_from(self.items(frames).div_ceil(self.share)).unwrap_or(u32::MAX);
        if groups <= GRID_WIDTH { (groups, 1) } else { (GRID_WIDTH, groups.div_ceil(GRID_WIDTH)) }
    }

    /// Returns the expression of the number of items.
    fn expression(&self) -> String {
        let Self { per_frame, more, unit, .. } = self;
        format!("((p.frames * {per_frame}u + {}u) / {unit}u + {more}u)", unit - 1)
    }
}

/// Returns the ways to calculate a kernel, of which measuring chooses, or why there is none.
pub fn ways(kernel: &Kernel, frames: usize, limits: Limits) -> Result<Vec<Way>, String> {
    match kernel {
        Kernel::Fir { taps, decimation } => {
            let direct = || fir::program(taps, *decimation);
            let transformed = || overlap::program(taps, *decimation, frames, limits);
            // Within these bounds the device's own times decide; outside, one way is far ahead by
            // its number of multiplications.
            Ok(match taps.len() / decimation {
                0..16 => vec![direct()],
                16..=256 => vec![direct(), transformed()],
                _ => vec![transformed()],
            })
        }
        Kernel::Channelizer { channels, hop, taps } => {
            channelizer::program(*channels, *hop, taps, frames, limits).map(|one| vec![one])
        }
        Kernel::PowerSpectrum { window, average } => {
            spectrum::program(window, *average, frames, limits).map(|one| vec![one])
        }
        _ => Err("it has no text for this kernel".into()),
    }
}

/// Returns what stands before each text.
fn head(real_results: bool) -> String {
    let result = if real_results { "f32" } else { "vec2f" };
    format!(
        "struct Batch {{ frames: u32, samples: u32 }}
@group(0) @binding(0) var<uniform> p: Batch;
@group(0) @binding(1) var<storage, read> x: array<vec2f>;
@group(0) @binding(2) var<storage, read> c: array<vec2f>;
@group(0) @binding(3) var<storage, read> r: array<f32>;
@group(0) @binding(4) var<storage, read_write> s: array<vec2f>;
@group(0) @binding(5) var<storage, read_write> y: array<{result}>;
fn mul(a: vec2f, b: vec2f) -> vec2f {{
  return vec2f(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}}
fn conj(a: vec2f) -> vec2f {{ return vec2f(a.x, -a.y); }}
"
    )
}

/// Returns a text in which each invocation has an item of its own.
fn plain(real_results: bool, threads: usize, items: &str, functions: &str, body: &str) -> String {
    format!(
        "{}{functions}
@compute @workgroup_size({threads})
fn main(@builtin(workgroup_id) wg: vec3u, @builtin(local_invocation_index) li: u32) {{
  let item = (wg.x + wg.y * {GRID_WIDTH}u) * {threads}u + li;
  if (item >= {items}) {{ return; }}
{body}}}
",
        head(real_results)
    )
}

/// Returns the statements that sum up `Σᵢ value(i) · exp(-j 2π i · step / n)` in `sum`.
fn sum_of_turns(n: usize, turns: usize, value: &str) -> String {
    let mut text = String::new();
    line!(text, "  var sum = vec2f();\n  var k = 0u;");
    // Sums of sums: the error grows with the number of terms in each.
    line!(text, "  for (var begin = 0u; begin < {n}u; begin += {TERMS}u) {{");
    line!(text, "    var part = vec2f();");
    line!(text, "    for (var i = begin; i < min(begin + {TERMS}u, {n}u); i++) {{");
    line!(text, "      part += mul({value}, c[{turns}u + k]);");
    line!(text, "      k += step;\n      if (k >= {n}u) {{ k -= {n}u; }}");
    line!(text, "    }}\n    sum += part;\n  }}");
    text
}

/// Adds constants, and returns at which pair they begin.
fn add(constants: &mut Vec<f32>, values: &[f32]) -> usize {
    let begin = constants.len().div_ceil(2);
    constants.resize(begin * 2, 0.0);
    constants.extend_from_slice(values);
    begin
}

/// Adds pairs, and returns at which pair they begin.
fn add_pairs(constants: &mut Vec<f32>, values: &[Sample]) -> usize {
    add(constants, cast_slice(values))
}

/// Adds the factors `exp(-j 2π k / n)`, and returns at which pair they begin.
fn add_turns(constants: &mut Vec<f32>, n: usize) -> usize {
    let turns: Vec<Sample> = (0..n)
        .map(|k| {
            let (sin, cos) = (-TAU * k as f64 / n as f64).sin_cos();
            Sample::new(cos as f32, sin as f32)
        })
        .collect();
    add_pairs(constants, &turns)
}

/// The functions of a transform that reads and writes what `load` and `store` say.
struct Transform {
    /// `fn load(item: u32, turn: u32, n: u32) -> vec2f`
    load: String,
    /// `fn store(item: u32, n: u32, v: vec2f)`
    store: String,
}

/// Returns a text of one transform for each item.
fn transform(fft: &fft::Fft, group: usize, groups: &Groups, hooks: &Transform) -> String {
    let mut body = String::new();
    fft.load(&mut body, "load(item, 0u, n)");
    fft.run(&mut body, &fft.radices, true);
    fft.store(&mut body, &fft.radices, "store(item, n, v);");
    grouped(false, fft, group, groups, &format!("{}{}", hooks.load, hooks.store), &body)
}

/// Returns a text in which the invocations of a workgroup have several transforms.
///
/// `there` says whether the item is one of the batch.
fn grouped(
    real_results: bool,
    fft: &fft::Fft,
    group: usize,
    groups: &Groups,
    functions: &str,
    body: &str,
) -> String {
    let mut text = head(real_results);
    let threads = fft.threads;
    line!(text, "var<workgroup> w: array<vec2f, {}>;", group * fft.room(group));
    text.push_str(functions);
    line!(text, "@compute @workgroup_size({})", threads * group);
    line!(
        text,
        "fn main(@builtin(workgroup_id) wg: vec3u, @builtin(local_invocation_index) li: u32) {{"
    );
    if fft.columns {
        line!(text, "  let lane = li / {group}u; let part = li % {group}u;");
    } else {
        line!(text, "  let lane = li % {threads}u; let part = li / {threads}u;");
    }
    line!(text, "  let item = (wg.x + wg.y * {GRID_WIDTH}u) * {group}u + part;");
    line!(text, "  let there = item < {};", groups.expression());
    line!(text, "  let base = part * {}u;", fft.room(group));
    text.push_str(body);
    text.push_str("}\n");
    text
}
