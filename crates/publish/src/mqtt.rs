//! Messages to an MQTT broker, with quality of service 1: the broker acknowledges each.

use crate::DropCause;
use crate::outlet::{Outcomes, Outlet, OutletError};
use crate::wire_stream::WireStream;
use millstream_wire::mqtt::{self, BrokerPacket, ConnectRepr, DISCONNECT, PINGREQ};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// The longest time between two packets that the broker is promised.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Messages that may wait for their acknowledgement; their identifiers have 16 bits.
const IN_FLIGHT_MAX: u16 = 16_384;
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
    again: u16,
}

/// How a client names itself to the broker.
#[derive(Clone, Debug, Default)]
pub struct MqttLogin {
    /// The client's name, one for each sink.
    pub client: String,
    /// User; empty without a login.
    pub user: String,
    /// The password.
    pub password: String,
}

struct MqttConnection {
    wire: WireStream,
    /// The identifiers of the next message, and of the oldest that is not acknowledged.
    next: u16,
    oldest: u16,
    in_flight: u16,
    /// When the last packet was sent, and whether a PINGREQ waits for its answer.
    last: Instant,
    pinged: bool,
}

/// Returns the identifier after `identifier`: 0 is none.
fn after(identifier: u16) -> u16 {
    identifier.checked_add(1).unwrap_or(1)
}

impl MqttOutlet {
    /// Creates the outlet; it connects when a sink uses it.
    ///
    /// # Errors
    /// A topic that cannot be published to.
    pub fn new(broker: &str, topic: &str, login: MqttLogin) -> Result<Self, OutletError> {
        if !mqtt::is_topic(topic) {
            return Err(OutletError(format!(
                "`{topic}` is not a topic to publish to: expected words between slashes, such as \
                 radio/ts, without # and +"
            )));
        }
        let head = vec![0; HEAD_BYTES + topic.len()];
        let (broker, topic) = (broker.to_owned(), topic.to_owned());
        Ok(Self { broker, topic, login, head, connection: None, again: 0 })
    }
}

/// Returns the error for bytes of the broker that are none of its packets.
fn not_mqtt(error: millstream_wire::Error) -> OutletError {
    OutletError(format!("the broker does not speak MQTT 3.1.1: {error}"))
}

impl Outlet for MqttOutlet {
    fn name(&self) -> String {
        format!("mqtt {} at {}", self.topic, self.broker)
    }

    fn away_cause(&self) -> DropCause {
        DropCause::BrokerAway
    }

    fn open(&mut self) -> Result<(), OutletError> {
        self.connection = None;
        let mut wire = WireStream::connect(&self.broker)?;
        let MqttLogin { client, user, password } = &self.login;
        let login = (!user.is_empty()).then_some((user.as_str(), password.as_str()));
        let keep_alive_s = KEEP_ALIVE.as_secs() as u16;
        let mut packet = vec![0; CONNECT_BYTES + client.len() + user.len() + password.len()];
        let length = ConnectRepr { client, login, keep_alive_s }
            .emit(&mut packet)
            .map_err(|error| OutletError(format!("the login is too long: {error}")))?;
        wire.put(&packet[..length]);
        wire.handshake(|bytes, _| match BrokerPacket::parse(bytes).map_err(not_mqtt)? {
            Some((BrokerPacket::Connack(0), length)) => Ok((length, true)),
            Some((BrokerPacket::Connack(code), _)) => {
                let reason = BrokerPacket::refusal(code);
                Err(OutletError(format!("the broker refuses the connection: {reason}")))
            }
            Some(_) => Err(not_mqtt(millstream_wire::Error::WrongPacketType)),
            None => Ok((0, false)),
        })?;
        let last = Instant::now();
        self.connection =
            Some(MqttConnection { wire, next: 1, oldest: 1, in_flight: 0, last, pinged: false });
        Ok(())
    }

    fn message_bytes_max(&self) -> usize {
        MESSAGE_BYTES_MAX
    }

    fn push(&mut self, message: &[u8]) -> bool {
        let Self { connection: Some(connection), head, topic, again, .. } = self else {
            return false;
        };
        let is_full = connection.in_flight >= IN_FLIGHT_MAX;
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
        connection.in_flight += 1;
        true
    }

    fn exchange(&mut self, now: Instant) -> Result<Outcomes, OutletError> {
        let mut progress = Outcomes::default();
        let Some(connection) = &mut self.connection else { return Ok(progress) };
        let MqttConnection { wire, oldest, in_flight, last, pinged, .. } = connection;
        if *in_flight > 0 {
            *last = now;
        } else if now.saturating_duration_since(*last) > KEEP_ALIVE / 2 {
            wire.put(&PINGREQ);
            (*last, *pinged) = (now, true);
        }
        let result = wire.flush().and_then(|()| {
            wire.receive(now, *in_flight > 0 || *pinged, |bytes, _| {
                let mut used = 0;
                while let Some((packet, len)) =
                    BrokerPacket::parse(&bytes[used..]).map_err(not_mqtt)?
                {
                    used += len;
                    match packet {
                        // In the order of the messages (clause 4.6).
                        BrokerPacket::Puback(identifier)
                            if *in_flight > 0 && identifier == *oldest =>
                        {
                            *oldest = after(identifier);
                            *in_flight -= 1;
                            progress.acknowledged += 1;
                        }
                        BrokerPacket::Pingresp => *pinged = false,
                        _ => return Err(not_mqtt(millstream_wire::Error::WrongPacketType)),
                    }
                }
                Ok(used)
            })
        });
        // What has arrived counts, although the connection is gone.
        if let Err(error) = result {
            self.again = *in_flight;
            if progress == Outcomes::default() {
                return Err(error);
            }
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
