//! Power spectra: windows, transforms, sums of powers.
//!
//! A transform too long for a workgroup is calculated in two steps: as `n = below · above` values,
//! first `below` transforms of `above` values, then `above` transforms of `below` values.

use super::fft::Fft;
use super::{
    DIRECT_MAX, Groups, KernelStep, Limits, Transform, Way, add, add_turns, grouped, line, plain,
    sum_of_turns, transform,
};
use std::fmt::Write;

/// Invocations of a workgroup without transforms in it.
const THREADS: usize = 128;
/// Transforms at the same time that keep a device busy.
const BUSY: usize = 1024;

/// Makes the kernel, or says why there is none.
pub fn program(
    window: &[f32],
    average: usize,
    frames: usize,
    limits: Limits,
) -> Result<Way, String> {
    let n = window.len();
    let longest = limits.transform_max();
    let sum: f64 = window.iter().map(|&w| f64::from(w)).sum();
    let scale = (1.0 / (average as f64 * sum * sum)) as f32;
    let mut constants = vec![];
    let lengths = Lengths { n, average, frames, begin: 2 * add(&mut constants, window), scale };
    if n == 1 || !n.is_power_of_two() {
        if n > DIRECT_MAX {
            return Err(format!(
                "{n} samples, and the limit is {DIRECT_MAX}, or {} for a power of two. Take one",
                longest * longest
            ));
        }
        return Ok(lengths.summed(constants));
    }
    if n > longest * longest {
        return Err(format!("{n} samples, and the limit is {}", longest * longest));
    }
    let turns = add_turns(&mut constants, n);
    Ok(if n <= longest {
        lengths.one_step(constants, turns, limits)
    } else {
        lengths.two_steps(constants, turns, limits)
    })
}

/// The numbers of a kernel.
struct Lengths {
    /// The length of a transform.
    n: usize,
    /// Transforms for one result.
    average: usize,
    /// The most results of a batch.
    frames: usize,
    /// Where the window begins among the constants.
    begin: usize,
    /// What a sum of powers is multiplied by.
    scale: f32,
}

impl Lengths {
    /// Returns the expression of a result's place.
    fn place(&self, frame: &str, k: &str) -> String {
        let Self { n, .. } = self;
        format!("y[{frame} * {n}u + ({k} + {}u) % {n}u]", n / 2)
    }

    /// Sums up term by term.
    fn summed(&self, mut constants: Vec<f32>) -> Way {
        let Self { n, average, begin, scale, .. } = self;
        let turns = add_turns(&mut constants, *n);
        let mut body = String::new();
        line!(body, "  let frame = item / {n}u;\n  let step = item % {n}u;");
        line!(body, "  var power = 0.0f;");
        line!(body, "  for (var a = 0u; a < {average}u; a++) {{");
        line!(body, "  let row = (frame * {average}u + a) * {n}u;");
        let value = format!("x[row + i] * r[{begin}u + i]");
        body.push_str(&sum_of_turns(*n, turns, &value));
        line!(body, "    power += dot(sum, sum);\n  }}");
        line!(body, "  {} = power * {scale:?}f;", self.place("frame", "step"));
        let groups = Groups::of(*n, THREADS);
        let source = plain(true, THREADS, &groups.expression(), "", &body);
        let steps = vec![KernelStep { source, groups }];
        Way { name: "sums of all samples".into(), constants, scratch: 0, steps }
    }

    /// Calculates each transform within a workgroup.
    fn one_step(&self, constants: Vec<f32>, turns: usize, limits: Limits) -> Way {
        let Self { n, average, begin, .. } = self;
        let mut fft = Fft::new(*n, *n, turns);
        let group = fft.group(limits);
        let split = BUSY.div_ceil(self.frames).min(*average);
        let each = average.div_ceil(split);
        let mut load = String::new();
        line!(load, "fn load(item: u32, turn: u32, n: u32) -> vec2f {{");
        line!(load, "  let a = (item % {split}u) * {each}u + turn;");
        line!(load, "  if (a >= {average}u) {{ return vec2f(); }}");
        line!(load, "  let i = ((item / {split}u) * {average}u + a) * {n}u + n;");
        line!(load, "  return x[i] * r[{begin}u + n];\n}}");
        let groups = Groups::of(split, group);
        let mut steps = vec![];
        let store = self.store(split, "item", "n");
        let body = self.powers(&mut fft, each, &store);
        steps
            .push(KernelStep { source: grouped(true, &fft, group, &groups, &load, &body), groups });
        self.join(&mut steps, split);
        let scratch = if split > 1 { self.frames * split * n } else { 0 };
        Way { name: format!("transforms of {n}, {split} sums"), constants, scratch, steps }
    }

