//! Errors and panics at the border to C.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use millstream_client::ClientError;

/// Results below 0, as in the header.
pub const ERROR: i32 = -1;
pub const GAP: i32 = -2;
pub const LATE: i32 = -3;
pub const CLOSED: i32 = -4;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Why a function failed.
#[derive(Debug)]
pub enum Failure {
    /// The client crate refused.
    Client(ClientError),
    /// An argument from C is wrong.
    Argument(String),
    /// A number stands for nothing that is open.
    NoHandle(u64),
}

impl<E: Into<ClientError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Client(error.into())
    }
}

/// Returns the failure of an argument.
pub fn bad<T>(text: impl Into<String>) -> Result<T, Failure> {
    Err(Failure::Argument(text.into()))
}

impl Failure {
    fn code(&self) -> i32 {
        match self {
            Self::NoHandle(_) | Self::Client(ClientError::Closed) => CLOSED,
            _ => ERROR,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Client(error) => error.to_string(),
            Self::Argument(text) => text.clone(),
            Self::NoHandle(0) => "the handle is 0, which stands for nothing: open it".to_owned(),
            Self::NoHandle(handle) => {
                format!("the handle {handle:#x} stands for nothing that is open: open it again")
            }
        }
    }
}

/// Runs the body of a function that C calls. Its failure or panic becomes a code and a text.
pub fn guarded<R: From<i32>>(body: impl FnOnce() -> Result<R, Failure>) -> R {
    let (code, text) = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(result)) => return result,
        Ok(Err(failure)) => (failure.code(), failure.text()),
        Err(panic) => {
            let what = panic.downcast_ref::<&str>().copied();
            let what = what.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
            let what = what.unwrap_or("no reason was given");
            (ERROR, format!("Millstream has a defect (a panic): {what}"))
        }
    };
    note(text);
    code.into()
}

/// Keeps a text for [`millstream_error`].
pub fn note(text: String) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // A thread that ends has no place for it any more.
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
}

/// Returns the text of this thread's latest error; it stays until the next one.
#[unsafe(no_mangle)]
pub extern "C" fn millstream_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    fn last() -> String {
        // SAFETY: it is a text of this thread, which has no other error meanwhile.
        unsafe { CStr::from_ptr(millstream_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_becomes_an_error_with_its_text() {
        assert_eq!((guarded(|| Ok(7)), last()), (7, String::new()));
        assert_eq!(guarded::<i64>(|| panic!("no {}", 1)), i64::from(ERROR));
        assert!(last().ends_with("(a panic): no 1"), "{}", last());
        assert_eq!(guarded::<i32>(|| Err(Failure::NoHandle(0))), CLOSED);
        assert_eq!(guarded::<i32>(|| Err(ClientError::Closed.into())), CLOSED);
        assert_eq!(last(), "it was closed: open it again");
        assert_eq!(guarded::<i32>(|| bad("one\0two")), ERROR);
        assert_eq!(last(), "one two");
    }
}
