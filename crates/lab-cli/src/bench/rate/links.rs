//! The links between this host and an emulated radio: veth pairs between two network namespaces.

use super::place::SideCpus;
use crate::{interrupt, network};
use millstream_lab::packets::{TestNetwork, Testbed};
use std::net::Ipv4Addr;
use std::process::Command;

/// One or two links. They vanish when it is dropped, and however this process ends.
pub struct Links {
    bed: Testbed,
    /// The radio's address on the first link.
    pub addr: Ipv4Addr,
    /// The same on the second one, if there is one.
    pub second_addr: Option<Ipv4Addr>,
}

impl Links {
    /// Makes them, and moves this thread and those that it starts later to the host's side.
    pub fn make(count: u8, mtu: usize, place: &SideCpus) -> anyhow::Result<Self> {
        let second = count > 1;
        let cpus = [place.host_cpu, place.radio_cpu];
        let ground = TestNetwork::Links { mtu, second };
        let bed = Testbed::set(&ground, cpus, network::worker, interrupt::asked)?;
        bed.enter()?;
        let [addr, second_addr] = Testbed::link_addresses();
        Ok(Self { bed, addr, second_addr: second.then_some(second_addr) })
    }

    /// Makes a command start at the radio's side.
    pub fn start_in(&self, command: &mut Command) -> std::io::Result<()> {
        self.bed.start_in(true, command)
    }
}
