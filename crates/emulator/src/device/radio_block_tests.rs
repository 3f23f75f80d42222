use super::*;
use crate::device::rx_channel::{NextPacket, RxEvent};
use crate::personality::ImageOptions;
use crate::time::{DeviceClock, SampleClock};
use crate::{DeviceKind, UhdGeneration};
use millstream_wire::ctrl::DataWords;

/// The only radio block of an E320, or the second one of an N310.
struct OneBlock(Radios, usize);

impl OneBlock {
    fn of(kind: DeviceKind, number: usize) -> Self {
        let device = kind.personality();
        let image = Image::new(device, ImageOptions::default());
        Self(Radios::new(&image, device.front_end, 64 * 1024), number)
    }

    fn read(&self, address: u32, timestamp: u64) -> Result<u32, NoRegister> {
        self.0.read(self.1, address, timestamp)
    }

    fn write(&mut self, address: u32, value: u32, now: u64) -> Result<(), NoRegister> {
        self.0.write(self.1, address, value, now)
    }
}

fn block() -> OneBlock {
    OneBlock::of(DeviceKind::E320, 0)
}

#[test]
fn the_shared_registers_read_as_the_host_expects() {
    let block = block();
    assert_eq!(block.read(regs::COMPAT, 0), Ok(1));
    assert_eq!(block.read(regs::SAMPLE_WIDTH, 0), Ok(32 << 16 | 1));
    let time = 0x1122_3344_5566_7788;
    assert_eq!(block.read(regs::TIME_LO, time), Ok(0x5566_7788));
    assert_eq!(block.read(regs::TIME_HI, time), Ok(0x1122_3344));
}

#[test]
fn the_self_test_finds_its_words_again() {
    let mut block = block();
    for channel in 0..2 {
        let at = |offset| regs::channel_register(channel, offset);
        for word in [0xdead_beef, 0, 0x0123_4567 + u32::from(channel)] {
            block.write(at(regs::TX_IDLE_VALUE), word, 0).unwrap();
            assert_eq!(block.read(at(regs::TX_IDLE_VALUE), 0), Ok(word));
            assert_eq!(block.read(at(regs::RX_DATA), 0), Ok(word));
        }
    }
}

#[test]
fn registers_that_do_not_exist_are_errors() {
    let mut block = block();
    for address in [0x1002, 0x1008, 0x1060, 0x1064, 0x1074, 0x1100, 0x7_fffc] {
        assert_eq!(block.write(address, 1, 0), Err(NoRegister), "{address:#x}");
        assert_eq!(block.read(address, 0), Err(NoRegister), "{address:#x}");
    }
    assert_eq!(block.write(0x1010, 1, 0), Err(NoRegister), "status is read-only");
    assert_eq!(block.write(0x1014, 3, 0), Err(NoRegister), "command 3 is undefined");
    assert_eq!(block.write(0x8_0000, 1, 0), Ok(()));
    assert_eq!(block.write(0x0c, 1, 0), Ok(()), "the shared part takes anything");
    assert_eq!(block.read(0x0c, 0), Ok(0));
}

#[test]
fn a_timed_finite_command_takes_length_and_time_from_its_registers() {
    let mut block = block();
    let at = |offset| regs::channel_register(1, offset);
    for (offset, value) in [
        (regs::RX_WORDS_PER_PKT, 100),
        (regs::RX_NUM_WORDS_HI, 1),
        (regs::RX_NUM_WORDS_LO, 2),
        (regs::RX_TIME_HI, 0),
        (regs::RX_TIME_LO, 1000),
        (regs::RX_CMD, 0x8000_0001),
    ] {
        assert_eq!(block.write(at(offset), value, 5), Ok(()));
    }
    let channel = &mut block.0.channels[1];
    let keeper = DeviceClock::new(SampleClock::new(0, 0, 1e6, 1.0));
    assert_eq!(channel.rx.advance(&keeper, 2000), Some(RxEvent::Started { tick: 1000 }));
    let packet = channel.rx.next_packet(channel.packet_samples());
    assert_eq!(packet, Some(NextPacket { tick: 1000, samples: 100, eob: false, end: 1100 }));
    assert_eq!(channel.rx.next_event(&keeper), Some(1000 + 64 * 1024 + 1));
}

