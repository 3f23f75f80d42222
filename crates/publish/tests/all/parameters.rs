//! Parameters of sinks.

use millstream_flow::Registry;
use millstream_publish::register;

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
        ("nats_sink", "subject = \"a\"\nserver = \"h\"", "`h` is not the address of a broker: "),
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
