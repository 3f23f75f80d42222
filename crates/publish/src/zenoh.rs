//! Messages to the subscribers of a Zenoh network, by the crate of Zenoh.
//!
//! Zenoh acknowledges nothing to a publisher. So a message counts as acknowledged when Zenoh has
//! taken it for its connections while a subscriber was known, before and after: not when the
//! subscriber has it. Without a subscriber Zenoh would throw messages away; here they wait, as for
//! a broker that is away.

use crate::DropCause;
use crate::outlet::{Outcomes, Outlet, OutletError};
use crate::publications::Publications;
use crate::sink::{PublishSink, PublishedItem, SinkParameters};
use ::zenoh::key_expr::KeyExpr;
use ::zenoh::pubsub::Publisher;
use ::zenoh::qos::CongestionControl;
use ::zenoh::{Config, Session, Wait};
use millstream_flow::blocks::RehearsedBlock;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockError, Item};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest wait for a subscriber in one try.
const OPEN_LIMIT: Duration = Duration::from_millis(500);
/// Pause between two looks for a subscriber.
const LOOK: Duration = Duration::from_millis(20);
/// Messages between two looks whether a subscriber is there.
const BATCH: u64 = 256;
/// The longest time between two such looks, unless one message takes longer: who takes nothing for
/// long makes each message wait.
const BATCH_TIME: Duration = Duration::from_millis(50);
/// How long Zenoh waits for a subscriber that takes nothing, before it ends that connection, µs: as
/// long as for one that says nothing.
const STALL_LIMIT: &str = "10000000";
/// Bytes that the kernel keeps for a subscriber: it loses them with its connection.
const SEND_BUFFER: &str = "262144";

/// A key in a Zenoh network.
pub struct ZenohOutlet {
    key: KeyExpr<'static>,
    config: Config,
    session: Option<Session>,
    publisher: Option<Publisher<'static>>,
    /// Messages that Zenoh has taken since the last look for a subscriber.
    taken: u64,
    /// When the first message since then was put.
    began: Option<Instant>,
    /// Why Zenoh did not take a message.
    failure: Option<OutletError>,
}

/// How a sink finds the other members of a Zenoh network.
#[derive(Clone, Copy, Debug, Default)]
pub struct ZenohNetwork<'a> {
    /// A configuration file of Zenoh; its defaults if empty.
    pub config: &'a str,
    /// Endpoints to connect to, with commas, such as `tcp/192.168.20.3:7447`.
    pub connect: &'a str,
    /// Endpoints to listen at, with commas.
    pub listen: &'a str,
    /// Whether it looks for others by multicast, unless the file switches that off.
    pub scouting: bool,
}

impl ZenohOutlet {
    /// Creates the outlet; it joins the network when a sink uses it.
    ///
    /// # Errors
    /// A key that cannot be published to, a wrong endpoint or configuration file.
    pub fn new(key: &str, network: ZenohNetwork<'_>) -> Result<Self, OutletError> {
        let expected = |why: &str| {
            OutletError(format!(
                "`{key}` is not a key to publish to: {why}; expected words between slashes, such \
                 as radio/ts, without * and $"
            ))
        };
        let parsed = KeyExpr::try_from(key.to_owned());
        let parsed = parsed.map_err(|error| expected(&first_line(&error)))?;
        if parsed.is_wild() {
            return Err(expected("it stands for many keys"));
        }
        let config = network.config()?;
        Ok(Self {
            key: parsed,
            config,
            session: None,
            publisher: None,
            taken: 0,
            began: None,
            failure: None,
        })
    }

