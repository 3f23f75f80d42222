//! The module `millstream._millstream` of the Python package `millstream`: radios, streams, the
//! emulated radio and flowgraphs. What needs no speed is written in Python, in the folder
//! `package/`.
//!
//! Arrays come and go through Python's buffer protocol, so nothing here depends on numpy's own
//! binary interface. The interpreter's lock is released in every wait and in every conversion.

mod arrays;
mod emulated;
mod errors;
mod graph;
mod ledger;
mod python_block;
mod radio;
mod receive;
mod received;
mod settings;
mod transmit;
mod wait;

use pyo3::prelude::*;

#[pymodule]
fn _millstream(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", py.get_type::<errors::Error>())?;
    module.add("RadioError", py.get_type::<errors::RadioError>())?;
    module.add("StreamError", py.get_type::<errors::StreamError>())?;
    module.add("ClosedError", py.get_type::<errors::ClosedError>())?;
    module.add("GapError", py.get_type::<errors::GapError>())?;
    module.add("GraphError", py.get_type::<errors::GraphError>())?;
    module.add_class::<emulated::EmulatedRadio>()?;
    module.add_class::<radio::Radio>()?;
    module.add_class::<settings::Tuned>()?;
    module.add_class::<receive::RxStream>()?;
    module.add_class::<received::Received>()?;
    module.add_class::<received::Gap>()?;
    module.add_class::<transmit::TxStream>()?;
    module.add_class::<transmit::TxEvent>()?;
    module.add_class::<ledger::Ledger>()?;
    module.add_class::<ledger::TxLedger>()?;
    module.add_function(wrap_pyfunction!(radio::find, module)?)?;
    module.add_function(wrap_pyfunction!(graph::run_graph, module)?)?;
    Ok(())
}
