//! The set-up of every step.

use super::{Args, HOST, PREFIX, RADIO, folder};
use crate::child_radio::{ChildRadio, ChildRadioOptions};
use crate::output::Join;
use anyhow::{Context, bail, ensure};
use millstream_host::netlink::Netlink;
use millstream_host::pci;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A card, and the interface at the other end of its cable.
#[derive(Default)]
pub struct CardSetup {
    /// Its PCI address.
    pub card: String,
    /// The kernel's name of it, and its driver, before the steps.
    pub name: String,
    pub driver: String,
    /// The interface at the other end.
    pub radio: String,
    /// The place where its cable is pulled: a serial line, and its name there.
    pub cable: Option<(PathBuf, String)>,
    /// The device that accesses any address that it is told.
    pub tester: Option<String>,
    /// Whether the card may be used without protection.
    pub unsafe_uio: bool,
    pub samples: u64,
    pub rate_hz: f64,
    /// Further options of the link.
    pub options: String,
}

impl CardSetup {
    /// Finds both.
    pub fn find(args: &Args) -> anyhow::Result<Self> {
        let card = args.card.clone();
        let cards = pci::cards();
        let known = cards.iter().map(|card| &card.address).join(", ");
        let found = cards.iter().find(|found| found.address == card);
        let found = found
            .with_context(|| format!("there is no network card {card}; there are: {known}"))?;
        let name = pci::interface_of(&card).with_context(|| {
            format!(
                "the kernel has no network interface on the card {card}: give the card back to \
                 its kernel driver first"
            )
        })?;
        let other = cards.iter().filter(|other| other.address != card);
        let other: Vec<_> = other.filter_map(|card| pci::interface_of(&card.address)).collect();
        let radio = match (&args.interface, &other[..]) {
            (Some(named), _) => named.clone(),
            (None, [only]) => only.clone(),
            (None, _) => bail!(
                "cannot tell which interface the emulated radio should use: give --interface with \
                 one of {}",
                other.join(", ")
            ),
        };
        if let Some(tester) = &args.dma_tester {
            let id = |file: &str| {
                let path = format!("/sys/bus/pci/devices/{tester}/{file}");
                std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
            };
            let found = [id("vendor"), id("device")];
            ensure!(
                found == ["0x1234", "0x11e8"],
                "--dma-tester {tester} is no device `edu` of QEMU (vendor and device {}): give the \
                 address of one, as `lspci -d 1234:11e8` prints it",
                found.join(":")
            );
        }
        let cable = match args.cable.as_deref().map(|cable| cable.split_once(':')) {
            None => None,
            Some(Some((line, name))) => Some((PathBuf::from(line), name.to_owned())),
            Some(None) => {
                bail!("--cable: write LINE:NAME, a serial line and the name of the card in QEMU")
            }
        };
        let driver = found.driver.clone().unwrap_or_default();
        Ok(Self {
            card,
            name,
            driver,
            radio,
            cable,
            tester: args.dma_tester.clone(),
            unsafe_uio: args.unsafe_uio,
            samples: args.nsamps,
            rate_hz: args.rate,
            options: args.link_options.clone(),
        })
    }

    /// Gives both their addresses.
    pub fn prepare(&self) -> anyhow::Result<()> {
        let lacks = |addresses: Vec<millstream_host::netlink::NetlinkAddress>| {
            addresses.iter().all(|address| ![HOST, RADIO].contains(&address.address))
        };
        ensure!(
            lacks(Netlink::open()?.addresses()?),
            "{HOST} or {RADIO} is already an address of this machine, but the test needs both: \
             remove it first"
        );
        self.address(&self.name, HOST)?;
        self.address(&self.radio, RADIO)
    }

    /// Switches an interface on, waits for its carrier and gives it an address.
    fn address(&self, name: &str, address: std::net::Ipv4Addr) -> anyhow::Result<()> {
        let mut netlink = Netlink::open()?;
        let index = netlink.interface(name)?.index;
        netlink.set_up(index, true)?;
        netlink.add_address(index, address, PREFIX)?;
        let up = || Netlink::open().ok()?.interface(name).ok().filter(|found| found.running);
        let carrier = wait(Duration::from_secs(20), || up().is_some());
        ensure!(carrier, "the network interface {name} has no carrier: check the cable");
        Ok(())
    }

    /// The card as a link, with more options.
    pub fn link(&self, more: &str) -> String {
        self.with_options(&format!("dpdk:{},address={HOST}/{PREFIX}", self.card), more)
    }

    /// The same, with options that the imported file lacks.
    pub fn imported_link(&self, more: &str) -> String {
        self.with_options(&self.name, more)
    }

    fn with_options(&self, link: &str, more: &str) -> String {
        [link, &self.options, more].into_iter().filter(|word| !word.is_empty()).join(",")
    }

    /// The file that `net import` wrote.
    pub fn file(&self) -> PathBuf {
        folder().join("card.toml")
    }

    /// Starts a radio at the other end of the cable.
    pub fn radio(&self, more: &[&str]) -> anyhow::Result<ChildRadio> {
        let mut options = ChildRadioOptions::new("--rx-antenna ramp --rx-buffer-samples 4000000");
        options.addr = Some(RADIO);
        options.args.extend(more.iter().map(|&word| word.to_owned()));
        ChildRadio::start(&options)
    }
}

/// Polls until the condition holds, or the time is over.
pub fn wait(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + limit;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
