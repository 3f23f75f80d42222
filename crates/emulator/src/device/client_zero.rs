//! Client zero, the block that describes the device.

use super::block_controls::BlockControl;
use crate::personality::Image;
use millstream_wire::regs::client_zero::{self as regs, BlockInfo, Counts, FlushStatus};

/// Control endpoints: only endpoint 0 takes control packets.
pub(crate) const CONTROL_ENDPOINTS: u16 = 1;
/// Size of the radio's command FIFO, 32-bit words.
pub(crate) const FIFO_WORDS: usize = 1 << 9;
/// Largest packet of a block, bytes.
pub(crate) const MTU_BYTES: usize = 1 << MTU_BYTES_LOG2;

const MTU_BYTES_LOG2: u32 = 13;

/// The upper half of the version register, a constant of the logic.
const SIGNATURE: u32 = 0x12C6 << 16;

/// A bit of the counts that is set in the logic.
const PORT_CONFIG_BIT: u32 = 1 << 30;

/// The numbers of the control clock and of the clock of the time, in images whose clocks have
/// numbers and in others.
const CLOCKS: (u8, u8) = (1, 4);
const NO_CLOCKS: (u8, u8) = (0x3F, 0x3F);

/// Reads a register; returns `None` for an address without one. `controls` has the control
/// registers of the blocks.
pub(crate) fn read(
    image: &Image,
    controls: &[BlockControl],
    device_id: u16,
    address: u32,
) -> Option<u32> {
    let (mut index, offset) = (address / regs::INDEX_STRIDE, address % regs::INDEX_STRIDE);
    // Behind the last block the first registers come again, once.
    if index == u32::from(image.index_of(image.blocks.len() as u16)) {
        index = 0;
    }
    match (index, offset) {
        (0, regs::PROTO_VER) => Some(SIGNATURE | u32::from(image.generation.protocol.version())),
        (0, regs::PORT_CONFIG) => {
            let (endpoints, blocks) = (image.endpoints, image.blocks.len() as u16);
            let counts = Counts { endpoints, blocks, transports: image.links, has_crossbar: true };
            Some(PORT_CONFIG_BIT | counts.to_word().ok()?)
        }
        (0, regs::EDGE_COUNT) => Some(image.edges.len() as u32),
        (0, regs::DEVICE_INFO) => Some(u32::from(image.device_type) << 16 | u32::from(device_id)),
        (0, regs::CTRL_ENDPOINTS) => Some(CONTROL_ENDPOINTS.into()),
        _ if address == regs::ADJACENCY => Some(image.edges.len() as u32),
        _ if address > regs::ADJACENCY => edge(image, address - regs::ADJACENCY),
        _ => indexed(image, controls, index, offset),
    }
}

/// Decodes a write; returns `None` for an address without a register.
pub(crate) fn write(image: &Image, address: u32) -> Option<RegisterWrite> {
    let (index, offset) = (address / regs::INDEX_STRIDE, address % regs::INDEX_STRIDE);
    let exists = index >= 1 && index < u32::from(image.index_of(image.blocks.len() as u16));
    match offset {
        // Flush time-out: what can be flushed is flushed at once.
        regs::BLOCK_INFO if exists => Some(RegisterWrite::None),
        regs::BLOCK_NOC_ID if exists => {
            Some(image.number_of(index).map_or(RegisterWrite::None, RegisterWrite::Control))
        }
        _ => None,
    }
}

/// What a write to a register means, see [`write`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RegisterWrite {
    None,
    /// The value is for the control register of the block with this number.
    Control(usize),
}

/// Returns a connection; `offset` counts bytes from the length of the list.
fn edge(image: &Image, offset: u32) -> Option<u32> {
    if offset % 4 != 0 {
        return None;
    }
    image.edges.get(offset as usize / 4 - 1)?.to_word().ok()
}

