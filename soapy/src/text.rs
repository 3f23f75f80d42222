//! Texts from and to C.

use std::ffi::{CStr, c_char, c_void};

use crate::guard::Failure;

/// Takes one text, which ends with the call. A null text ends a group.
pub type TextSink = unsafe extern "C" fn(out: *mut c_void, data: *const c_char, bytes: usize);

/// Takes one number.
pub type NumberSink = unsafe extern "C" fn(out: *mut c_void, number: f64);

/// A receiver of texts in C.
pub struct Texts {
    out: *mut c_void,
    sink: TextSink,
}

impl Texts {
    /// Returns the receiver.
    ///
    /// # Safety
    /// `sink` may be called with `out` as long as the receiver lives.
    pub unsafe fn new(out: *mut c_void, sink: TextSink) -> Self {
        Self { out, sink }
    }

    /// Passes one text.
    pub fn put(&self, text: &str) {
        // SAFETY: `new` was promised this, and the text is valid for its length.
        unsafe { (self.sink)(self.out, text.as_ptr().cast(), text.len()) }
    }

    /// Passes a key and its value.
    pub fn pair(&self, key: &str, value: &str) {
        self.put(key);
        self.put(value);
    }

    /// Ends a group.
    pub fn end(&self) {
        // SAFETY: `new` was promised this; a null text has no length.
        unsafe { (self.sink)(self.out, std::ptr::null(), 0) }
    }
}

/// Returns a text of C; an empty one for a null pointer.
///
/// # Safety
/// `text` is null, or ends with 0 and lives as long as the result.
pub unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Ok("");
    }
    // SAFETY: as the caller says.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::Argument("a text is not valid UTF-8".to_owned()))
}

/// Returns the keys and values of an array that has them in turn.
///
/// # Safety
/// `texts` has `2 * pairs` texts, each as [`text`] wants it.
pub unsafe fn pairs<'a>(
    texts: *const *const c_char,
    pairs: usize,
) -> Result<Vec<(&'a str, &'a str)>, Failure> {
    let mut all = Vec::with_capacity(pairs);
    for index in 0..pairs {
        // SAFETY: as the caller says.
        let pair = unsafe { (text(*texts.add(2 * index))?, text(*texts.add(2 * index + 1))?) };
        all.push(pair);
    }
    Ok(all)
}
