//! A client and an emulated radio in this process.

mod careless;
mod common;
mod draw;
mod gaps;
mod no_allocation;
mod rtl_tcp;
mod settings;
mod timed;
mod transmit;
mod transmit_lengths;
