//! The sinks by name, for graph files.

use crate::mqtt::{MqttLogin, MqttOutlet};
use crate::nats::{NatsLogin, NatsOutlet};
use crate::publications::Publications;
use crate::sink::{MESSAGES, PublishOptions, PublishSink};
use crate::{JsonlOutlet, Outlet, OutletError};
use millstream_flow::blocks::RehearsedBlock;
use millstream_flow::registry::{BlockDeclaration, BlockType, ParameterKind, Parameters, Registry};
use millstream_flow::{BlockError, for_item};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::time::Duration;

/// Adds the sinks to a registry, and returns the list of those that it will make.
///
/// # Panics
/// If the registry has them already.
pub fn register(registry: &mut Registry) -> Publications {
    let publications = Publications::new();
    let jsonl =
        BlockType::declare("jsonl_sink", "Writes packets, tags and events to a file of lines.")
            .writes_file("path", "the file (JSON Lines); -: standard output")
            .example("path = \"packets.jsonl\"");
    registry.register(sink(jsonl, &publications, |parameters| {
        let outlet = JsonlOutlet::new(Path::new(parameters.text("path")));
        Ok(Box::new(outlet.existing(parameters.existing())))
    }));
    let nats =
        BlockType::declare("nats_sink", "Publishes packets, tags and events at a NATS server.")
            .required("subject", ParameterKind::Text, "the subject, such as radio.ts")
            .optional("server", "127.0.0.1:4222", "host and port of the server")
            .optional("user", "", "user, if the server wants one")
            .optional("password", "", "the user's password")
            .optional("token", "", "token, if the server wants one")
            .example("subject = \"radio.ts\"")
            .incidental("subject")
            .incidental("server");
    registry.register(sink(nats, &publications, |parameters| {
        let login = NatsLogin {
            user: parameters.text("user").to_owned(),
            password: parameters.text("password").to_owned(),
            token: parameters.text("token").to_owned(),
        };
        let (server, subject) = (parameters.text("server"), parameters.text("subject"));
        Ok(Box::new(NatsOutlet::new(server, subject, login)?))
    }));
    let mqtt =
        BlockType::declare("mqtt_sink", "Publishes packets, tags and events at an MQTT broker.")
            .required("topic", ParameterKind::Text, "the topic, such as radio/ts")
            .optional("broker", "127.0.0.1:1883", "host and port of the broker")
            .optional("client", "", "name at the broker; a random one if empty")
            .optional("user", "", "user, if the broker wants one")
            .optional("password", "", "the user's password")
            .example("topic = \"radio/ts\"")
            .incidental("topic")
            .incidental("broker");
    registry.register(sink(mqtt, &publications, |parameters| {
        let client = match parameters.text("client") {
            "" => unique_client(),
            name => name.to_owned(),
        };
        let user = parameters.text("user").to_owned();
        let password = parameters.text("password").to_owned();
        let login = MqttLogin { client, user, password };
        let (broker, topic) = (parameters.text("broker"), parameters.text("topic"));
        Ok(Box::new(MqttOutlet::new(broker, topic, login)?))
    }));
    #[cfg(feature = "zenoh")]
    registry.register(zenoh_sink(&publications));
    publications
}

#[cfg(feature = "zenoh")]
fn zenoh_sink(publications: &Publications) -> BlockType {
    let zenoh = BlockType::declare("zenoh_sink", "Publishes packets, tags and events by Zenoh.")
        .required("key", ParameterKind::Text, "the key, such as radio/ts")
        .optional("connect", "", "endpoints to connect to, such as tcp/192.168.20.3:7447")
        .optional("listen", "", "endpoints to listen at; any port if empty")
        .optional("scouting", true, "whether it finds others by multicast")
        .optional("config", "", "a configuration file of Zenoh")
        .example("key = \"radio/ts\"")
        .incidental("key")
        .incidental("connect");
    sink(zenoh, publications, |parameters| {
        let network = crate::ZenohNetwork {
            config: parameters.text("config"),
            connect: parameters.text("connect"),
            listen: parameters.text("listen"),
            scouting: parameters.boolean("scouting"),
        };
        Ok(Box::new(crate::ZenohOutlet::new(parameters.text("key"), network)?))
    })
}

/// Returns a client's name that no other sink has, on any machine or in any container: 23 letters
/// and digits, which every broker takes (MQTT 3.1.1, clause 3.1.3.1).
fn unique_client() -> String {
    // The keys of the hash are random.
    let random = RandomState::new().hash_one(std::process::id());
    format!("millstream{:013x}", random >> 12)
}

