//! The radios of a soak, and the links to them.

use crate::child_radio::{ChildRadio, ChildRadioOptions, Prepare, free_address};
use crate::output::{describe, document, note};
use crate::{interrupt, network};
use anyhow::Context;
use millstream_cli::ask;
use millstream_lab::packets::{TestNetwork, Testbed};
use millstream_lab::soak::{
    ActiveFault, Holdings, RX_BUFFER_SAMPLES, SoakRadio, TX_BUFFER_SAMPLES,
};
use millstream_radio::DeviceArgs;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::process::Command;

/// The port of a radio's control channel, at its own address.
const CONTROL_PORT: u16 = 49_650;
/// Size of the largest IP packet of the veth pair, bytes.
const MTU: usize = 9000;

/// The radios and links. They vanish when it is dropped, and however this process ends.
pub struct SoakStage {
    radios: Vec<StageRadio>,
    links: Vec<StageLink>,
    /// Its networks end after the radios.
    _bed: Option<Testbed>,
}

struct StageRadio {
    name: &'static str,
    process: ChildRadio,
    control: SocketAddrV4,
}

struct StageLink {
    /// Its name in words.
    name: String,
    /// The link string of the host.
    link: String,
    /// The radio at its other end.
    radio: usize,
}

/// A radio over one of the links.
pub struct Reached<'a> {
    radio: &'a StageRadio,
    link: &'a str,
}

impl SoakStage {
    /// Starts the radios: one on loopback, and with the rights for it one behind a veth pair.
    pub fn set(loopback: bool) -> anyhow::Result<Self> {
        let bed = if loopback { None } else { bed() };
        let mut stage = Self { radios: Vec::new(), links: Vec::new(), _bed: None };
        stage.start("the radio on loopback", free_address(), None)?;
        stage.add_link("udp on loopback", "udp".to_owned());
        if let Some(bed) = &bed {
            let [host, radio] = bed.places();
            let interface = host.interface.as_deref().context("the veth pair has no interface")?;
            let enter = |command: &mut Command| bed.start_in(true, command);
            stage.start("the radio on veth", radio.address, Some(&enter))?;
            stage.add_link("udp on veth", "udp".to_owned());
            stage.add_link("packet on veth", format!("packet:{interface}"));
            // The control channel and four streams share its buffers.
            let xdp = format!("xdp:{interface},mode=native,buffers=16384");
            stage.add_link("xdp on veth", xdp);
        }
        Ok(Self { _bed: bed, ..stage })
    }

    fn start(
        &mut self,
        name: &'static str,
        addr: Ipv4Addr,
        prepare: Option<&Prepare<'_>>,
    ) -> anyhow::Result<()> {
        let control = SocketAddrV4::new(addr, CONTROL_PORT);
        let options = ChildRadioOptions::new(&format!(
            "--rx-antenna ramp --rx-buffer-samples {RX_BUFFER_SAMPLES} \
             --tx-buffer-samples {TX_BUFFER_SAMPLES} --control {control}"
        ));
        let options = ChildRadioOptions { addr: Some(addr), prepare, ..options };
        let process = ChildRadio::start(&options)?;
        self.radios.push(StageRadio { name, process, control });
        Ok(())
    }

    /// Adds a link to the newest radio.
    fn add_link(&mut self, name: &str, link: String) {
        self.links.push(StageLink { name: name.to_owned(), link, radio: self.radios.len() - 1 });
    }

    /// The links by name.
    pub fn links(&self) -> impl Iterator<Item = &str> {
        self.links.iter().map(|link| &*link.name)
    }

    /// Names each radio with its control channel.
    pub fn describe(&self) -> impl Iterator<Item = String> {
        self.radios.iter().map(|radio| {
            let (name, pid) = (radio.name, radio.process.pid());
            format!("radio   {name}: process {pid}, control channel {}", radio.control)
        })
    }

    /// The radio at the other end of a link.
    pub fn radio(&self, link: usize) -> Reached<'_> {
        let StageLink { link, radio, .. } = &self.links[link];
        Reached { radio: &self.radios[*radio], link }
    }

    /// Replaces an error by its cause in the radio of a link, if it has one.
    pub fn explain(&mut self, link: usize, error: anyhow::Error) -> anyhow::Error {
        let radio = self.links[link].radio;
        self.radios[radio].process.explain(error)
    }

    /// What each process holds now; one that has ended is left out.
    pub fn holdings(&self) -> Vec<(&'static str, Holdings)> {
        let own = ("this process", std::process::id());
        let radios = self.radios.iter().map(|radio| (radio.name, radio.process.pid()));
        let all = std::iter::once(own).chain(radios);
        all.filter_map(|(name, pid)| Some((name, Holdings::of(pid)?))).collect()
    }
}

/// Two network namespaces with a veth pair, and this thread in one of them; `None` with the reason
/// on standard error.
fn bed() -> Option<Testbed> {
    let ground = TestNetwork::Private { mtu: MTU };
    let made = Testbed::set(&ground, [None, None], network::worker, interrupt::asked);
    let entered = made.and_then(|bed| bed.enter().map(|()| bed));
    match entered {
        Ok(bed) => Some(bed),
        Err(error) => {
            let reason = describe(&error.into());
            note(format_args!("links   packet sockets and AF_XDP are left out: {reason}"));
            None
        }
    }
}

impl SoakRadio for Reached<'_> {
    fn args(&self) -> DeviceArgs {
        DeviceArgs { link: self.link.to_owned(), ..DeviceArgs::new(self.radio.process.addr) }
    }

    fn threads(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/task", self.radio.process.pid()))
    }

    fn counters(&mut self) -> Result<BTreeMap<String, u64>, String> {
        Ok(self.ask::<CountersAnswer>(&Request::Counters)?.counters)
    }

    fn add_fault(&mut self, spec: &str) -> Result<u64, String> {
        Ok(self.ask::<AddAnswer>(&Request::Add { fault: spec })?.id)
    }

    fn faults(&mut self) -> Result<Vec<ActiveFault>, String> {
        Ok(self.ask::<ListAnswer>(&Request::List)?.faults)
    }

    fn remove_fault(&mut self, id: u64) -> Result<(), String> {
        self.ask::<IgnoredAny>(&Request::Remove { id }).map(drop)
    }
}

impl Reached<'_> {
    fn ask<T: DeserializeOwned>(&self, request: &Request<'_>) -> Result<T, String> {
        let request = document(request);
        let answer = ask(self.radio.control, &request).map_err(|error| describe(&error))?;
        match answer["ok"] == true {
            true => serde_json::from_value(answer).map_err(|error| error.to_string()),
            false => Err(answer["error"].as_str().unwrap_or("it refused").to_owned()),
        }
    }
}

/// A request over the control channel.
#[derive(Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Request<'a> {
    Counters,
    Add { fault: &'a str },
    List,
    Remove { id: u64 },
}

#[derive(Deserialize)]
struct CountersAnswer {
    counters: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct AddAnswer {
    id: u64,
}

#[derive(Deserialize)]
struct ListAnswer {
    faults: Vec<ActiveFault>,
}