    /// Joins the network, if that was not done.
    fn join(&mut self) -> Result<(), OutletError> {
        if self.session.as_ref().is_some_and(|session| !session.is_closed()) {
            return Ok(());
        }
        (self.publisher, self.session) = (None, None);
        let cannot = |error| OutletError(format!("cannot join Zenoh: {}", first_line(&error)));
        let session = ::zenoh::open(self.config.clone()).wait().map_err(cannot)?;
        let publisher = session
            .declare_publisher(self.key.clone())
            // The courier waits, not the graph; else Zenoh drops and does not say so.
            .congestion_control(CongestionControl::Block)
            .wait()
            .map_err(cannot)?;
        (self.publisher, self.session) = (Some(publisher), Some(session));
        Ok(())
    }

    fn has_subscriber(&self) -> bool {
        let status = self.publisher.as_ref().map(|publisher| publisher.matching_status().wait());
        matches!(status, Some(Ok(status)) if status.matching())
    }

    fn alone(&self) -> OutletError {
        OutletError(format!("no subscriber of {} is known", self.key))
    }
}

impl ZenohNetwork<'_> {
    fn config(&self) -> Result<Config, OutletError> {
        let mut config = Config::default();
        if !self.config.is_empty() {
            config = Config::from_file(Path::new(self.config)).map_err(|error| {
                let why = first_line(&error);
                OutletError(format!("{} is not a configuration of Zenoh: {why}", self.config))
            })?;
        }
        let mut set = |name: &str, value: &str| {
            config.insert_json5(name, value).map_err(|_| {
                OutletError(format!(
                    "{value} are not endpoints: expected tcp/ADDRESS:PORT, such as \
                     tcp/192.168.20.3:7447, with commas between several"
                ))
            })
        };
        for (name, endpoints) in [("connect", self.connect), ("listen", self.listen)] {
            let list: Vec<_> = endpoints.split(',').map(str::trim).collect();
            if endpoints.trim().is_empty() {
                continue;
            }
            if let Some(other) = list.iter().find(|one| !one.starts_with("tcp/")) {
                return Err(OutletError(format!(
                    "`{other}` is no endpoint of TCP, the only link of this sink: expected \
                     tcp/ADDRESS:PORT, such as tcp/192.168.20.3:7447"
                )));
            }
            set(&format!("{name}/endpoints"), &serde_json::Value::from(list).to_string())?;
        }
        if self.config.is_empty() {
            let wait = "transport/link/tx/queue/congestion_control/block/wait_before_close";
            set(wait, STALL_LIMIT)?;
            set("transport/link/tcp/so_sndbuf", SEND_BUFFER)?;
        }
        if !self.scouting {
            set("scouting/multicast/enabled", "false")?;
        }
        Ok(config)
    }
}

/// What an error says, without the places in Zenoh's source.
fn first_line(error: &::zenoh::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.split(" at /").next().unwrap_or_default().trim_end_matches(['.', ' ']).to_owned()
}

impl Outlet for ZenohOutlet {
    fn name(&self) -> String {
        format!("zenoh {}", self.key)
    }

    fn away_cause(&self) -> DropCause {
        DropCause::ReceiverAway
    }

