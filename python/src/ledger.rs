//! Ledgers as Python objects: the outcome of every sample.

use crate::errors::StreamError;
use millstream_radio::{Ledger as RadioLedger, TxLedger as RadioTxLedger};
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// The account of a receive stream's samples: expected = delivered + held + lost, by cause.
#[pyclass(frozen, module = "millstream")]
pub struct Ledger {
    inner: RadioLedger,
}

impl From<RadioLedger> for Ledger {
    fn from(inner: RadioLedger) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl Ledger {
    /// Samples that the stream should have had so far.
    #[getter]
    fn expected(&self) -> u64 {
        self.inner.expected
    }

    /// Samples that were copied to the caller.
    #[getter]
    fn delivered(&self) -> u64 {
        self.inner.delivered
    }

    /// Samples that have arrived and were not read yet.
    #[getter]
    fn held(&self) -> u64 {
        self.inner.held
    }

    /// Samples that came after the caller had ended the stream: neither expected nor lost.
    #[getter]
    fn after_end(&self) -> u64 {
        self.inner.after_end
    }

    /// The causes with lost samples, and how many each lost.
    #[getter]
    fn lost(&self) -> BTreeMap<&'static str, u64> {
        self.inner.lost_by_name()
    }

    /// Samples lost by any cause.
    #[getter]
    fn lost_total(&self) -> u64 {
        self.inner.lost_total()
    }

    /// Whether both sides agree.
    #[getter]
    fn balances(&self) -> bool {
        self.inner.balance().is_ok()
    }

    /// Raises StreamError unless both sides agree.
    fn check(&self) -> PyResult<()> {
        self.inner.balance().map_err(|error| StreamError::new_err(error.to_string()))
    }

    fn __str__(&self) -> String {
        self.inner.to_string()
    }

    fn __repr__(&self) -> String {
        let RadioLedger { expected, delivered, .. } = self.inner;
        let lost = self.inner.lost_by_name();
        format!("Ledger(expected={expected}, delivered={delivered}, lost={lost:?})")
    }
}

/// The account of a transmit stream's samples: accepted = transmitted + in flight + lost + unknown.
#[pyclass(frozen, module = "millstream")]
pub struct TxLedger {
    inner: RadioTxLedger,
}

impl From<RadioTxLedger> for TxLedger {
    fn from(inner: RadioTxLedger) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl TxLedger {
    /// Samples taken from the caller.
    #[getter]
    fn accepted(&self) -> u64 {
        self.inner.accepted
    }

    /// Samples that the device has taken for transmission.
    #[getter]
    fn transmitted(&self) -> u64 {
        self.inner.transmitted
    }

    /// Samples on their way; 0 once the stream is closed.
    #[getter]
    fn in_flight(&self) -> u64 {
        self.inner.in_flight
    }

    /// Samples that may have been transmitted or lost, because reports of the device are missing.
    #[getter]
    fn unknown(&self) -> u64 {
        self.inner.unknown.samples
    }

    /// The causes with lost samples, and how many each lost.
    #[getter]
    fn lost(&self) -> BTreeMap<&'static str, u64> {
        self.inner.lost_by_name()
    }

    /// Samples lost by any cause.
    #[getter]
    fn lost_total(&self) -> u64 {
        self.inner.lost_total()
    }

    /// Whether both sides agree.
    #[getter]
    fn balances(&self) -> bool {
        self.inner.balance().is_ok()
    }

    /// Raises StreamError unless both sides agree.
    fn check(&self) -> PyResult<()> {
        self.inner.balance().map_err(|error| StreamError::new_err(error.to_string()))
    }

    fn __str__(&self) -> String {
        self.inner.to_string()
    }

    fn __repr__(&self) -> String {
        let RadioTxLedger { accepted, transmitted, .. } = self.inner;
        let lost = self.inner.lost_by_name();
        format!("TxLedger(accepted={accepted}, transmitted={transmitted}, lost={lost:?})")
    }
}
