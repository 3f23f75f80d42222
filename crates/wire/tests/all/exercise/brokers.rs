//! What servers of NATS and MQTT send.

use millstream_wire::mqtt::BrokerPacket;
use millstream_wire::nats::ServerOp;

/// Every line and every packet, one behind the other; a part of one is not complete.
pub fn brokers(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((op, length))) = ServerOp::parse(rest) {
        assert!(length > 0 && length <= rest.len());
        assert_eq!(ServerOp::parse(&rest[..length]), Ok(Some((op, length))));
        assert_eq!(ServerOp::parse(&rest[..length - 1]), Ok(None));
        rest = &rest[length..];
    }
    let mut rest = bytes;
    while let Ok(Some((packet, length))) = BrokerPacket::parse(rest) {
        assert!(length > 0 && length <= rest.len());
        assert_eq!(BrokerPacket::parse(&rest[..length]), Ok(Some((packet, length))));
        assert_eq!(BrokerPacket::parse(&rest[..length - 1]), Ok(None));
        rest = &rest[length..];
    }
}
