//! Endpoint ids.

/// A 16-bit stream endpoint id. Software assigns them; 0 means "not yet
/// assigned".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epid(pub u16);

impl Epid {
    /// The destination of management requests, which are routed by their hops.
    pub const NONE: Epid = Epid(0);
}

impl core::fmt::Display for Epid {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl From<u16> for Epid {
    fn from(id: u16) -> Self {
        Epid(id)
    }
}

impl From<Epid> for u16 {
    fn from(epid: Epid) -> Self {
        epid.0
    }
}
