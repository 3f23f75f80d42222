//! Messages to an MQTT broker, with quality of service 1: the broker acknowledges each.

use crate::DropCause;
use crate::foreign::foreign;
use crate::outlet::{Outcomes, Outlet, OutletError};
use crate::publications::Publications;
use crate::sink::{PublishSink, PublishedItem, SinkParameters};
use crate::wire_stream::{WireStream, check_address, check_login};
use millstream_flow::blocks::RehearsedBlock;
use millstream_flow::registry::BlockParameters;
use millstream_flow::{BlockError, Item};
use millstream_wire::mqtt::{self, BrokerPacket, ConnectRepr, DISCONNECT, PINGREQ};
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// The longest time between two packets that the broker is promised.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Messages that may wait for their acknowledgement; their identifiers have 16 bits.
const IN_FLIGHT_MAX: usize = 16_384;
/// Bytes before a message, beside the topic.
const HEAD_BYTES: usize = 16;
/// Bytes of a CONNECT packet, beside its texts.
const CONNECT_BYTES: usize = 64;
/// What a packet may carry (clause 2.2.3), without the longest topic.
const MESSAGE_BYTES_MAX: usize = (1 << 28) - (1 << 17);

/// A topic at an MQTT broker.
pub struct MqttOutlet {
    broker: String,
    topic: String,
    login: MqttLogin,
    head: Vec<u8>,
    connection: Option<MqttConnection>,
    /// The number of next messages that were on a connection that was lost: the broker may have
    /// them already (flag DUP, clause 3.3.1.1).
    again: usize,
}

/// How a client names itself to the broker.
#[derive(BlockParameters, Clone, Debug, Default)]
pub struct MqttLogin {
    /// name at the broker, one for each sink; a random one if empty
    #[parameter(default = "")]
    pub client: String,
    /// user, if the broker wants one
    #[parameter(default = "")]
    pub user: String,
    /// the user's password
    #[parameter(default = "")]
    pub password: String,
}

struct MqttConnection {
    wire: WireStream,
    /// The identifier of the next message.
    next: u16,
    window: Window,
    /// When the last packet was sent, and whether a PINGREQ waits for its answer.
    last: Instant,
    pinged: bool,
}

/// The messages that wait for their acknowledgement.
struct Window {
    /// The identifier of the oldest.
    oldest: u16,
    /// Of the oldest and each one behind it, whether it is acknowledged.
    done: VecDeque<bool>,
}

/// Returns the identifier after `identifier`: 0 is none.
fn after(identifier: u16) -> u16 {
    identifier.checked_add(1).unwrap_or(1)
}

impl Window {
    fn new() -> Self {
        Self { oldest: 1, done: VecDeque::with_capacity(IN_FLIGHT_MAX) }
    }

    /// Notes an acknowledgement; returns false for a message that waits for none.
    fn acknowledge(&mut self, identifier: u16) -> bool {
        // There are 65535 identifiers.
        let (oldest, identifier) = (u32::from(self.oldest), u32::from(identifier));
        let place = (identifier + 65_535 - oldest) % 65_535;
        let waits = self.done.get_mut(place as usize).filter(|done| !**done);
        identifier > 0 && waits.map(|done| *done = true).is_some()
    }

    /// Removes the oldest messages that are acknowledged; returns their number.
    fn take_acknowledged(&mut self) -> u64 {
        let mut count = 0;
        while self.done.front() == Some(&true) {
            self.done.pop_front();
            self.oldest = after(self.oldest);
            count += 1;
        }
        count
    }
}

