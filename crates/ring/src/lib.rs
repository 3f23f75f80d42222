//! Lock-free rings, double-mapped sample rings and wait strategies.