/// Adds what all sinks have in common to a type.
fn sink(
    block_type: BlockDeclaration,
    publications: &Publications,
    outlet: impl Fn(&Parameters) -> Result<Box<dyn Outlet>, OutletError> + Send + Sync + 'static,
) -> BlockType {
    let publications = publications.clone();
    block_type
        .optional("stream", "", "name of the stream in the messages")
        .optional("items", 188i64, "items of a message; 0 publishes no items")
        .choice("item", &["u8", "i8", "i16", "sc16", "f32", "cf32"], "type of the items")
        .optional("tags", true, "whether tags are published")
        .optional("rate_hz", 0.0, "items per second, for times; 0: as the tag rx_rate_hz says")
        .optional("metrics_s", 0.0, "interval of the graph's metrics, seconds; 0 for none")
        .optional("queue_kib", 4096i64, "size of the queue, KiB")
        .optional("linger_s", 2.0, "longest wait for acknowledgements at the end, seconds")
        .writes(
            |parameters| {
                for_item!(parameters, T: u8 | i8 | i16 | sc16 | f32 | cf32 =>
                    RehearsedBlock::<T>::sink().with_messages(MESSAGES.to_vec()))
            },
            move |parameters| {
                let options = options(parameters)?;
                let outlet = outlet(parameters)?;
                let of = &publications;
                for_item!(parameters, T: u8 | i8 | i16 | sc16 | f32 | cf32 =>
                    PublishSink::<T>::new(outlet, options, of)?)
            },
        )
}

fn options(parameters: &Parameters) -> Result<PublishOptions, BlockError> {
    let seconds = |name: &str| {
        let value = parameters.number(name);
        let time = (value <= 1e6).then(|| Duration::try_from_secs_f64(value).ok()).flatten();
        time.ok_or_else(|| parameters.wrong(name, "seconds, 0 to 1000000"))
    };
    let items: usize = parameters.count("items", 0)?;
    let items = Some(items).filter(|items| *items <= 1 << 24);
    let queue_kib: usize = parameters.count("queue_kib", 1)?;
    let queue_kib = Some(queue_kib).filter(|kib| *kib <= 1 << 22);
    let rate_hz = parameters.number("rate_hz");
    if rate_hz < 0.0 {
        return Err(parameters.wrong("rate_hz", "items per second, or 0"));
    }
    Ok(PublishOptions {
        label: parameters.text("stream").to_owned(),
        items: items.ok_or_else(|| parameters.wrong("items", "0 to 16777216"))?,
        tags: parameters.boolean("tags"),
        rate_hz: Some(rate_hz).filter(|rate| *rate > 0.0),
        metrics_every: seconds("metrics_s")?,
        queue_bytes: queue_kib.ok_or_else(|| parameters.wrong("queue_kib", "1 to 4194304"))? << 10,
        linger: seconds("linger_s")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_has_a_name_of_its_own_that_all_brokers_take() {
        let names: Vec<_> = (0..100).map(|_| unique_client()).collect();
        for (index, name) in names.iter().enumerate() {
            assert_eq!(name.len(), 23, "{name}");
            assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{name}");
            assert!(!names[..index].contains(name), "{name}");
        }
    }

    #[test]
    fn wrong_values_are_told() {
        let mut registry = Registry::builtin();
        register(&mut registry);
        let error = |name: &str, values: &str| {
            let made = registry.make(name, values);
            made.err().expect("an error").to_string()
        };
        for (name, values, expected) in [
            ("nats_sink", "subject = \"a b\"", "`a b` is not a subject to publish to: expected"),
            ("mqtt_sink", "topic = \"a/#\"", "`a/#` is not a topic to publish to: expected"),
            (
                "nats_sink",
                "subject = \"a\"\nserver = \"h\"",
                "`h` is not the address of a broker: ",
            ),
            ("mqtt_sink", "topic = \"a\"\nbroker = \":1\"", "`:1` is not the address of a broker"),
            ("mqtt_sink", "topic = \"a\"\nbroker = \"h:0\"", "`h:0` is not the address of a "),
            ("nats_sink", "subject = \"a\"\npassword = \"x\"", "a password without a user"),
            ("mqtt_sink", "topic = \"a\"\npassword = \"x\"", "a password without a user"),
            ("nats_sink", "subject = \"a\"\nuser = \"u\"\ntoken = \"t\"", "not both"),
            ("jsonl_sink", "path = \"a\"\nitems = -1", "items = `-1`: expected"),
            ("jsonl_sink", "path = \"a\"\nlinger_s = -1", "linger_s = `-1`: expected"),
            ("jsonl_sink", "path = \"a\"\nqueue_kib = 0", "queue_kib = `0`: expected"),
            ("jsonl_sink", "path = \"a\"\nrate_hz = -1", "rate_hz = `-1`: expected"),
        ] {
            let told = error(name, values);
            assert!(told.contains(expected), "{told}");
        }
    }
}
