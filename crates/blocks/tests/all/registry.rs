//! Rules of every registered block: built from its example, its output does not depend on the cuts
//! of the stream, it ends with its inputs, and it does not allocate.

use millstream_flow::registry::BlockEffect;
use millstream_flow::{
    Block, Complex, InputPort, Item, ItemType, Mock, OutputPort, PortVisitor, Registry,
};
use millstream_testkit::allocations;

/// Items of each input: not a multiple of any block's frame.
pub(crate) const ITEMS: usize = 20_011;

pub(crate) fn registry() -> Registry {
    let mut registry = Registry::builtin();
    millstream_blocks::register(&mut registry);
    registry
}

/// Returns every block type whose example can be built, and variants that need a separate run.
pub(crate) fn cases() -> Vec<(String, String)> {
    let registry = registry();
    let made = registry
        .types()
        .filter(|known| matches!(known.effect(), BlockEffect::Pure | BlockEffect::Paced));
    let mut cases: Vec<(String, String)> =
        made.map(|known| (known.name().to_owned(), known.example_values().to_owned())).collect();
    for (name, values) in [
        ("fir", "taps = [1, 2, 3]\nitem = \"f32\""),
        ("fir", "taps = [1, 2]\ntaps_im = [0.5, -1]\ndecimation = 3"),
        ("fir", "design = \"root_raised_cosine\"\nrate_hz = 4\nsymbol_rate_hz = 1\nlength = 45"),
        (
            "fir",
            "design = \"band_pass\"\nrate_hz = 1\nlow_hz = 0.1\nhigh_hz = 0.2\n\
                 transition_hz = 0.01\nwindow = \"blackman\"",
        ),
        ("rational_resampler", "interpolation = 160\ndecimation = 147\nitem = \"f32\""),
        ("arbitrary_resampler", "ratio = 0.1234\nitem = \"f32\""),
        ("signal_source", "rate_hz = 7\nfrequency_hz = 1\nshape = \"saw\"\nitem = \"f32\""),
        ("noise_source", "item = \"f32\"\nseed = 9"),
        ("fft", "size = 100\ndirection = \"backward\"\nshift = true"),
        ("power_spectrum", "size = 64"),
        ("add", "inputs = 5\nitem = \"f32\""),
        ("convert", "from = \"cf32\"\nto = \"sc16\""),
        ("vector_to_stream", "length = 2048"),
        ("keep_one_in_n", "n = 1"),
        ("delay", "count = 30000"),
        ("tag_probe", ""),
    ] {
        cases.push((name.to_owned(), values.to_owned()));
    }
    cases
}

/// A port as the test recorded it.
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) item: ItemType,
}

#[derive(Default)]
pub(crate) struct Ports {
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
}

impl PortVisitor for Ports {
    fn input(&mut self, name: &str, port: &mut dyn InputPort) {
        self.inputs.push(Port { name: name.to_owned(), item: port.item_type() });
    }
    fn output(&mut self, name: &str, port: &mut dyn OutputPort) {
        self.outputs.push(Port { name: name.to_owned(), item: port.item_type() });
    }
}

/// Calls `$call` with `$T` standing for the type of the port's items.
macro_rules! with_type {
    ($item:expr, $T:ident => $call:expr) => {
        with_type!(@ $item, $T => $call, u8, i8, i16, f32, [i16; 2], [i8; 2], [u8; 2],
            Complex<f32>, [Complex<f32>; 64], [Complex<f32>; 2048])
    };
    (@ $item:expr, $T:ident => $call:expr, $($Type:ty),+) => {
        $(if $item == ItemType::of::<$Type>() {
            type $T = $Type;
            $call
        } else)+ {
            panic!("add {} to the types of this test", $item)
        }
    };
}

pub(crate) fn is_of_floats<T>() -> bool {
    size_of::<T>() % 4 == 0 && !std::any::type_name::<T>().contains("i16")
}

/// Returns small numbers as items, from the bytes of small floats or of a counter.
pub(crate) fn items<T: Item>(count: usize, seed: usize) -> Vec<T> {
    let size = size_of::<T>();
    let floats = is_of_floats::<T>();
    let byte = |i: usize| {
        let value = ((i / 4 * 7919 + seed * 31) % 1009) as f32 / 1009.0 - 0.5;
        if floats { value.to_le_bytes()[i % 4] } else { (i * 31 + i / 251 + seed) as u8 }
    };
    let zero = T::zeroed();
    let mut items = vec![zero; count];
    let bytes = items.as_mut_ptr().cast::<u8>();
    for i in 0..count * size {
        // SAFETY: the index is within the vector; each type of this test is plain numbers, valid
        // for any bytes.
        unsafe { bytes.add(i).write(byte(i)) };
    }
    items
}

fn bytes_of<T: Item>(items: &[T]) -> Vec<u8> {
    let (start, size) = (items.as_ptr().cast::<u8>(), size_of_val(items));
    // SAFETY: each type of this test is plain numbers without padding.
    unsafe { std::slice::from_raw_parts(start, size) }.to_vec()
}

pub(crate) struct Run {
    pub(crate) mock: Mock<Box<dyn Block>>,
    pub(crate) ports: Ports,
    pub(crate) outputs: Vec<Vec<u8>>,
}

impl Run {
    pub(crate) fn new(name: &str, values: &str, room: usize) -> Self {
        let mut block = registry().make(name, values).unwrap_or_else(|e| panic!("{e}"));
        let mut ports = Ports::default();
        block.ports(&mut ports);
        let outputs = vec![Vec::new(); ports.outputs.len()];
        Self { mock: Mock::with_room(block, room), ports, outputs }
    }

