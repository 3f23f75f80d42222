//! Numbers of drawn tests.

/// A small generator, so that a failure can be repeated.
pub struct Draw(pub u64);

impl Draw {
    /// Returns a number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}