#[test]
fn each_block_has_channels_and_registers_of_its_own() {
    let mut second = OneBlock::of(DeviceKind::N310, 1);
    second.write(0x1028, 77, 0).unwrap();
    second.write(0x10A8, 78, 0).unwrap();
    let sizes: Vec<_> = second.0.channels.iter().map(RadioChannel::packet_samples).collect();
    assert_eq!(sizes, [64, 64, 77, 78]);
    assert_eq!([0, 1, 2, 3].map(|channel| second.0.block_of(channel)), [0, 0, 1, 1]);
    assert_eq!(second.write(0x1128, 1, 0), Err(NoRegister), "a block has two channels");
}

#[test]
fn packets_stay_within_the_mtu() {
    let mut block = block();
    for (written, used) in [(0, 1), (1, 1), (2044, 2044), (2045, 2044), (u32::MAX, 2044)] {
        block.write(0x1028, written, 0).unwrap();
        assert_eq!(block.0.channels[0].packet_samples(), used);
    }
}

#[test]
fn a_radio_with_four_samples_in_a_cycle_counts_lengths_in_cycles() {
    let mut block = OneBlock::of(DeviceKind::X410Wide, 0);
    assert_eq!(block.read(regs::SAMPLE_WIDTH, 0), Ok(32 << 16 | 4));
    assert_eq!(block.0.channels[0].packet_samples(), 256);
    for (written, used) in [(0, 4), (1, 4), (500, 2000), (511, 2044), (512, 2044)] {
        block.write(0x1028, written, 0).unwrap();
        assert_eq!(block.0.channels[0].packet_samples(), used);
    }
    block.write(0x1018, 1250, 0).unwrap();
    block.write(0x1014, 1, 7).unwrap();
    let channel = &mut block.0.channels[0];
    let keeper = DeviceClock::new(SampleClock::new(0, 0, 1e6, 1.0));
    assert_eq!(channel.rx.advance(&keeper, 9000), Some(RxEvent::Started { tick: 8 }));
    let mut ends = std::iter::from_fn(|| {
        let packet = channel.rx.next_packet(2000)?;
        channel.rx.take(packet);
        Some((packet.samples, packet.end))
    });
    assert_eq!(ends.by_ref().collect::<Vec<_>>(), [(2000, 2008), (2000, 4008), (1000, 5008)]);
}

#[test]
fn a_block_waits_with_a_command_for_which_there_is_no_slot() {
    let mut block = block();
    block.write(0x1020, 0xffff_ffff, 0).unwrap();
    let stalled = |block: &mut OneBlock, data| {
        let request = CtrlRepr {
            address: 0x1014,
            op: Op::Write,
            data: DataWords::one(data),
            ..CtrlRepr::default()
        };
        block.0.blocks[0].commands.push(request);
        let stalled = block.0.is_stalled(0);
        block.0.blocks[0].commands.clear();
        stalled
    };
    for free in (0..33).rev() {
        assert!(!stalled(&mut block, 0x8000_0002));
        assert_eq!(block.write(0x1014, 0x8000_0002, 0), Ok(()));
        assert_eq!(block.read(0x1010, 0), Ok(free));
    }
    assert!(stalled(&mut block, 0x8000_0002) && stalled(&mut block, 1));
    assert!(!stalled(&mut block, 0), "a stop needs none");
}

#[test]
fn the_map_of_the_generation_has_the_registers() {
    for (kind, features) in [(DeviceKind::E320, 0), (DeviceKind::N310, 3), (DeviceKind::X410, 3)] {
        let mut block = OneBlock::of(kind, 0);
        block.0.speak(UhdGeneration::V4_10.row());
        assert_eq!(block.read(regs::COMPAT, 0), Ok(1 << 16));
        assert_eq!(
            (block.read(0x1004, 0), block.read(0x1404, 0)),
            (Ok(32 << 16 | 1), Ok(0x20_0001))
        );
        assert_eq!(block.read(0x1408, 0), Ok(features));
        assert_eq!(block.read(0x1500, 0), Ok(33), "free slots of channel 1");
        block.write(0x1600, 0xdead_beef, 0).unwrap();
        assert_eq!(block.read(0x152C, 0), Ok(0xdead_beef), "the self-test");
        let gain = if features == 0 { Err(NoRegister) } else { Ok(1 << 30) };
        assert_eq!((block.read(0x1300, 0), block.read(0x1710, 0)), (gain, gain));
        assert_eq!(block.read(0x1010, 0), Err(NoRegister), "an address of the old map");
    }
}
