//! Blocks of a flowgraph that are functions in Python, for experiments.

use millstream_flow::registry::{BlockParameters, BlockType, ParameterValues};
use millstream_flow::{
    Block, BlockError, BlockFacts, Complex, Context, In, Out, Ports, Registry, TagRule, Work,
};
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyDict};

/// The most samples of a call.
const CALL_ITEMS: usize = 1 << 16;

/// Calls a function in Python with an array of samples, and passes on the array that it returns.
///
/// The samples are copied both ways, and the interpreter's lock is taken for each call.
#[derive(Ports)]
struct PythonBlock {
    input: In<Complex<f32>>,
    output: Out<Complex<f32>>,
    /// Takes a bytearray of samples and returns an array of complex64.
    function: Py<PyAny>,
    /// Samples that the function returned and for which there was no room yet.
    waiting: Vec<Complex<f32>>,
    sent: usize,
}

impl PythonBlock {
    /// Calls the function with `items` samples of the input.
    fn call(&mut self, items: usize) -> Result<(), BlockError> {
        let samples = &self.input.slice()[..items];
        // SAFETY: complex floats are plain numbers without padding.
        let bytes = unsafe {
            std::slice::from_raw_parts(samples.as_ptr().cast::<u8>(), size_of_val(samples))
        };
        self.waiting.clear();
        self.sent = 0;
        Python::attach(|py| -> PyResult<()> {
            let result = self.function.call1(py, (PyByteArray::new(py, bytes),))?;
            let buffer = PyUntypedBuffer::get(result.bind(py))?;
            let count = buffer.item_count();
            if buffer.format().to_bytes() != b"Zf" || !buffer.is_c_contiguous() {
                let text = "the function of a python block must return an array of complex64";
                return Err(PyValueError::new_err(text));
            }
            let from = buffer.buf_ptr().cast::<Complex<f32>>();
            // SAFETY: the buffer has `count` complex floats in a row, and the interpreter's lock
            // keeps others from changing them.
            let item = |n| unsafe { from.add(n).read_unaligned() };
            self.waiting.extend((0..count).map(item));
            Ok(())
        })?;
        Ok(())
    }
}

impl Block for PythonBlock {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        if self.sent == self.waiting.len() {
            let items = self.input.slice().len().min(CALL_ITEMS);
            if items == 0 {
                return Ok(Work::Continue);
            }
            self.call(items)?;
            self.input.consume(items);
        }
        let room = self.output.slice_mut();
        let items = room.len().min(self.waiting.len() - self.sent);
        room[..items].copy_from_slice(&self.waiting[self.sent..][..items]);
        self.output.produce(items);
        self.sent += items;
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.tag_rule(TagRule::Drop);
    }
}

/// Adds the block type `python`, whose functions are those of a dictionary.
pub fn register(registry: &mut Registry, blocks: &Bound<'_, PyDict>) -> PyResult<()> {
    let function = |(name, function): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        Ok((name.extract::<String>()?, function.unbind()))
    };
    let functions: Vec<(String, Py<PyAny>)> =
        blocks.iter().map(function).collect::<PyResult<_>>()?;
    let make = move |values: &ParameterValues| {
        let name = values.read::<PythonParameters>()?.function;
        let found = functions.iter().find(|(known, _)| *known == name);
        let (_, function) = found.ok_or_else(|| {
            let known: Vec<_> = functions.iter().map(|(name, _)| name.as_str()).collect();
            format!("blocks has no function {name:?}: it has {}", known.join(", "))
        })?;
        let function = Python::attach(|py| function.clone_ref(py));
        Ok(Box::new(PythonBlock {
            input: In::new(),
            output: Out::new(),
            function,
            waiting: Vec::new(),
            sent: 0,
        }) as Box<dyn Block>)
    };
    let summary = "Calls a function in Python with arrays of complex64.";
    let declared = BlockType::declare::<PythonParameters>("python", summary);
    registry.register(declared.example("function = \"limit\"").pure(make));
    Ok(())
}

#[derive(BlockParameters)]
struct PythonParameters {
    /// its name in `blocks`
    function: String,
}
