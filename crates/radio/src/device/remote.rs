//! Streams to other hosts: the device's transport adapters, and its routes.

use std::ops::RangeInclusive;

use millstream_link::port::PortOptions;
use millstream_wire::Epid;
use rmpv::Value;

use super::Device;
use crate::channel::RxChannel;
use crate::graph::StreamDirection;
use crate::{RadioError, RxArgs};
use crate::{RemoteDestination, RemoteRxStream};

/// The versions of MPM that know routes to other hosts.
const MPM_WITH_ROUTES: RangeInclusive<(u64, u64)> = (4, 3)..=(u64::MAX, u64::MAX);

/// The number of a transport adapter, and what it can do.
const INSTANCE: &str = "ta_inst";
const ROUTES: &str = "rx_routing";
const REMOVES_HEADERS: &str = "rx_hdr_removal";

/// A transport adapter, as the device describes it.
#[derive(Debug, PartialEq, Eq)]
struct TransportAdapter {
    name: String,
    abilities: Vec<(String, String)>,
}

impl TransportAdapter {
    /// Returns the adapters in an answer: a map of maps, or of texts such as `ta_inst=0,…`.
    fn all(answer: &Value) -> Vec<Self> {
        let entries = answer.as_map().map_or(&[][..], Vec::as_slice);
        let text = |value: &Value| match value.as_str() {
            Some(text) => text.to_owned(),
            None => value.to_string(),
        };
        let abilities = |value: &Value| match value {
            Value::Map(pairs) => {
                pairs.iter().map(|(key, value)| (text(key), text(value))).collect()
            }
            other => {
                let told = text(other);
                let pairs = told.split(',').filter_map(|pair| pair.split_once('='));
                pairs.map(|(key, value)| (key.trim().into(), value.trim().into())).collect()
            }
        };
        let adapter = |(name, told): &(Value, Value)| {
            Some(Self { name: name.as_str()?.to_owned(), abilities: abilities(told) })
        };
        entries.iter().filter_map(adapter).collect()
    }

    fn get(&self, key: &str) -> Option<&str> {
        self.abilities.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    fn can(&self, what: &str) -> bool {
        self.get(what).is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"))
    }
}

/// Returns the adapter of a link through the transport of this instance, which must be able to send
/// to `to`.
fn choose<'a>(
    all: &'a [TransportAdapter],
    transport: u16,
    to: &RemoteDestination,
) -> Result<&'a TransportAdapter, String> {
    let known: Vec<_> = all.iter().map(|adapter| adapter.name.as_str()).collect();
    let known = known.join(", ");
    if all.is_empty() {
        let reason = "it has no transport adapter that sends samples to another host: use a device \
                      and an image with one, or `millstream relay`";
        return Err(reason.to_owned());
    }
    // What the crossbar sends to this link never passes another one.
    let of_link =
        |adapter: &&TransportAdapter| adapter.get(INSTANCE) == Some(transport.to_string().as_str());
    let adapter = all.iter().find(of_link).ok_or_else(|| {
        format!(
            "none of its transport adapters ({known}) is that of this link: open the device by the \
             address of one of them"
        )
    })?;
    let lacks = |what| format!("its transport adapter {} cannot {what}", adapter.name);
    if !adapter.can(ROUTES) {
        return Err(lacks("send samples to another host: use another adapter or image"));
    }
    if !(to.full_packets || adapter.can(REMOVES_HEADERS)) {
        return Err(lacks("send samples without headers: ask for full packets"));
    }
    Ok(adapter)
}