impl MqttOutlet {
    /// Creates the outlet; it connects when a sink uses it.
    ///
    /// # Errors
    /// A topic that cannot be published to, or no address of a broker.
    pub fn new(broker: &str, topic: &str, login: MqttLogin) -> Result<Self, OutletError> {
        if !mqtt::is_topic(topic) {
            return Err(OutletError(format!(
                "`{topic}` is not a topic to publish to: expected words between slashes, such as \
                 radio/ts, without # and +"
            )));
        }
        check_address(broker)?;
        check_login(&login.user, &login.password)?;
        let head = vec![0; HEAD_BYTES + topic.len()];
        let (broker, topic) = (broker.to_owned(), topic.to_owned());
        Ok(Self { broker, topic, login, head, connection: None, again: 0 })
    }
}

/// Returns the error for bytes of the broker that are none of its packets.
fn not_mqtt(bytes: &[u8], error: millstream_wire::Error) -> OutletError {
    foreign(("the broker", "MQTT 3.1.1"), bytes, error)
}

impl Outlet for MqttOutlet {
    fn name(&self) -> String {
        format!("mqtt {} at {}", self.topic, self.broker)
    }

    fn away_cause(&self) -> DropCause {
        DropCause::BrokerAway
    }

    fn open(&mut self) -> Result<(), OutletError> {
        if let Some(lost) = self.connection.take() {
            self.again += lost.window.done.len();
        }
        let mut wire = WireStream::connect(&self.broker)?;
        let MqttLogin { client, user, password } = &self.login;
        let login = (!user.is_empty()).then_some((user.as_str(), password.as_str()));
        let keep_alive_s = KEEP_ALIVE.as_secs() as u16;
        let mut packet = vec![0; CONNECT_BYTES + client.len() + user.len() + password.len()];
        let length = ConnectRepr { client, login, keep_alive_s }
            .emit(&mut packet)
            .map_err(|error| OutletError(format!("the login is too long: {error}")))?;
        wire.put(&packet[..length]);
        wire.handshake(|received| {
            let bytes = received.bytes;
            match BrokerPacket::parse(bytes).map_err(|error| not_mqtt(bytes, error))? {
                Some((BrokerPacket::Connack(0), length)) => {
                    received.used = length;
                    Ok(true)
                }
                Some((BrokerPacket::Connack(code), _)) => {
                    let reason = BrokerPacket::refusal(code);
                    Err(OutletError(format!("the broker refuses the connection: {reason}")))
                }
                Some(_) => Err(not_mqtt(bytes, millstream_wire::Error::WrongPacketType)),
                None => Ok(false),
            }
        })?;
        self.connection = Some(MqttConnection {
            wire,
            next: 1,
            window: Window::new(),
            last: Instant::now(),
            pinged: false,
        });
        Ok(())
    }

    fn may_choke(&self) -> bool {
        true
    }

    fn message_bytes_max(&self) -> usize {
        MESSAGE_BYTES_MAX
    }

    fn push(&mut self, message: &[u8]) -> bool {
        let Self { connection: Some(connection), head, topic, again, .. } = self else {
            return false;
        };
        let is_full = connection.window.done.len() >= IN_FLIGHT_MAX;
        if is_full || !connection.wire.has_room(head.len() + message.len()) {
            return false;
        }
        let is_again = *again > 0;
        let written = mqtt::emit_publish(topic, connection.next, is_again, message.len(), head);
        let Ok(length) = written else { return false };
        *again = again.saturating_sub(1);
        connection.wire.put(&head[..length]);
        connection.wire.put(message);
        connection.next = after(connection.next);
        connection.window.done.push_back(false);
        true
    }

