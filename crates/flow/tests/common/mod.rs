//! Blocks that misbehave on purpose, shared by the tests.
#![allow(dead_code, reason = "each test program uses some of them")]

pub mod gain;
pub mod moving;
pub mod tagged;

use millstream_flow::{Block, BlockError, Context, In, Out, Ports, Work};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Passes items on in bites of changing size, as real blocks do.
#[derive(Ports)]
pub struct Nibble {
    pub input: In<u32>,
    pub output: Out<u32>,
    random: SplitMix64,
    largest: usize,
}

impl Nibble {
    pub fn new(seed: u64, largest: usize) -> Self {
        let random = SplitMix64::seed_from_u64(seed);
        Self { input: In::new(), output: Out::new(), random, largest }
    }

    /// Sets the least number of items that a call wants; the end of the stream has fewer.
    pub fn wanting(mut self, items: usize) -> Self {
        self.input.set_min_items(items);
        self.output.set_min_items(items);
        self
    }

    fn bite(&mut self) -> usize {
        1 + self.random.next_u64() as usize % self.largest
    }
}

impl Block for Nibble {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let bite = self.bite();
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let items = input.len().min(output.len()).min(bite);
        output[..items].copy_from_slice(&input[..items]);
        self.input.consume(items);
        self.output.produce(items);
        Ok(Work::Continue)
    }
}

/// The action of a [`Trouble`] after some items.
#[derive(Clone, Copy)]
pub enum Kind {
    Error,
    Panic,
    PanicInDrop,
    Overconsume,
}

/// Passes items on until it has seen `after` of them.
#[derive(Ports)]
pub struct Trouble {
    pub input: In<u32>,
    pub output: Out<u32>,
    pub after: usize,
    pub kind: Kind,
}

impl Trouble {
    pub fn new(kind: Kind, after: usize) -> Self {
        Self { input: In::new(), output: Out::new(), after, kind }
    }
}

impl Block for Trouble {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let items = input.len().min(output.len()).min(self.after);
        output[..items].copy_from_slice(&input[..items]);
        self.input.consume(items);
        self.output.produce(items);
        self.after -= items;
        if self.after > 0 {
            return Ok(Work::Continue);
        }
        match self.kind {
            Kind::Error => Err("out of luck".into()),
            Kind::Panic => panic!("out of {}", "hand"),
            Kind::PanicInDrop => Ok(Work::Finished),
            Kind::Overconsume => {
                self.input.consume(usize::MAX / 8);
                Ok(Work::Continue)
            }
        }
    }
}

impl Drop for Trouble {
    fn drop(&mut self) {
        if matches!(self.kind, Kind::PanicInDrop) && !std::thread::panicking() {
            panic!("a bad goodbye");
        }
    }
}

/// Adds two streams item by item.
#[derive(Ports)]
pub struct Add {
    pub a: In<u32>,
    pub b: In<u32>,
    #[port("sum")]
    pub output: Out<u32>,
}

impl Add {
    pub fn new() -> Self {
        Self { a: In::new(), b: In::new(), output: Out::new() }
    }
}

impl Block for Add {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (a, b, output) = (self.a.slice(), self.b.slice(), self.output.slice_mut());
        let items = a.len().min(b.len()).min(output.len());
        for (sum, (a, b)) in output.iter_mut().zip(a.iter().zip(b)) {
            *sum = a.wrapping_add(*b);
        }
        self.a.consume(items);
        self.b.consume(items);
        self.output.produce(items);
        Ok(Work::Continue)
    }
}

/// Counts without end, at most at its pace.
#[derive(Ports)]
pub struct Ticker {
    pub output: Out<u32>,
    pub next: u32,
}

impl Block for Ticker {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let output = self.output.slice_mut();
        let items = output.len().min(1000);
        for item in &mut output[..items] {
            *item = self.next;
            self.next = self.next.wrapping_add(1);
        }
        self.output.produce(items);
        Ok(Work::Continue)
    }
}
