//! Radios and streams by their numbers.

use std::ffi::c_char;
use std::sync::Arc;

use millstream_client::{ClientArgs, HandleTable, Radio, RxStream, TxStream};

use crate::guard::{Failure, bad, guarded};
use crate::pointers::{duration, put, text};

/// A form of samples.
#[derive(Debug, Clone, Copy)]
pub enum SampleForm {
    Sc16,
    Fc32,
}

/// What a number stands for. One table has all kinds, so a number of one kind is never one of
/// another.
#[derive(Debug)]
pub enum Thing {
    Radio(Radio),
    Rx(RxStream, SampleForm),
    Tx(TxStream, SampleForm),
}

static THINGS: HandleTable<Thing> = HandleTable::new();

impl Thing {
    /// Returns what a number stands for.
    pub fn of(handle: u64) -> Result<Arc<Self>, Failure> {
        THINGS.get(handle).ok_or(Failure::NoHandle(handle))
    }

    /// Gives it a number.
    pub fn insert(self) -> u64 {
        THINGS.insert(self)
    }

    pub fn radio(&self) -> Result<&Radio, Failure> {
        match self {
            Self::Radio(radio) => Ok(radio),
            other => bad(format!("a radio is needed here: this is {}", other.name())),
        }
    }

    /// Returns what it is, as errors name it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Radio(_) => "a radio",
            Self::Rx(..) => "a receive stream",
            Self::Tx(..) => "a transmit stream",
        }
    }
}

/// Opens a radio and stores its number.
///
/// # Safety
/// `args` is null or a text, and `radio` null or a place for the number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_open(args: *const c_char, radio: *mut u64) -> i32 {
    guarded(|| {
        // SAFETY: as the caller says.
        let args: ClientArgs = unsafe { text(args, "args") }?.parse()?;
        let open = || Ok(Thing::Radio(Radio::open(&args)?).insert());
        // SAFETY: as the caller says.
        unsafe { put(radio, "radio", open) }
    })
}

/// Closes a radio with its streams, or a stream. Returns 1 when the radio was told, and 0 when that
/// goes on in the background.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_close(handle: u64, timeout_ns: i64) -> i32 {
    guarded(|| {
        let thing = THINGS.remove(handle).ok_or(Failure::NoHandle(handle))?;
        let timeout = duration(timeout_ns);
        let closed = match &*thing {
            Thing::Radio(radio) => radio.close(timeout),
            Thing::Rx(stream, _) => stream.close(timeout),
            Thing::Tx(stream, _) => stream.close(timeout),
        };
        Ok(i32::from(closed))
    })
}