    /// Calculates each transform in two steps.
    fn two_steps(&self, constants: Vec<f32>, turns: usize, limits: Limits) -> Way {
        let Self { n, average, begin, .. } = self;
        let above = 1 << n.ilog2().div_ceil(2);
        let below = n / above;

        let mut fft = Fft::new(above, *n, turns);
        let group = fft.group(limits);
        fft.columns = true;
        let groups = Groups::of(average * below, group);
        let mut load = String::new();
        line!(load, "fn load(item: u32, turn: u32, n: u32) -> vec2f {{");
        line!(load, "  let i = n * {below}u + item % {below}u;");
        line!(load, "  return x[(item / {below}u) * {n}u + i] * r[{begin}u + i];\n}}");
        let mut store = String::new();
        line!(store, "fn store(item: u32, n: u32, v: vec2f) {{");
        line!(store, "  let column = item % {below}u;");
        line!(store, "  let i = (item / {below}u) * {n}u + n * {below}u + column;");
        line!(store, "  s[i] = mul(v, c[{turns}u + n * column]);\n}}");
        let source = transform(&fft, group, &groups, &Transform { load, store });
        let mut steps = vec![KernelStep { source, groups }];

        let mut fft = Fft::new(below, *n, turns);
        let group = fft.group(limits);
        let groups = Groups::of(above, group);
        let mut load = String::new();
        line!(load, "fn load(item: u32, turn: u32, n: u32) -> vec2f {{");
        line!(load, "  let i = ((item / {above}u) * {average}u + turn) * {n}u;");
        line!(load, "  return s[i + (item % {above}u) * {below}u + n];\n}}");
        let place = self.place("frame", &format!("(item % {above}u + n * {above}u)"));
        let store = format!("let frame = item / {above}u; {place} = v * {:?}f;", self.scale);
        let body = self.powers(&mut fft, *average, &store);
        steps
            .push(KernelStep { source: grouped(true, &fft, group, &groups, &load, &body), groups });
        let name = format!("transforms of {above} and {below}");
        Way { name, constants, scratch: self.frames * average * n, steps }
    }

    /// Returns the text that sums up the powers of so many transforms.
    fn powers(&self, fft: &mut Fft, each: usize, store: &str) -> String {
        let mut body = String::new();
        let held = fft.n / fft.threads;
        fft.declare(&mut body);
        for i in 0..held {
            line!(body, "  var a{i} = 0.0f;");
        }
        line!(body, "  for (var turn = 0u; turn < {each}u; turn++) {{");
        fft.read(&mut body, "load(item, turn, n)");
        fft.run(&mut body, &fft.radices, false);
        fft.change(&mut body, &fft.radices, |i| format!("a{i} += dot(v{i}, v{i});"));
        line!(body, "  }}");
        for i in 0..held {
            line!(body, "  v{i} = vec2f(a{i}, 0.0f);");
        }
        fft.store(&mut body, &fft.radices, &store.replace("= v ", "= v.x "));
        body
    }

    /// Returns the statement that stores a sum of powers `v`.
    fn store(&self, split: usize, item: &str, k: &str) -> String {
        if split > 1 {
            format!("s[{item} * {}u + {k}] = v;", self.n)
        } else {
            format!("{} = v * {:?}f;", self.place(item, k), self.scale)
        }
    }

    /// Adds the step that adds up the sums of a result.
    fn join(&self, steps: &mut Vec<KernelStep>, split: usize) {
        if split == 1 {
            return;
        }
        let Self { n, scale, .. } = self;
        let mut body = String::new();
        line!(body, "  let frame = item / {n}u;\n  let k = item % {n}u;");
        line!(body, "  var power = 0.0f;");
        line!(body, "  for (var i = 0u; i < {split}u; i++) {{");
        line!(body, "    power += s[(frame * {split}u + i) * {n}u + k].x;\n  }}");
        line!(body, "  {} = power * {scale:?}f;", self.place("frame", "k"));
        let groups = Groups::of(*n, THREADS);
        let source = plain(true, THREADS, &groups.expression(), "", &body);
        steps.push(KernelStep { source, groups });
    }
}
