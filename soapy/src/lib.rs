//! The core of the SoapySDR module: the crate `client` as functions of C.
//!
//! SoapySDR's interface is one of C++ classes, whose layout belongs to the installed headers.
//! `module.cpp` is compiled against them, and calls these functions.
//!
//! - A radio or stream is a number (`HandleTable` of `client`), which never stands for another one later. So a
//!   client that closes a stream while a thread reads from it gets an error, and no crash.
//! - Every function returns 0 or a positive result, or an error below 0. [`ms_last_error`] has the
//!   text of the thread's latest error.
//! - A panic becomes an error (`guard`).
//! - Texts come from C as strings that end with 0, and go to C by a function that takes one at a
//!   time.
//!
//! | file | what it does |
//! | --- | --- |
//! | `guard` | errors and panics |
//! | `text` | texts from and to C |
//! | `radio` | finding, opening; the settings by their names |
//! | `stream`, `samples` | streams; the formats of their samples |
//! | `lend`, `direct` | buffers that clients read or fill in place |

mod direct;
mod guard;
mod lend;
mod radio;
mod samples;
mod stream;
mod text;

pub use guard::ms_last_error;
pub use lend::{ms_acquire, ms_acquire_write, ms_release, ms_release_write};
pub use radio::{
    ms_close, ms_find, ms_get_command_time, ms_get_number, ms_get_numbers, ms_get_range,
    ms_get_sensor, ms_get_texts, ms_get_time, ms_open, ms_set_command_time, ms_set_number,
    ms_set_text, ms_set_time,
};
pub use stream::{
    MsRead, MsStatus, ms_read, ms_status, ms_stream_close, ms_stream_mtu, ms_stream_open,
    ms_stream_start, ms_stream_stop, ms_write,
};
pub use text::{NumberSink, TextSink};
