//! The exceptions of the module. Their texts are those of the library.

use millstream_client::ClientError;
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyTimeoutError, PyValueError};
use pyo3::prelude::*;
use std::fmt::Display;

create_exception!(millstream, Error, PyRuntimeError, "Is the base of all errors of this package.");
create_exception!(millstream, RadioError, Error, "Says why a radio cannot do what was asked.");
create_exception!(millstream, StreamError, Error, "Says why a stream cannot continue.");
create_exception!(millstream, ClosedError, Error, "The radio or stream was closed.");
create_exception!(
    millstream,
    GapError,
    Error,
    "Samples are missing: the attribute `gap` describes them. The stream goes on."
);
create_exception!(millstream, GraphError, Error, "Says why a flowgraph cannot run.");

/// Converts an error of a client.
pub fn client(error: ClientError) -> PyErr {
    let text = error.to_string();
    match error {
        ClientError::Argument { .. } | ClientError::Fault(_) | ClientError::Buffers { .. } => {
            PyValueError::new_err(text)
        }
        ClientError::NoSensor { .. } => PyValueError::new_err(text),
        ClientError::Closed => ClosedError::new_err(text),
        ClientError::Rx(_)
        | ClientError::Tx(_)
        | ClientError::Lost { .. }
        | ClientError::Gap(_)
        | ClientError::LateStart { .. } => StreamError::new_err(text),
        _ => RadioError::new_err(text),
    }
}

/// Converts an error of the emulated radio.
pub fn emulator(error: impl Display) -> PyErr {
    RadioError::new_err(error.to_string())
}

/// Returns the error of a wait that ended without a result.
pub fn timeout(what: &str, seconds: f64) -> PyErr {
    PyTimeoutError::new_err(format!(
        "{what} within {seconds} s: give a longer timeout, or None to wait without end"
    ))
}
