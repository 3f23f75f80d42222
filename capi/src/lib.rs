//! The interface for programs in C: `millstream.h`, on the crate `client`.
//!
//! The header describes the functions. Here stands what it does not say:
//!
//! - Radios and streams are numbers of one table, so that one kind is never taken for the other
//!   (`things`).
//! - A panic becomes an error (`guard`).
//! - Null pointers, wrong alignment and buffers that overlap are errors (`pointers`). What remains
//!   is what no library can check: that memory is as large as the caller says.
//!
//! | file | functions |
//! | --- | --- |
//! | `things` | `millstream_open`, `millstream_close` |
//! | `settings` | `millstream_set`, `millstream_get`, `millstream_now` |
//! | `stream` | `millstream_stream`, `…_start`, `…_stop`, `…_read`, `…_write`, `…_next_event` |
//! | `guard` | `millstream_error` |

mod guard;
mod pointers;
mod settings;
mod stream;
mod things;

pub use guard::millstream_error;
pub use pointers::CTime;
pub use settings::{millstream_get, millstream_now, millstream_set};
pub use stream::{
    CEvent, CReceived, millstream_next_event, millstream_read, millstream_start, millstream_stop,
    millstream_stream, millstream_write,
};
pub use things::{millstream_close, millstream_open};
