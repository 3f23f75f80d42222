//! The steps from an address to an open device.

use std::sync::{Arc, Mutex};

use millstream_link::port::PortOptions;
use millstream_wire::Epid;

use super::chains::{no_channel, open_chains, reset};
use super::link::{DeviceLink, measure};
use super::tuning::POWERED;
use super::{DEVICE_ID, Device, DeviceSession, complex_gain};
use crate::channel::RxChannel;
use crate::client_zero::ClientZero;
use crate::control::Control;
use crate::graph::StreamDirection;
use crate::topology::{self, Management};
use crate::tx::TxChannel;
use crate::{DeviceArgs, RadioError};

pub(super) fn open(mut args: DeviceArgs) -> Result<Device, RadioError> {
    args.find()?;
    let (mut session, deadline) = DeviceSession::open(&args)?;
    let chdr_links = session.chdr_links(&args)?;
    let link = chdr_links[0];
    let width = session.chdr_width()?;
    let protocol = session.control_protocol()?;
    // A thread waits at the control port. Where it polled, it would take a CPU from the streams.
    let patient = PortOptions { patient: true, ..PortOptions::default() };
    // The link stays open from here on, because a link that connects to a peer would otherwise
    // connect again.
    let mut port = args.port(0, &patient)?;
    let frame_bytes = measure(&args, 0, &link)?;

    // This host's control endpoint; the device's endpoints follow.
    let host = session.first_epid();
    let management = Management::new(&mut port, link.address, width, host);
    let mut management = management.until(deadline);
    let topology = topology::discover(&mut management, args.addr, DEVICE_ID, host.0 + 1)?;
    let control_endpoint = topology.control().copied().ok_or_else(|| RadioError::Unusable {
        address: args.addr,
        reason: "it has no stream endpoint for control".to_owned(),
    })?;
    topology::route_to(&mut management, &control_endpoint)?;
    let peer = control_endpoint.epid;
    let layout = (width, protocol);
    let control = Arc::new(Control::new(port, link.address, layout, host, peer)?);
    control.set_claim(session.claim_loss());
    control.set_deadline(Some(deadline));

    let mut links = vec![DeviceLink::first(&link, frame_bytes, &topology)];
    let mut next_epid = host.0 + 1 + topology.endpoints.len() as u16;
    for (number, link) in chdr_links.iter().enumerate().skip(1) {
        let host = (width, Epid(next_epid));
        links.push(DeviceLink::further(&args, number, link, host, &topology, deadline)?);
        next_epid += 1;
    }

    let blocks = ClientZero::read(&*control)?;
    let (rx_chains, tx_chains) =
        (blocks.chains(StreamDirection::Rx), blocks.chains(StreamDirection::Tx));
    reset(&*control, &rx_chains, &tx_chains)?;
    let rx = open_chains(&*control, &topology, &rx_chains, |radio| {
        RxChannel::new(&control, radio.block.port, radio.port)
    })?;
    if rx.is_empty() {
        let reason = no_channel(&blocks, &rx_chains);
        return Err(RadioError::Unusable { address: args.addr, reason });
    }
    let tx = open_chains(&*control, &topology, &tx_chains, |radio| {
        TxChannel::new(&control, radio.block.port, radio.port)
    })?;
    for (direction, chains) in
        [(StreamDirection::Rx, &rx_chains), (StreamDirection::Tx, &tx_chains)]
    {
        chains.iter().try_for_each(|it| complex_gain::reset(&control, direction, it.radio))?;
    }
    let ticks_hz = session.info().clock_hz("radio_clk").ok_or_else(|| RadioError::Unusable {
        address: args.addr,
        reason: "it does not say the frequency of its radio_clk".to_owned(),
    })?;
    if let Some(wanted_hz) = args.master_clock_hz {
        if (ticks_hz / wanted_hz - 1.0).abs() > 1e-6 {
            let reason = format!(
                "its master clock is {ticks_hz} Hz, and not the {wanted_hz} Hz of \
                 master_clock_rate: name a rate that it has"
            );
            return Err(RadioError::Unusable { address: args.addr, reason });
        }
    }
    session.set_tick_period(ticks_hz)?;
    control.set_deadline(None);
    Ok(Device {
        args,
        rx,
        tx,
        control,
        session,
        topology,
        blocks,
        links,
        shared_ports: Mutex::default(),
        width,
        ticks_hz,
        first_stream_epid: Epid(next_epid),
        powered: Mutex::new(POWERED),
    })
}
