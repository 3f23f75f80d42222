//! The measured graphs.

use super::kernel::BlockKernel;
use crate::named::named;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// Parallel chains, each with a source of zeros and a sink that drops all items.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct ChainShape {
    /// Chains.
    pub pipes: usize,
    /// Stages of each.
    pub stages: usize,
}

impl ChainShape {
    /// The shapes measured by default.
    pub const ALL: [Self; 7] = [
        Self::chain(1),
        Self::chain(4),
        Self::chain(8),
        Self::chain(12),
        Self::chain(16),
        Self::chain(32),
        Self { pipes: 4, stages: 6 },
    ];

    /// One chain.
    #[must_use]
    pub const fn chain(stages: usize) -> Self {
        Self { pipes: 1, stages }
    }
}

impl fmt::Display for ChainShape {
    /// `8`, or `4x6` for four chains of six.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pipes {
            1 => f.pad(&self.stages.to_string()),
            pipes => f.pad(&format!("{pipes}x{}", self.stages)),
        }
    }
}

impl FromStr for ChainShape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (pipes, stages) = text.split_once('x').unwrap_or(("1", text));
        let number = |text: &str| text.parse().ok().filter(|n| (1..=64).contains(n));
        match (number(pipes), number(stages)) {
            (Some(pipes), Some(stages)) => Ok(Self { pipes, stages }),
            _ => Err(format!(
                "`{text}` is not a shape: write 8 for a chain of 8 blocks, or 4x6 for four chains \
                 of 6; both numbers are at most 64"
            )),
        }
    }
}

/// The type of the items.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ItemKind {
    /// 32-bit floats.
    Float,
    /// Pairs of them.
    Complex,
}

named!(ItemKind, "a type of items; the types are", 2, [(Float, "float"), (Complex, "complex")]);

/// One graph.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct GraphCase {
    /// The kernel of its stages.
    pub kernel: BlockKernel,
    /// Its items.
    pub item: ItemKind,
    /// Its chains and stages.
    pub shape: ChainShape,
}

impl fmt::Display for GraphCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kernel, item) = (self.kernel.name(), self.item.name());
        f.pad(&format!("{kernel} {item} {}", self.shape))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_read_as_it_is_written() {
        for shape in ChainShape::ALL {
            assert_eq!(shape.to_string().parse(), Ok(shape));
        }
        for text in ["", "0", "x", "4x", "65", "1x2x3", "-1"] {
            assert!(
                text.parse::<ChainShape>().unwrap_err().contains("is not a shape: write 8"),
                "{text}"
            );
        }
    }
}
