//! Tests of the walk on graphs of known devices.

use millstream_wire::regs::client_zero::BlockInfo;

use super::*;

const REPLAY: u32 = 0x4E91_A000;

/// A graph under construction: blocks behind `endpoints` endpoints.
fn graph(endpoints: u16, blocks: &[(u32, u8)]) -> ClientZero {
    let blocks = blocks.iter().zip(1 + endpoints..).map(|(&(noc_id, ports), index)| DeviceBlock {
        index,
        port: index,
        noc_id,
        info: BlockInfo { inputs: ports, outputs: ports, ..BlockInfo::default() },
        mtu_log2: 10,
    });
    let blocks = blocks.collect();
    ClientZero { protocol: 0x100, device_type: 0, endpoints, blocks, edges: Vec::new() }
}

impl ClientZero {
    /// Connects places in a row: (index, port).
    fn wire(&mut self, places: &[(u16, u8)]) {
        for pair in places.windows(2) {
            let [(src_index, src_port), (dst_index, dst_port)] = [pair[0], pair[1]];
            self.edges.push(Edge { src_index, src_port, dst_index, dst_port });
        }
    }

    fn ways(&self, direction: StreamDirection) -> Vec<String> {
        self.chains(direction).iter().map(|chain| chain.describe(self)).collect()
    }
}

/// Two endpoints, then DUC (3), DDC (4), Radio (5), DmaFIFO (6).
fn e320() -> ClientZero {
    let (duc, ddc, radio) = ((noc_id::DUC, 2), (noc_id::DDC, 2), (noc_id::RADIO, 2));
    let mut graph = graph(2, &[duc, ddc, radio, (noc_id::DMA_FIFO, 2)]);
    for port in 0..2u8 {
        let sep = 1 + u16::from(port);
        graph.wire(&[(sep, 0), (3, port), (5, port), (4, port), (sep, 0)]);
    }
    graph
}

#[test]
fn chains_lead_through_the_rate_changes_to_the_endpoints() {
    let graph = e320();
    let rx = ["Radio#0:0 > DDC#0:0 > endpoint 0", "Radio#0:1 > DDC#0:1 > endpoint 1"];
    let tx = ["endpoint 0 > DUC#0:0 > Radio#0:0", "endpoint 1 > DUC#0:1 > Radio#0:1"];
    assert_eq!(graph.ways(StreamDirection::Rx), rx);
    assert_eq!(graph.ways(StreamDirection::Tx), tx);
    let chain = &graph.chains(StreamDirection::Rx)[1];
    assert_eq!((&chain.endpoint, chain.converter().unwrap().port), (&Ok(1), 1));
    assert_eq!(chain.blocks().map(|block| block.index).collect::<Vec<_>>(), [5, 4]);
}

#[test]
fn a_radio_alone_is_wired_to_its_endpoint() {
    let mut graph = graph(1, &[(noc_id::RADIO, 1)]);
    graph.wire(&[(1, 0), (2, 0), (1, 0)]);
    assert_eq!(graph.ways(StreamDirection::Rx), ["Radio#0:0 > endpoint 0"]);
    assert_eq!(graph.chains(StreamDirection::Tx)[0].converter(), None);
}

#[test]
fn several_radios_have_their_own_converters() {
    let (duc, ddc, radio) = ((noc_id::DUC, 1), (noc_id::DDC, 1), (noc_id::RADIO, 1));
    let mut graph = graph(3, &[duc, ddc, radio, duc, ddc, radio, (REPLAY, 1)]);
    graph.wire(&[(1, 0), (4, 0), (6, 0), (5, 0), (1, 0)]);
    graph.wire(&[(2, 0), (7, 0), (9, 0), (8, 0), (2, 0)]);
    graph.wire(&[(3, 0), (10, 0), (3, 0)]);
    let rx = ["Radio#0:0 > DDC#0:0 > endpoint 0", "Radio#1:0 > DDC#1:0 > endpoint 1"];
    assert_eq!(graph.ways(StreamDirection::Rx), rx);
    assert_eq!(graph.name(10), "Replay#0");
}

#[test]
fn a_queue_on_the_way_is_harmless_and_an_unknown_block_makes_the_channel_unusable() {
    let (ddc, radio) = ((noc_id::DDC, 1), (noc_id::RADIO, 3));
    let mut graph = graph(2, &[radio, ddc, (noc_id::DMA_FIFO, 1), (0xABCD_0000, 1)]);
    graph.wire(&[(3, 0), (4, 0), (5, 0), (1, 0)]);
    graph.wire(&[(3, 1), (6, 0), (2, 0)]);
    assert_eq!(
        graph.ways(StreamDirection::Rx),
        [
            "Radio#0:0 > DDC#0:0 > DmaFIFO#0:0 > endpoint 0",
            "Radio#0:1: unusable, because ABCD0000#0 lies on its way, and this host cannot set it",
            "Radio#0:2: unusable, because output 2 of Radio#0 is not connected",
        ]
    );
    let tx = graph.ways(StreamDirection::Tx);
    assert_eq!(tx[0], "Radio#0:0: unusable, because input 0 of Radio#0 is not connected");
}

#[test]
fn a_strange_graph_ends_the_walk() {
    let (ddc, radio, queue) = ((noc_id::DDC, 1), (noc_id::RADIO, 2), (noc_id::DMA_FIFO, 2));
    let mut graph = graph(1, &[radio, ddc, ddc, queue]);
    graph.wire(&[(2, 0), (3, 0), (4, 0), (1, 0)]);
    // A queue whose output 0 leads to its own input 1, and that to its input 0.
    graph.wire(&[(2, 1), (5, 0), (5, 1)]);
    graph.edges.push(Edge { src_index: 5, src_port: 1, dst_index: 5, dst_port: 0 });
    let ways = graph.ways(StreamDirection::Rx);
    assert!(ways[0].ends_with("DDC#1 is a second rate change on its way"), "{}", ways[0]);
    assert!(ways[1].ends_with("its way has more than 8 blocks"), "{}", ways[1]);
    // An index behind the last block, and a port that the block does not have.
    graph.edges = vec![Edge { src_index: 2, src_port: 0, dst_index: 99, dst_port: 0 }];
    graph.edges.push(Edge { src_index: 2, src_port: 1, dst_index: 3, dst_port: 7 });
    let ways = graph.ways(StreamDirection::Rx);
    assert!(ways[0].contains("index 99 lies on its way"), "{}", ways[0]);
    assert!(ways[1].contains("DDC#0 lies on its way"), "{}", ways[1]);
}
