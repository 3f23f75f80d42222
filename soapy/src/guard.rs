//! Errors and panics at the border to C.

use std::cell::RefCell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use millstream_client::ClientError;

use crate::text::{TextSink, Texts};

/// Results of SoapySDR's streams (`SoapySDR/Errors.h`).
pub const TIMEOUT: i32 = -1;
pub const STREAM_ERROR: i32 = -2;
pub const CORRUPTION: i32 = -3;
pub const OVERFLOW: i32 = -4;
pub const NOT_SUPPORTED: i32 = -5;
pub const TIME_ERROR: i32 = -6;
pub const UNDERFLOW: i32 = -7;

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Why a function failed.
#[derive(Debug)]
pub enum Failure {
    /// The client crate refused.
    Client(ClientError),
    /// An argument from C is wrong.
    Argument(String),
    /// A number stands for no radio or stream.
    NoHandle,
}

impl<E: Into<ClientError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Client(error.into())
    }
}

impl Failure {
    /// Returns its code among those of SoapySDR.
    fn code(&self) -> i32 {
        match self {
            Self::NoHandle | Self::Client(ClientError::Closed | ClientError::Lost { .. }) => {
                NOT_SUPPORTED
            }
            _ => STREAM_ERROR,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Client(error) => error.to_string(),
            Self::Argument(text) => text.clone(),
            Self::NoHandle => "it was closed: open it again".to_owned(),
        }
    }
}

/// Runs the body of a function that C calls. Its failure or panic becomes a code and a text.
pub fn guarded(body: impl FnOnce() -> Result<i32, Failure>) -> i32 {
    let (code, text) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(result)) => return result,
        Ok(Err(failure)) => (failure.code(), failure.text()),
        Err(panic) => {
            let what = panic.downcast_ref::<&str>().copied();
            let what = what.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            let what = what.unwrap_or("no reason was given");
            (STREAM_ERROR, format!("Millstream has a defect (a panic): {what}"))
        }
    };
    LAST.with(|last| *last.borrow_mut() = text);
    code
}

/// Passes the text of this thread's latest error to `sink`.
///
/// # Safety
/// `sink` takes `out` and a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ms_last_error(out: *mut c_void, sink: TextSink) {
    let text = LAST.with(|last| last.borrow().clone());
    // SAFETY: as the caller says.
    unsafe { Texts::new(out, sink) }.put(&text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_text() {
        assert_eq!(guarded(|| Ok(7)), 7);
        assert_eq!(guarded(|| panic!("no {}", 1)), STREAM_ERROR);
        LAST.with(|last| assert!(last.borrow().ends_with("(a panic): no 1")));
        assert_eq!(guarded(|| Err(Failure::NoHandle)), NOT_SUPPORTED);
        assert_eq!(guarded(|| Err(Failure::Client(ClientError::Closed))), NOT_SUPPORTED);
        LAST.with(|last| assert_eq!(*last.borrow(), "it was closed: open it again"));
    }
}
