//! Lock-free rings, double-mapped sample rings and wait strategies: the home of lock-free
//! protocols, each with a model that `loom` explores.
//!
//! Four layers, each usable alone:
//!
//! - [`cursor`]: ownership of bytes. Positions only, no memory, so that `loom` can explore every
//!   interleaving of the protocol.
//! - [`ring`](mod@sample): one writer and one or more readers of a [double-mapped](map) buffer;
//!   every slice is contiguous, whatever the item size.
//! - [`spsc`]: items moved from one thread to another, a bounded queue over the same cursors;
//!   [`growing`] is a chain of them without a bound.
//! - [`wait`]: a token that a neighbour leaves so that a thread can sleep (or spin) without losing
//!   a wake-up; [`doorbell`] is the same for a thread that sleeps in poll(2), [`beacon`] is a
//!   descriptor for another program's poll(2), and [`governor`] decides when an idle thread spins,
//!   yields or sleeps.
//!
//! Further [`shared`]: positions in a ring whose words the kernel shares; [`recent`]: a log of the
//! last events; [`ChangeFlag`], a flag that data was sent; and [`Lock`], the mutex for everything
//! outside the steady state.
//!
//! ```
//! use millstream_ring::{RingOptions, ring};
//!
//! let (mut writer, mut readers) = ring::<f32>(&RingOptions::items(1000))?;
//! let mut reader = readers.pop().unwrap();
//! writer.slice_mut()[..2].copy_from_slice(&[1.0, 2.0]);
//! writer.produce(2);
//! assert_eq!(reader.slice(), [1.0, 2.0]);
//! reader.consume(2);
//! # Ok::<(), millstream_ring::RingError>(())
//! ```

pub mod beacon;
mod bell;
pub mod cursor;
pub mod doorbell;
pub mod governor;
pub mod growing;
mod lock;
pub mod map;
mod news;
mod pad;
pub mod recent;
pub mod sample;
pub mod shared;
pub mod spsc;
mod sync;
mod token;
pub mod wait;

pub use beacon::Beacon;
pub use doorbell::Doorbell;
pub use lock::{Lock, locks_taken};
pub use map::MapError;
pub use news::ChangeFlag;
pub use pad::Padded;
pub use recent::Recent;
pub use sample::{Item, Reader, RingError, RingOptions, Writer, ring};
pub use wait::{ParseWaitError, Wait, Waiter};
