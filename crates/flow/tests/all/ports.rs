//! The ports that `#[derive(Ports)]` shows.

use millstream_flow::port::{InputPort, OutputPort, PortVisitor};
use millstream_flow::{In, Out, Ports};

#[derive(Default)]
struct Names(Vec<String>);

impl PortVisitor for Names {
    fn input(&mut self, name: &str, _: &mut dyn InputPort) {
        self.0.push(format!("{name}?"));
    }

    fn output(&mut self, name: &str, _: &mut dyn OutputPort) {
        self.0.push(format!("{name}!"));
    }
}

fn names(block: &mut impl Ports) -> Vec<String> {
    let mut names = Names::default();
    block.ports(&mut names);
    names.0
}

#[derive(Default, Ports)]
struct Every<T: millstream_flow::Item> {
    #[port("in")]
    inputs: [In<T>; 2],
    taps: Vec<f32>,
    output: Out<T>,
    pilot: Out<f32>,
    #[port("extra")]
    more: Vec<Out<u8>>,
}

#[test]
fn every_port_is_shown_once_in_the_order_of_the_fields() {
    let mut block = Every::<f32> { taps: vec![1.0], ..Every::default() };
    assert_eq!(names(&mut block), ["in0?", "in1?", "out!", "pilot!"]);
    block.more = (0..12).map(|_| Out::new()).collect();
    assert_eq!(names(&mut block)[4..], (0..12).map(|n| format!("extra{n}!")).collect::<Vec<_>>());
    assert_eq!(block.inputs.len() + block.taps.len(), 3);
}
