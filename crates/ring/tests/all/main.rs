//! Rings and channels, from outside. One program holds all of these tests: linking is what costs.

#![cfg(not(loom))]

mod aside;
mod doorbell;
mod oracle;
mod pool;
mod shared;
mod spsc;
mod threads;