impl Device {
    /// Opens a receive stream whose samples go to another host, without passing through this one.
    /// The path of the other host may carry less than that of this one: then set
    /// [`RxArgs::samples_per_packet`].
    ///
    /// The adapter of this stream's link sends them. The route is kept until another stream of the
    /// channel is opened, by this program or the next one.
    ///
    /// # Errors
    /// Those of [`Device::rx_stream`]; [`RadioError::Unusable`] for a device or an adapter without
    /// this ability, which MPM has from 4.3 (UHD 4.4) on; [`RadioError::Rpc`] when the device
    /// refuses the destination.
    pub fn remote_rx_stream(
        &self,
        args: RxArgs,
        to: &RemoteDestination,
    ) -> Result<RemoteRxStream, RadioError> {
        let unusable = |reason| RadioError::Unusable { address: self.address(), reason };
        let mpm = self.info().mpm;
        if !MPM_WITH_ROUTES.contains(&mpm) {
            let (major, minor) = mpm;
            return Err(unusable(format!(
                "its MPM {major}.{minor} cannot send samples to another host: update its file \
                 system to UHD 4.4 or newer, or use `millstream relay`"
            )));
        }
        let (channel, available) = (args.channel, self.rx.len());
        let what = "receive";
        let none = RadioError::NoSuchChannel { what, channel, available };
        let chain = self.rx.get(channel).ok_or(none)?;
        let answer = self.session.call("get_chdr_xport_adapters", &[])?;
        let lease = chain.channel.lease().ok_or(RadioError::ChannelBusy { what, channel })?;
        let (number, path) =
            self.path(StreamDirection::Rx, chain, &self.rx, RxChannel::is_leased)?;
        let all = TransportAdapter::all(&answer);
        let adapter = choose(&all, self.links[number].transport, to).map_err(unusable)?;
        let port = self.stream_port(number, &path, &PortOptions::default())?;
        RemoteRxStream::open(port, path, lease, &args, || self.divert(&adapter.name, path.epid, to))
    }

    /// Has the packets to an endpoint sent to another host.
    fn divert(&self, adapter: &str, epid: Epid, to: &RemoteDestination) -> Result<(), RadioError> {
        let mode = if to.full_packets { "full_packet" } else { "raw_payload" };
        let mut route = vec![
            ("dest_addr", to.socket.ip().to_string()),
            ("dest_port", to.socket.port().to_string()),
            ("stream_mode", mode.to_owned()),
        ];
        route.extend(to.mac.clone().map(|mac| ("dest_mac_addr", mac)));
        let route = route.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        let arguments = [adapter.into(), epid.0.into(), Value::Map(route)];
        self.session.call("add_remote_chdr_route", &arguments)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_adapter_is_that_of_the_link_and_must_be_able() {
        let told = |text: &str| Value::from(text);
        let pairs = vec![("ta_inst".into(), 1.into()), ("rx_routing".into(), true.into())];
        let all = TransportAdapter::all(&Value::Map(vec![
            ("sfp0".into(), told("ta_inst=0, rx_routing=1,rx_hdr_removal=1")),
            ("sfp1".into(), Value::Map(pairs)),
            ("sfp2".into(), told("ta_inst=2,rx_routing=0")),
            ("sfp3".into(), told("ta_inst=3,rx_routing=False,rx_hdr_removal=True")),
            ("sfp4".into(), told("ta_inst=4,rx_routing=True,rx_hdr_removal=no")),
            (Value::Nil, Value::Nil),
        ]));
        let plain = RemoteDestination::new("10.0.0.9:1234".parse().unwrap());
        let full = plain.clone().with_full_packets();
        let name = |transport, to: &RemoteDestination| {
            choose(&all, transport, to).map(|adapter| adapter.name.clone())
        };
        assert_eq!(name(0, &plain), Ok("sfp0".to_owned()));
        assert_eq!(name(1, &full), Ok("sfp1".to_owned()));
        assert!(name(1, &plain).unwrap_err().contains("ask for full packets"));
        for (transport, adapter) in [(2, "sfp2"), (3, "sfp3")] {
            let lacks = format!("{adapter} cannot send samples to another");
            assert!(name(transport, &full).unwrap_err().contains(&lacks));
        }
        assert!(name(4, &plain).unwrap_err().contains("ask for full packets"));
        assert!(name(7, &full).unwrap_err().contains("(sfp0, sfp1, sfp2, sfp3, sfp4)"));
        for answer in [Value::Nil, Value::Map(Vec::new()), 7.into(), "sfp0".into()] {
            let none = TransportAdapter::all(&answer);
            assert!(choose(&none, 0, &full).unwrap_err().contains("`millstream relay`"));
        }
    }
}