fn indexed(image: &Image, controls: &[BlockControl], index: u32, offset: u32) -> Option<u32> {
    let number = image.number_of(index)?;
    let block = &image.blocks[number];
    match offset {
        regs::BLOCK_INFO => {
            let info = BlockInfo {
                version: 1,
                inputs: block.inputs.max(block.kind.least_inputs()),
                outputs: block.outputs,
                fifo_log2: block.fifo_log2,
                max_async_msgs: 0,
            };
            info.to_word().ok()
        }
        regs::BLOCK_NOC_ID => Some(block.kind.noc_id()),
        regs::BLOCK_FLUSH_STATUS => {
            let mtu_log2 = (MTU_BYTES_LOG2 - image.width.bytes().ilog2()) as u8;
            let (active, done) = (controls[number].flushes(), controls[number].has_flushed());
            let numbered = image.numbers_clocks;
            let (control_clock, time_clock) = if numbered { CLOCKS } else { NO_CLOCKS };
            FlushStatus { active, done, mtu_log2, control_clock, time_clock }.to_word().ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DeviceKind;
    use crate::personality::ImageOptions;
    use millstream_wire::regs::client_zero::Edge;

    /// Index of the radio block: behind client zero and the endpoints.
    const RADIO_INDEX: u16 = 3;

    fn image(kind: DeviceKind) -> Image {
        Image::new(kind.personality(), ImageOptions::default())
    }

    fn read_of(image: &Image, address: u32) -> Option<u32> {
        super::read(image, &vec![BlockControl::default(); image.blocks.len()], 7, address)
    }

    fn read(address: u32) -> Option<u32> {
        read_of(&image(DeviceKind::E320Radio), address)
    }

    fn write(address: u32) -> Option<RegisterWrite> {
        super::write(&image(DeviceKind::E320Radio), address)
    }

    #[test]
    fn the_graph_joins_each_endpoint_to_its_radio_port() {
        let count = read(regs::EDGE_COUNT).unwrap();
        assert_eq!(read(regs::ADJACENCY), Some(count));
        let edges: Vec<_> = (1..=count)
            .map(|n| Edge::from_word(read(regs::ADJACENCY + 4 * n).unwrap()))
            .map(|e| ((e.src_index, e.src_port), (e.dst_index, e.dst_port)))
            .collect();
        assert_eq!(edges, [((1, 0), (3, 0)), ((3, 0), (1, 0)), ((2, 0), (3, 1)), ((3, 1), (2, 0))]);
        assert_eq!(read(regs::ADJACENCY + 4 * (count + 1)), None);
    }

    #[test]
    fn the_device_is_an_e320_with_one_radio_of_two_channels() {
        assert_eq!(read(regs::PROTO_VER), Some(0x12C6_0100));
        assert_eq!(read(regs::DEVICE_INFO), Some(0xE320_0007));
        let counts = Counts::from_word(read(regs::PORT_CONFIG).unwrap());
        assert_eq!((counts.endpoints, counts.blocks, counts.transports), (2, 1, 1));
        let at = |offset| read(regs::index_register(RADIO_INDEX, offset)).unwrap();
        let info = BlockInfo::from_word(at(regs::BLOCK_INFO));
        assert_eq!((info.inputs, info.outputs, info.fifo_log2), (2, 2, 9));
        assert_eq!(at(regs::BLOCK_NOC_ID), 0x12AD_1000);
        assert_eq!(FlushStatus::from_word(at(regs::BLOCK_FLUSH_STATUS)).mtu_log2, 10);
    }

    #[test]
    fn what_does_not_exist_is_none() {
        // Also between the words of the adjacency list, and where a short edge number wraps.
        let wrapped = regs::ADJACENCY + 4 * 513;
        for address in
            [0x14, 0x3C, 0x140, 0x4C, 0xffff, 0x1_0001, 0x1_0003, 0x1_0005, wrapped, 0xf_fffc]
        {
            assert_eq!(read(address), None, "{address:#x}");
        }
        assert_eq!(write(0x04), None);
        assert_eq!(write(regs::index_register(4, 4)), None);
        assert_eq!(write(regs::index_register(1, 4)), Some(RegisterWrite::None));
        let control = write(regs::index_register(RADIO_INDEX, 4));
        assert_eq!(control, Some(RegisterWrite::Control(0)));
    }

    #[test]
    fn the_stock_image_has_its_blocks_in_their_order() {
        let device = image(DeviceKind::E320);
        let read = |address| read_of(&device, address).unwrap();
        let counts = Counts::from_word(read(regs::PORT_CONFIG));
        assert_eq!((counts.endpoints, counts.blocks), (4, 4));
        let ids: Vec<_> =
            (5..9).map(|index| read(regs::index_register(index, regs::BLOCK_NOC_ID))).collect();
        assert_eq!(ids, [0xD0C0_0000, 0xDDC0_0000, 0x12AD_1000, 0xF1F0_0000]);
        let info = BlockInfo::from_word(read(regs::index_register(5, regs::BLOCK_INFO)));
        assert_eq!((info.inputs, info.outputs, info.fifo_log2), (2, 2, 6));
        assert_eq!(read_of(&device, regs::index_register(10, regs::BLOCK_INFO)), None);
        let control = super::write(&device, regs::index_register(7, 4));
        assert_eq!(control, Some(RegisterWrite::Control(2)));
        let edge = |n: u32| Edge::from_word(read(regs::ADJACENCY + 4 * n));
        let first = (edge(1).src_index, edge(1).dst_index, edge(4).src_index, edge(4).dst_index);
        assert_eq!(first, (1, 5, 6, 1));
        assert_eq!(read(regs::EDGE_COUNT), 12);
    }
}
