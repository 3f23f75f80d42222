//! Fuzzes the account of a capture: any file is read to its end, and what is said of it stays
//! within what it has.
#![no_main]

use millstream_link::pcapng::CaptureReader;
use millstream_watch::{CaptureAccount, Captured, LinkType, LossPlace};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(mut reader) = CaptureReader::new(bytes) else { return };
    let (mut account, mut frames) = (CaptureAccount::new(), 0);
    while let Ok(Some(packet)) = reader.next_packet() {
        let Some(link) = LinkType::of(packet.link_type) else { continue };
        account.take(&Captured {
            at_ns: packet.at_ns,
            interface: 0,
            is_outgoing: None,
            link,
            bytes: packet.bytes,
        });
        frames += 1;
    }
    assert_eq!(account.counts().frames, frames);
    for (number, flow) in account.flows().iter().enumerate() {
        let gaps = || account.gaps().filter(|gap| gap.flow == number);
        assert!(gaps().count() as u64 <= 2 * flow.packets() + frames);
        // A packet moves the numbers by less than half of them.
        let before = gaps().filter(|gap| gap.place == LossPlace::Before);
        assert!(before.map(|gap| gap.packets).sum::<u64>() < flow.packets() << 15);
        assert!(flow.reordered() + flow.duplicates() < flow.packets());
        let _ = (flow.rate_hz(), flow.ticks_per_sample(), account.is_from_radio(flow));
    }
});
