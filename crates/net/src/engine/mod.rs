//! The engine: who drives frame links for the ports on them.
//!
//! ```text
//!   user ──RxEnd/TxEnd── lane ──┐
//!   user ──RxEnd/TxEnd── lane ──┤ Host: stack + FrameLink ──▶ I/O thread (or an inline user)
//!                               ┘
//! ```
//!
//! The first port opened on an interface opens the link, and starts its I/O thread or joins the
//! one it names; the last one closed puts everything back. The link moves into its thread, so
//! that nobody else can touch it; the registry sees to it that nobody opens it twice (a link has a
//! gate, in which opening and closing take turns; other links do not wait for it).
//!
//! A thread without `cpu=` may run wherever the process may, however its opener is pinned. A user
//! that spins on the same single CPU as its I/O thread takes turns with it, which costs a change
//! of threads each: give the thread another CPU, or have no thread (`io=inline`), which is also
//! the shortest way.

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
mod registration;
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
