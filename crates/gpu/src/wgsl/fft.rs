//! A transform in the memory of a workgroup: Stockham's algorithm, of radices 8, 4 and 2.
//!
//! Each invocation holds some values in variables `v0`, `v1`, …. Between two stages they cross
//! through the workgroup's memory `w`, from `base` on.

use super::{Limits, line};
use std::fmt::Write;

/// A transform of a power of two.
#[derive(Clone, Debug)]
pub struct Fft {
    /// Its length.
    pub n: usize,
    /// The stages, first to last.
    pub radices: Vec<usize>,
    /// Invocations for one transform.
    pub threads: usize,
    /// The length of the table of twiddle factors: a multiple of the transform's.
    table: usize,
    /// Where the table begins.
    turns: usize,
    /// Whether neighbouring invocations have neighbouring transforms, and not neighbouring values.
    pub columns: bool,
    /// Whether a place is left free behind every eight, so that no two invocations wait for the
    /// same bank.
    spread: bool,
}

/// Invocations of a workgroup, where a transform needs fewer.
const WORKGROUP: usize = 128;
/// The most invocations for one transform.
const THREADS_MAX: usize = 256;

impl Fft {
    /// Makes a transform of `n` values, by a table of so many factors from `turns` on.
    pub fn new(n: usize, table: usize, turns: usize) -> Self {
        let bits = n.ilog2() as usize;
        let mut radices = match bits % 3 {
            0 => vec![],
            1 if bits == 1 => vec![2],
            1 => vec![4, 4],
            _ => vec![4],
        };
        let taken: usize = radices.iter().map(|one: &usize| one.ilog2() as usize).sum();
        radices.extend(std::iter::repeat_n(8, (bits - taken) / 3));
        let held = radices.iter().copied().max().unwrap_or(1).max(n / THREADS_MAX);
        Self { n, radices, threads: n / held, table, turns, columns: false, spread: false }
    }

    /// Chooses how many transforms a workgroup has.
    pub fn group(&mut self, limits: Limits) -> usize {
        let wanted = (WORKGROUP / self.threads).max(1);
        let fits = (limits.workgroup_bytes / (self.n * 8)).max(1);
        let group = wanted.min(fits).min((limits.invocations / self.threads).max(1));
        self.spread = group * (self.n + self.n / 8) * 8 <= limits.workgroup_bytes;
        group
    }

    /// Returns the places in a workgroup's memory for one of its transforms.
    pub const fn room(&self, _group: usize) -> usize {
        if self.spread { self.n + self.n / 8 } else { self.n }
    }

    /// Values that an invocation holds.
    const fn held(&self) -> usize {
        self.n / self.threads
    }

    /// Returns the number of each value of an invocation before the first stage, or after the last,
    /// less the number of the invocation.
    fn places(&self, radix: usize) -> impl Iterator<Item = usize> {
        let (threads, stride) = (self.threads, self.n / radix);
        (0..self.held()).map(move |i| (i / radix) * threads + (i % radix) * stride)
    }

    /// Writes the declarations of the values.
    pub fn declare(&self, text: &mut String) {
        for i in 0..self.held() {
            line!(text, "  var v{i} = vec2f();");
        }
    }

    /// Writes that each value is read: `what`, by the number `n`, where `there` is true.
    pub fn read(&self, text: &mut String, what: &str) {
        for (i, place) in self.places(self.radices[0]).enumerate() {
            line!(text, "  v{i} = vec2f();");
            line!(text, "  if (there) {{ let n = lane + {place}u; v{i} = {what}; }}");
        }
    }

    /// Writes both.
    pub fn load(&self, text: &mut String, what: &str) {
        self.declare(text);
        self.read(text, what);
    }

    /// Writes what becomes of each value `v` with the number `n` after the stages `radices`.
    pub fn store(&self, text: &mut String, radices: &[usize], what: &str) {
        let last = radices.last().copied().unwrap_or(1);
        for (i, place) in self.places(last).enumerate() {
            line!(text, "  if (there) {{ let n = lane + {place}u; let v = v{i}; {what} }}");
        }
    }

