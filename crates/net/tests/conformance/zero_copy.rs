//! Received payloads are lent where the link received them.

use std::slice;

use millstream_testkit::raw::at;

use crate::rig::{PATIENCE, Rig, content};

/// The received headers stand in front of a lent payload, which therefore lies in its frame.
pub fn a_payload_lies_in_its_frame(rig: &Rig) {
    if !rig.far_carries_frames() {
        return;
    }
    let (mut near, mut far) = (rig.near(), rig.far());
    for size in [1, 64, 1000, 1472] {
        let content = content(size);
        near.tx.send(&content, far.local).unwrap();
        assert_eq!(far.rx.recv_batch(PATIENCE).unwrap(), 1);
        let payload = far.rx.datagram(0).payload;
        assert_eq!(payload, content);
        // SAFETY: a frame of a link is lent whole, and the headers of a datagram are part of it.
        // Were the payload a copy, this would read whatever lies in front of it in a buffer that
        // holds a batch: the test would fail.
        let headers =
            unsafe { slice::from_raw_parts(payload.as_ptr().sub(at::PAYLOAD), at::PAYLOAD) };
        assert_eq!(headers[at::ETHERTYPE..at::IP], [8, 0], "IPv4");
        assert_eq!(headers[at::IP] >> 4, 4);
        assert_eq!(headers[at::IP + 16..at::UDP], far.local.ip().octets(), "destination");
        assert_eq!(headers[at::UDP..][..2], near.local.port().to_be_bytes(), "source port");
        assert_eq!(headers[at::UDP + 2..][..2], far.local.port().to_be_bytes());
        assert_eq!(headers[at::UDP + 4..][..2], (8 + size as u16).to_be_bytes(), "length");
    }
}
