//! Tests of the host side of a radio, against the emulated one. One program has all of these tests,
//! because linking takes the most time.

mod block;
mod block_tx;
mod clock_jumps;
mod common;
mod endings;
mod exercise;
mod fault_mixes;
mod faults;
mod find;
mod hostile;
mod hostile_anything;
mod hostile_rates;
mod hostile_registers;
mod late;
mod links;
mod multi;
mod multi_chain;
mod multi_device;
mod multi_hostile;
mod multi_no_allocation;
mod no_allocation;
mod open;
mod put_off;
mod sensors;
mod stock;
mod stream;
mod tune;
mod tx;
mod tx_bursts;
mod tx_faults;
mod tx_group;
mod tx_loopback;
mod tx_no_allocation;
mod tx_played;
mod tx_recovery;
