//! The engine: it drives frame links for the ports on them.
//!
//! ```text
//!   user ──RxEnd/TxEnd── lane ──┐
//!   user ──RxEnd/TxEnd── lane ──┤ Host: stack + FrameLink ──▶ I/O thread (or an inline user)
//!                               ┘
//! ```
//!
//! The first port opened on an interface opens the link, and starts its I/O thread or joins the one
//! it names; closing the last port restores everything. The link moves into its thread, so no other
//! thread can touch it. The registry makes sure that it is open only once: each link has a gate in
//! which opening and closing exclude each other, while other links do not wait.
//!
//! A thread without `cpu=` may run wherever the process may, even if the thread that opened it is
//! pinned. A user that spins on the same single CPU as its I/O thread alternates with it, which
//! costs a context switch each time: give the thread another CPU, or use no thread (`io=inline`),
//! which is also the shortest way.

mod advice;
mod clock;
mod commands;
mod configure;
mod deliver;
mod host;
mod inline;
mod inventory;
mod kernel;
mod neighbours;
mod open_lock;
mod pieces;
mod place;
mod registry;
mod send;
mod served;
mod worker;

pub use advice::take_advice;
pub use inventory::{Inventory, LinkReport, PortReport, ThreadReport, WaitReport, inventory};
pub(crate) use registry::with_our_options;
pub use registry::{attach, open};
pub use served::AttachedLink;
pub use worker::set_probe;
