//! The set of registered UDP ports: one bit each.

#[derive(Debug)]
pub(super) struct Ports(Box<[u64]>);

impl Ports {
    pub(super) fn new() -> Ports {
        Ports(vec![0; 65536 / 64].into_boxed_slice())
    }

    fn bit(port: u16) -> (usize, u64) {
        (usize::from(port) / 64, 1 << (port % 64))
    }

    /// Opens a port. Returns false if it was open already.
    pub(super) fn open(&mut self, port: u16) -> bool {
        let (word, bit) = Self::bit(port);
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    pub(super) fn close(&mut self, port: u16) {
        let (word, bit) = Self::bit(port);
        self.0[word] &= !bit;
    }

    #[inline]
    pub(super) fn has(&self, port: u16) -> bool {
        let (word, bit) = Self::bit(port);
        self.0[word] & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_registered_once_and_alone() {
        let mut ports = Ports::new();
        assert!(ports.open(0) && ports.open(65535) && !ports.open(65535));
        assert!((1..65535).all(|port| !ports.has(port)));
        ports.close(0);
        assert!(!ports.has(0) && ports.has(65535));
    }
}