    fn feed(&mut self, from: usize, to: usize) {
        self.feed_changed(from, to, &|_| {});
    }

    /// Feeds items whose bytes `change` has changed.
    pub(crate) fn feed_changed(&mut self, from: usize, to: usize, change: &dyn Fn(&mut [f32])) {
        for (seed, port) in self.ports.inputs.iter().enumerate() {
            with_type!(port.item, T => {
                let count = ITEMS.min((64 << 20) / size_of::<T>() / 64);
                let mut all = items::<T>(count, seed);
                if is_of_floats::<T>() {
                    let (start, floats) = (all.as_mut_ptr().cast(), size_of_val(&all[..]) / 4);
                    // SAFETY: items of floats, without padding, and nothing else borrows them.
                    change(unsafe { std::slice::from_raw_parts_mut(start, floats) });
                }
                self.mock.feed(&port.name, &all[from.min(count)..to.min(count)]);
            });
        }
    }

    pub(crate) fn collect(&mut self) {
        for (port, out) in self.ports.outputs.iter().zip(&mut self.outputs) {
            with_type!(port.item, T => out.extend(bytes_of(&self.mock.take::<T>(&port.name))));
        }
    }

    pub(crate) fn is_source(&self) -> bool {
        self.ports.inputs.is_empty()
    }

    pub(crate) fn end(&mut self) {
        for port in &self.ports.inputs {
            self.mock.end(&port.name);
        }
    }
}

/// Returns whether a block is paced by the clock, so that its output depends on the time.
pub(crate) fn is_timed(name: &str) -> bool {
    name == "throttle"
}

#[test]
fn a_stream_is_the_same_however_it_is_cut_and_ends_with_its_inputs() {
    for (name, values) in cases().iter().filter(|(name, _)| !is_timed(name)) {
        let mut whole = Run::new(name, values, 4096);
        let mut cut = Run::new(name, values, 512);
        if whole.is_source() {
            for run in [&mut whole, &mut cut] {
                for _ in 0..40 {
                    run.mock.call().unwrap();
                    run.collect();
                }
            }
            for (whole, cut) in whole.outputs.iter().zip(&cut.outputs) {
                let both = whole.len().min(cut.len());
                assert!(both > 0 && whole[..both] == cut[..both], "{name} {values}");
            }
            continue;
        }
        whole.feed(0, ITEMS);
        whole.end();
        whole.mock.run().unwrap();
        whole.collect();
        assert!(whole.mock.is_finished(), "{name} {values} does not end");
        let (mut at, mut size) = (0, 3);
        while at < ITEMS {
            size = size * 17 % 1013;
            cut.feed(at, at + size);
            at += size;
            cut.mock.run().unwrap();
        }
        cut.end();
        cut.mock.run().unwrap();
        cut.collect();
        assert!(cut.mock.is_finished(), "{name} {values} does not end when cut");
        assert!(whole.outputs == cut.outputs, "{name} {values} depends on how it is cut");
        let silent = whole.outputs.iter().any(Vec::is_empty);
        assert!(!silent, "{name} {values} puts nothing out");
    }
}

#[test]
fn nothing_is_allocated_after_the_first_call() {
    for (name, values) in cases() {
        let mut run = Run::new(&name, &values, 4096);
        run.feed(0, ITEMS);
        run.mock.call().unwrap();
        run.collect();
        let mut counted = 0;
        for _ in 0..10 {
            // The mock may allocate when it fills the rings.
            run.feed(0, 1);
            let before = allocations();
            run.mock.call().unwrap();
            counted += allocations() - before;
            run.collect();
        }
        assert_eq!(counted, 0, "{name} {values} allocates");
    }
}

#[test]
fn inputs_that_end_at_once_end_every_block() {
    for (name, values) in cases() {
        let mut run = Run::new(&name, &values, 4096);
        if run.is_source() {
            continue;
        }
        run.end();
        run.mock.run().unwrap();
        assert!(run.mock.is_finished(), "{name} {values}");
    }
}

/// Adds the names that `#[block(...)]` has in the files of a folder and of those below.
fn declared_in(folder: &std::path::Path, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            declared_in(&path, names);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code: String = code.map(|line| format!("{}\n", line.trim())).collect();
        for declared in code.split("#[block(").skip(1) {
            let name = declared.split([',', ')']).next().unwrap().trim();
            // A macro of the file declares several.
            if !name.starts_with('$') {
                names.push(name.to_owned());
            }
        }
    }
}

#[test]
fn every_type_that_a_file_declares_is_registered() {
    let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names = Vec::new();
    declared_in(&sources.join("src"), &mut names);
    declared_in(&sources.join("../flow/src"), &mut names);
    assert!(names.len() > 40, "{names:?}");
    let registry = registry();
    names.retain(|name| registry.get(name).is_none());
    assert_eq!(
        names,
        Vec::<String>::new(),
        "a file is no module, or its types were lost in linking"
    );
}

#[test]
fn every_required_parameter_has_a_value_in_the_example() {
    let registry = registry();
    for known in registry.types() {
        for parameter in known.parameters().iter().filter(|one| one.default.is_none()) {
            let line = format!("{} = ", parameter.name);
            let given = known.example_values().lines().any(|text| text.starts_with(&line));
            assert!(given, "the example of {} has no {}", known.name(), parameter.name);
        }
    }
}