    fn open(&mut self) -> Result<(), OutletError> {
        (self.taken, self.began, self.failure) = (0, None, None);
        self.join()?;
        let until = Instant::now() + OPEN_LIMIT;
        while !self.has_subscriber() {
            if Instant::now() > until {
                return Err(self.alone());
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn push(&mut self, message: &[u8]) -> bool {
        let began = *self.began.get_or_insert_with(Instant::now);
        let is_full = self.taken >= BATCH || began.elapsed() > BATCH_TIME;
        let Some(publisher) = self.publisher.as_ref().filter(|_| !is_full) else { return false };
        let put = publisher.put(message).wait();
        self.taken += u64::from(put.is_ok());
        self.failure = put
            .err()
            .map(|error| OutletError(format!("Zenoh takes no message: {}", first_line(&error))));
        self.failure.is_none()
    }

    fn exchange(&mut self, _: Instant) -> Result<Outcomes, OutletError> {
        self.began = None;
        // What was put since a subscriber was known, and may have left, goes again to the next.
        if !self.has_subscriber() {
            return Err(self.failure.take().unwrap_or_else(|| self.alone()));
        }
        let acknowledged = std::mem::take(&mut self.taken);
        match self.failure.take() {
            Some(error) if acknowledged == 0 => Err(error),
            _ => Ok(Outcomes { acknowledged, refused: 0 }),
        }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn close(&mut self) -> Result<(), OutletError> {
        self.publisher = None;
        let Some(session) = self.session.take() else { return Ok(()) };
        let closed = session.close().wait();
        closed.map_err(|error| OutletError(format!("cannot leave Zenoh: {}", first_line(&error))))
    }
}

/// Publishes packets, tags and events by Zenoh.
#[derive(BlockParameters)]
#[block(
    zenoh_sink,
    writes,
    items(u8, i8, i16, sc16, f32, cf32),
    with = Publications,
    example = "key = \"radio/ts\""
)]
struct ZenohParameters {
    /// the key, such as radio/ts
    #[parameter(incidental)]
    key: String,
    /// endpoints to connect to, such as tcp/192.168.20.3:7447
    #[parameter(default = "", incidental)]
    connect: String,
    /// endpoints to listen at; any port if empty
    #[parameter(default = "")]
    listen: String,
    /// whether it finds others by multicast
    #[parameter(default = true)]
    scouting: bool,
    /// a configuration file of Zenoh
    #[parameter(default = "")]
    config: String,
    #[parameter(flatten)]
    sink: SinkParameters,
}

impl ZenohParameters {
    fn make<T: PublishedItem>(self, of: &Publications) -> Result<PublishSink<T>, BlockError> {
        let network = ZenohNetwork {
            config: &self.config,
            connect: &self.connect,
            listen: &self.listen,
            scouting: self.scouting,
        };
        self.sink.make(ZenohOutlet::new(&self.key, network)?, of)
    }

    fn rehearse<T: Item>(self, _: &Publications) -> RehearsedBlock<T> {
        SinkParameters::stand_in()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scouting_is_off_whatever_the_file_says() {
        let file = tempfile::NamedTempFile::with_suffix(".json5").unwrap();
        let path = file.path().to_str().unwrap();
        std::fs::write(path, "{ scouting: { multicast: { enabled: true } } }").unwrap();
        for (config, scouting) in [("", true), ("", false), (path, true), (path, false)] {
            let network = ZenohNetwork { config, scouting, ..ZenohNetwork::default() };
            let is_on = network.config().unwrap().get_json("scouting/multicast/enabled").unwrap();
            // Zenoh's own default is on.
            let on = if config.is_empty() { ["null", "true"] } else { ["true"; 2] };
            assert_eq!(on.contains(&&*is_on), scouting, "{config} {scouting}: {is_on}");
        }
    }

    #[test]
    fn wrong_keys_endpoints_and_files_are_told() {
        let error = |key: &str, network| match ZenohOutlet::new(key, network) {
            Ok(outlet) => panic!("{} is accepted", outlet.name()),
            Err(error) => error.to_string(),
        };
        let none = ZenohNetwork::default();
        for key in ["", "/a", "a//b", "a/*", "a/**/b", "a#"] {
            let told = error(key, none);
            assert!(told.starts_with(&format!("`{key}` is not a key to publish to: ")), "{told}");
        }
        let told = error("a", ZenohNetwork { connect: "192.168.20.3", ..none });
        assert!(told.starts_with("`192.168.20.3` is no endpoint of TCP"), "{told}");
        let told = error("a", ZenohNetwork { listen: "tcp/h:1, tcp/", ..none });
        assert!(told.starts_with("[\"tcp/h:1\",\"tcp/\"] are not endpoints: "), "{told}");
        let told = error("a", ZenohNetwork { config: "/no/file", ..none });
        assert!(told.starts_with("/no/file is not a configuration of Zenoh: "), "{told}");
    }
}
