//! Datagrams in and out, in batches.

pub mod port;