    fn exchange(&mut self, now: Instant) -> Result<Outcomes, OutletError> {
        let mut progress = Outcomes::default();
        let Some(connection) = &mut self.connection else { return Ok(progress) };
        let is_waiting = !connection.window.done.is_empty();
        if is_waiting {
            connection.last = now;
        } else if now.saturating_duration_since(connection.last) > KEEP_ALIVE / 2 {
            connection.wire.put(&PINGREQ);
            (connection.last, connection.pinged) = (now, true);
        }
        let awaits = is_waiting || connection.pinged;
        let MqttConnection { wire, window, pinged, .. } = connection;
        let result = wire.flush().and_then(|()| {
            wire.receive(now, awaits, |received| {
                let bytes = received.bytes;
                let wrong = |used: usize, error| not_mqtt(&bytes[used..], error);
                while let Some((packet, length)) = BrokerPacket::parse(&bytes[received.used..])
                    .map_err(|error| wrong(received.used, error))?
                {
                    let at = received.used;
                    received.used += length;
                    match packet {
                        // In the order of the messages by clause 4.6; not all brokers keep it.
                        BrokerPacket::Puback(identifier) if window.acknowledge(identifier) => {}
                        BrokerPacket::Pingresp => *pinged = false,
                        _ => return Err(wrong(at, millstream_wire::Error::WrongPacketType)),
                    }
                }
                Ok(false)
            })
        });
        progress.acknowledged = window.take_acknowledged();
        // What has arrived counts, although the connection is gone; the next call tells.
        if progress == Outcomes::default() {
            result?;
        }
        Ok(progress)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.connection.as_ref().map(|connection| connection.wire.descriptor())
    }

    fn close(&mut self) -> Result<(), OutletError> {
        if let Some(mut connection) = self.connection.take() {
            connection.wire.put(&DISCONNECT);
            // All is acknowledged, or given up: a broker that is gone does not matter.
            let _ = connection.wire.flush();
        }
        Ok(())
    }
}

/// Publishes packets, tags and events at an MQTT broker.
#[derive(BlockParameters)]
#[block(
    mqtt_sink,
    writes,
    items(u8, i8, i16, sc16, f32, cf32),
    with = Publications,
    example = "topic = \"radio/ts\""
)]
struct MqttParameters {
    /// the topic, such as radio/ts
    #[parameter(incidental)]
    topic: String,
    /// host and port of the broker
    #[parameter(default = "127.0.0.1:1883", incidental)]
    broker: String,
    #[parameter(flatten)]
    login: MqttLogin,
    #[parameter(flatten)]
    sink: SinkParameters,
}

impl MqttParameters {
    fn make<T: PublishedItem>(self, of: &Publications) -> Result<PublishSink<T>, BlockError> {
        let mut login = self.login;
        if login.client.is_empty() {
            login.client = unique_client();
        }
        self.sink.make(MqttOutlet::new(&self.broker, &self.topic, login)?, of)
    }

    fn rehearse<T: Item>(self, _: &Publications) -> RehearsedBlock<T> {
        SinkParameters::stand_in()
    }
}

/// Returns a client's name that no other sink has, on any machine or in any container: 23 letters
/// and digits, which every broker takes (MQTT 3.1.1, clause 3.1.3.1).
fn unique_client() -> String {
    // The keys of the hash are random.
    let random = RandomState::new().hash_one(std::process::id());
    format!("millstream{:013x}", random >> 12)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_may_come_out_of_order() {
        let mut window = Window::new();
        window.oldest = 65_534;
        window.done.extend([false; 4]);
        // 65534, 65535, 1 and 2.
        assert!(window.acknowledge(1) && window.acknowledge(65_535));
        assert_eq!(window.take_acknowledged(), 0, "the oldest waits");
        for wrong in [0, 1, 3, 65_533] {
            assert!(!window.acknowledge(wrong), "{wrong}");
        }
        assert!(window.acknowledge(65_534));
        assert_eq!((window.take_acknowledged(), window.oldest), (3, 2));
        assert!(window.acknowledge(2));
        assert_eq!((window.take_acknowledged(), window.oldest), (1, 3));
    }

    #[test]
    fn every_client_has_a_name_of_its_own_that_all_brokers_take() {
        let names: Vec<_> = (0..100).map(|_| unique_client()).collect();
        for (index, name) in names.iter().enumerate() {
            assert_eq!(name.len(), 23, "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{name}");
            assert!(!names[..index].contains(name), "{name}");
        }
    }
}
