//! `millstream sim`: test equipment. One file a device.

mod fault;
mod generate;
mod radio;

pub use fault::ask;
pub use radio::device;

group! {
    typed;
    /// Emulates radios, injects faults into them, and makes recordings of television channels.
    SimVerb: Radio(radio), Fault(fault), Generate(generate),
}

impl Args {
    /// Whether it opens links.
    pub fn opens_links(&self) -> bool {
        matches!(self.what, SimVerb::Radio(_))
    }
}
