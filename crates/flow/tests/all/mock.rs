//! A single block: inputs, outputs and end under a mock.

use millstream_flow::{Block, BlockError, Context, In, Mock, Out, PortVisitor, Ports, Work};

/// Sums pairs of bytes; an odd one at the end is dropped.
#[derive(Ports)]
struct PairSum {
    input: In<u8>,
    output: Out<u32>,
}

impl PairSum {
    fn new() -> Self {
        Self { input: In::with_min_items(2), output: Out::new() }
    }
}

impl Block for PairSum {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let pairs = (input.len() / 2).min(output.len());
        for (sum, pair) in output.iter_mut().zip(input.chunks_exact(2)) {
            *sum = u32::from(pair[0]) + u32::from(pair[1]);
        }
        self.input.consume(2 * pairs);
        self.output.produce(pairs);
        Ok(Work::Continue)
    }
}

#[test]
fn feeds_more_than_the_rings_hold() {
    let input: Vec<u8> = (0..100_000u32).map(|i| i as u8).collect();
    let mut mock = Mock::with_room(PairSum::new(), 1);
    mock.feed("in", &input);
    mock.run().unwrap();
    let expected: Vec<u32> = input.chunks(2).map(|p| u32::from(p[0]) + u32::from(p[1])).collect();
    assert_eq!(mock.take::<u32>("out"), expected);
    assert!(!mock.is_finished(), "the input has not ended");
}

#[test]
fn ends_with_its_input_and_drops_what_it_cannot_use() {
    let mut mock = Mock::new(PairSum::new());
    mock.feed("in", &[1u8, 2, 3]);
    mock.run().unwrap();
    assert!(!mock.is_finished());
    mock.end("in");
    mock.run().unwrap();
    assert!(mock.is_finished());
    assert_eq!(mock.take::<u32>("out"), [3]);
}

/// Delays by two items, and produces them at the end.
#[derive(Ports)]
struct Delay {
    input: In<i32>,
    output: Out<i32>,
    held: [i32; 2],
    left: usize,
}

impl Block for Delay {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let items = input.len().min(output.len());
        for (to, from) in output.iter_mut().zip(input) {
            *to = self.held[0];
            self.held = [self.held[1], *from];
        }
        let mut produced = items;
        if self.input.is_ended() && items == input.len() {
            while self.left > 0 && produced < output.len() {
                output[produced] = self.held[2 - self.left];
                self.left -= 1;
                produced += 1;
            }
        }
        self.input.consume(items);
        self.output.produce(produced);
        Ok(Work::Continue)
    }
}

#[test]
fn a_block_flushes_its_tail_when_the_input_has_ended() {
    let delay = Delay { input: In::new(), output: Out::new(), held: [0; 2], left: 2 };
    let mut mock = Mock::new(delay);
    mock.feed("in", &[1, 2, 3]);
    mock.run().unwrap();
    assert_eq!(mock.take::<i32>("out"), [0, 0, 1]);
    mock.end("in");
    mock.run().unwrap();
    assert_eq!(mock.take::<i32>("out"), [2, 3]);
    assert!(mock.is_finished());
}

#[test]
fn an_error_reaches_the_caller() {
    struct Broken(In<u8>);
    impl Ports for Broken {
        fn ports(&mut self, ports: &mut dyn PortVisitor) {
            ports.input("in", &mut self.0);
        }
    }

    impl Block for Broken {
        fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
            Err("worn out".into())
        }
    }
    let error = Mock::new(Broken(In::new())).run().unwrap_err();
    assert_eq!(error.to_string(), "worn out");
}

/// Multiplies by the latest number on `factor`, if one ever comes.
#[derive(Ports)]
struct Tunable {
    input: In<i32>,
    factor: In<i32>,
    output: Out<i32>,
    latest: i32,
}

impl Block for Tunable {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let factors = self.factor.slice();
        self.latest = factors.last().copied().unwrap_or(self.latest);
        let count = factors.len();
        self.factor.consume(count);
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let items = input.len().min(output.len());
        for (to, from) in output.iter_mut().zip(input) {
            *to = from * self.latest;
        }
        self.input.consume(items);
        self.output.produce(items);
        Ok(Work::Continue)
    }
}

#[test]
fn an_optional_input_neither_holds_a_block_up_nor_ends_it_early() {
    let factor = In::with_min_items(0);
    let tunable = Tunable { input: In::new(), factor, output: Out::new(), latest: 1 };
    let mut mock = Mock::new(tunable);
    mock.feed("in", &[1, 2]);
    mock.run().unwrap();
    assert_eq!(mock.take::<i32>("out"), [1, 2]);
    mock.feed("factor", &[5, 10]);
    mock.end("factor");
    mock.run().unwrap();
    assert!(!mock.is_finished(), "the other input may still bring items");
    mock.feed("in", &[1, 2]);
    mock.end("in");
    mock.run().unwrap();
    assert_eq!(mock.take::<i32>("out"), [10, 20]);
    assert!(mock.is_finished());
}