    /// Writes a change of each value `v{i}` with the number `n` after the stages `radices`.
    pub fn change(&self, text: &mut String, radices: &[usize], what: impl Fn(usize) -> String) {
        let last = radices.last().copied().unwrap_or(1);
        for (i, place) in self.places(last).enumerate() {
            line!(text, "  {{ let n = lane + {place}u; {} }}", what(i));
        }
    }

    /// The expression of a place in the workgroup's memory.
    fn place(&self, index: &str) -> String {
        if self.spread {
            format!("w[base + {index} + ({index} >> 3u)]")
        } else {
            format!("w[base + {index}]")
        }
    }

    /// Writes the stages. `fresh`: nothing has used the workgroup's memory before.
    pub fn run(&self, text: &mut String, radices: &[usize], fresh: bool) {
        let mut done = 1;
        for (stage, &radix) in radices.iter().enumerate() {
            let (stride, last) = (self.n / radix, stage + 1 == radices.len());
            for q in 0..self.held() / radix {
                let first = q * radix;
                line!(text, "  {{ let j = lane + {}u;", q * self.threads);
                if stage > 0 {
                    for k in 0..radix {
                        line!(text, "  let i{k} = j + {}u;", k * stride);
                        line!(text, "  v{} = {};", first + k, self.place(&format!("i{k}")));
                    }
                    let step = self.table / (done * radix);
                    line!(text, "  let m = (j & {}u) * {step}u;", done - 1);
                    for k in 1..radix {
                        let v = first + k;
                        line!(text, "  v{v} = mul(v{v}, c[{}u + m * {k}u]);", self.turns);
                    }
                }
                butterfly(text, first, radix);
                line!(text, "  }}");
            }
            if last {
                break;
            }
            if stage > 0 || !fresh {
                line!(text, "  workgroupBarrier();");
            }
            for q in 0..self.held() / radix {
                line!(text, "  {{ let j = lane + {}u;", q * self.threads);
                line!(text, "  let o = (j - (j & {0}u)) * {radix}u + (j & {0}u);", done - 1);
                for k in 0..radix {
                    line!(text, "  let o{k} = o + {}u;", k * done);
                    line!(text, "  {} = v{};", self.place(&format!("o{k}")), q * radix + k);
                }
                line!(text, "  }}");
            }
            line!(text, "  workgroupBarrier();");
            done *= radix;
        }
    }
}

/// Writes the transform of `radix` values from `v{first}` on.
fn butterfly(text: &mut String, first: usize, radix: usize) {
    let v = |k: usize| format!("v{}", first + k);
    match radix {
        2 => {
            line!(text, "  let a = {0}; {0} = a + {1}; {1} = a - {1};", v(0), v(1));
        }
        4 => four(text, [v(0), v(1), v(2), v(3)], "a"),
        8 => {
            four(text, [v(0), v(2), v(4), v(6)], "a");
            four(text, [v(1), v(3), v(5), v(7)], "b");
            let half = std::f32::consts::FRAC_1_SQRT_2;
            line!(text, "  let h1 = vec2f({0}.x + {0}.y, {0}.y - {0}.x) * {half:?}f;", v(3));
            line!(text, "  let h2 = vec2f({0}.y, -{0}.x);", v(5));
            line!(text, "  let h3 = vec2f({0}.y - {0}.x, -{0}.x - {0}.y) * {half:?}f;", v(7));
            line!(text, "  let h0 = {};", v(1));
            for k in 0..4 {
                line!(text, "  let e{k} = {};", v(2 * k));
            }
            for k in 0..4 {
                line!(text, "  {} = e{k} + h{k}; {} = e{k} - h{k};", v(k), v(k + 4));
            }
        }
        _ => unreachable!("radices are 2, 4 and 8"),
    }
}

/// Writes the transform of four values.
fn four(text: &mut String, [v0, v1, v2, v3]: [String; 4], t: &str) {
    line!(text, "  let {t}0 = {v0} + {v2}; let {t}1 = {v0} - {v2};");
    line!(text, "  let {t}2 = {v1} + {v3}; let {t}3 = vec2f({v1}.y - {v3}.y, {v3}.x - {v1}.x);");
    line!(text, "  {v0} = {t}0 + {t}2; {v1} = {t}1 + {t}3;");
    line!(text, "  {v2} = {t}0 - {t}2; {v3} = {t}1 - {t}3;");
}
