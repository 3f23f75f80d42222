//! Kernels as texts in CUDA C, translated from those in WGSL.
//!
//! The texts in WGSL use a small part of that language, which differs from C in declarations only.
//! Bindings become members of a structure and functions its member functions, so that they see
//! each other by name.

use std::fmt::Write;

/// The name of the function that a step starts.
pub const ENTRY: &str = "step";

/// A text in CUDA C.
pub struct CudaText {
    /// The text.
    pub source: String,
    /// Threads of a block.
    pub threads: u32,
}

/// Pairs of numbers, as WGSL has them.
const HEAD: &str = "typedef unsigned int u32;
typedef float f32;
struct __align__(8) vec2f {
  float x, y;
  __device__ vec2f() : x(0), y(0) {}
  __device__ vec2f(float a, float b) : x(a), y(b) {}
  __device__ vec2f& operator+=(vec2f b) { x += b.x; y += b.y; return *this; }
};
__device__ inline vec2f operator+(vec2f a, vec2f b) { return vec2f(a.x + b.x, a.y + b.y); }
__device__ inline vec2f operator-(vec2f a, vec2f b) { return vec2f(a.x - b.x, a.y - b.y); }
__device__ inline vec2f operator*(vec2f a, float b) { return vec2f(a.x * b, a.y * b); }
__device__ inline vec2f operator*(float a, vec2f b) { return b * a; }
__device__ inline float dot(vec2f a, vec2f b) { return a.x * b.x + a.y * b.y; }
";

/// Translates a text of `wgsl`.
pub fn translate(wgsl: &str) -> CudaText {
    let mut threads = 1;
    let mut shared = String::new();
    let mut result = "vec2f";
    let mut functions = String::new();
    for line in wgsl.lines() {
        if let Some(size) = between(line, "@compute @workgroup_size(", ")") {
            threads = size.parse().unwrap_or(1);
        } else if let Some(places) = between(line, "var<workgroup> w: array<vec2f, ", ">;") {
            // Without a constructor, which memory of a block must not have.
            shared = format!(
                "  __shared__ __align__(8) float memory[2 * {places}];\n  \
                 vec2f* w = reinterpret_cast<vec2f*>(memory);\n"
            );
        } else if line.contains("@binding(5)") {
            result = between(line, "array<", ">").unwrap_or(result);
        } else if line.starts_with("fn main(") {
            functions.push_str("__device__ void run(const dim3 wg, const u32 li) const {\n");
            functions.push_str(&shared);
        } else if let Some(head) = line.strip_prefix("fn ") {
            functions.push_str(&function(head));
        } else if !line.starts_with('@') && !line.starts_with("struct ") {
            functions.push_str(&statement(line));
            functions.push('\n');
        }
    }
    let mut source = HEAD.to_owned();
    // Writing to a string cannot fail.
    let _ = write!(
        source,
        "struct Batch {{ u32 frames, samples; }};
struct Step {{
Batch p; const vec2f* x; const vec2f* c; const float* r; vec2f* s; {result}* y;
{functions}}};
extern \"C\" __global__ void __launch_bounds__({threads}) {ENTRY}(const Step step) {{
  step.run(dim3(blockIdx.x, blockIdx.y, blockIdx.z), threadIdx.x);
}}
"
    );
    CudaText { source, threads }
}

/// Returns what stands between two texts.
fn between<'a>(line: &'a str, before: &str, after: &str) -> Option<&'a str> {
    line.split_once(before)?.1.split_once(after).map(|(inside, _)| inside)
}

/// Translates the head of a function, and what follows in its line.
fn function(line: &str) -> String {
    let (head, rest) = line.split_once('{').unwrap_or((line, ""));
    let (name, rest_of_head) = head.split_once('(').unwrap_or((head, ""));
    let (parameters, returned) = rest_of_head.split_once(')').unwrap_or((rest_of_head, ""));
    let returned = returned.trim().trim_start_matches("->").trim();
    let returned = if returned.is_empty() { "void" } else { returned };
    let parameters: Vec<String> = parameters
        .split(", ")
        .filter_map(|one| one.split_once(": "))
        .map(|(name, kind)| format!("{kind} {name}"))
        .collect();
    format!("__device__ {returned} {name}({}) const {{{}\n", parameters.join(", "), statement(rest))
}

/// Translates declarations.
fn statement(line: &str) -> String {
    line.replace("let ", "const auto ")
        .replace("var ", "auto ")
        .replace("workgroupBarrier()", "__syncthreads()")
}
