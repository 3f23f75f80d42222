//! Items across the loopback interface.

use millstream_blocks::Sample;
use millstream_blocks::udp::{UdpSink, UdpSource};
use millstream_flow::blocks::{VectorSink, VectorSource};
use millstream_flow::{Block, Graph, Metric, Mock, Plan};
use millstream_testkit::netns::Namespace;
use std::net::UdpSocket;
use std::time::Duration;

#[test]
fn every_item_arrives_once_and_in_order() {
    let idle = Some(Duration::from_millis(300));
    let source = UdpSource::<Sample>::open("udp", "127.0.0.1:0".parse().unwrap(), idle).unwrap();
    let to = source.local();
    let samples: Vec<Sample> = (0..50_003).map(|n| Sample::new(n as f32, -1.0)).collect();
    let mut graph = Graph::new();
    let (sink, arrived) = VectorSink::<Sample>::new();
    graph.add("from", source).unwrap();
    graph.add("arrived", sink).unwrap();
    graph.chain(&["from", "arrived"]).unwrap();
    graph.add("items", VectorSource::new(samples.clone())).unwrap();
    graph.add("to", UdpSink::<Sample>::open("udp", to, 1472).unwrap()).unwrap();
    graph.chain(&["items", "to"]).unwrap();
    let end = graph.run(&Plan::default()).unwrap();
    let count = |block: &str, name| end.block(block).unwrap().metric(name).unwrap();
    assert_eq!(count("from", "queue_drops"), 0.0);
    // 184 samples of 8 bytes fit into 1472.
    assert_eq!(count("to", "datagrams"), 50_003f64 / 184.0 - (50_003 % 184) as f64 / 184.0 + 1.0);
    assert_eq!(count("from", "datagrams"), count("to", "datagrams"));
    assert!(arrived.take() == samples);
}

#[test]
fn bytes_that_are_no_item_are_counted() {
    let bind = "127.0.0.1:0".parse().unwrap();
    let source = UdpSource::<[i16; 2]>::open("udp", bind, None).unwrap();
    let to = source.local();
    let mut mock = Mock::new(source);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&[1, 0, 2, 0, 3], to).unwrap();
    socket.send_to(&[], to).unwrap();
    socket.send_to(&[4, 0, 5, 0, 6, 0, 7, 0], to).unwrap();
    let mut items = Vec::new();
    while items.len() < 3 {
        mock.call().unwrap();
        items.extend(mock.take::<[i16; 2]>("out"));
    }
    assert_eq!(items, [[1, 2], [4, 5], [6, 7]]);
    let metrics = millstream_flow::BlockFacts::of(&mock.block).metrics;
    let partial = metrics.iter().find(|(name, _)| *name == "partial").unwrap();
    assert!(matches!(&partial.1, millstream_flow::Metric::Counter(count) if count.get() == 1));
}

fn count(block: &impl Block, name: &str) -> u64 {
    let found = millstream_flow::BlockFacts::of(block)
        .metrics
        .into_iter()
        .find(|(known, _)| *known == name);
    let Some((_, Metric::Counter(count))) = found else { panic!("no counter {name}") };
    count.get()
}

#[test]
fn datagrams_without_a_way_to_their_destination_are_lost_and_the_graph_goes_on() {
    let Some(namespace) = Namespace::alone() else { return };
    namespace.run(|| {
        // No route leads there, and then an interface that is down.
        for (state, lost) in [("", 1), ("ip route add 10.1.2.3 dev lo", 1)] {
            if !state.is_empty() {
                namespace.sh(state);
                namespace.sh("ip link set lo down");
            }
            let sink = UdpSink::<u8>::open("udp", "10.1.2.3:4000".parse().unwrap(), 64).unwrap();
            let mut mock = Mock::new(sink);
            mock.feed("in", &[1u8; 64]);
            mock.run().unwrap();
            assert_eq!(count(&mock.block, "lost"), lost, "{state}");
        }
    });
}

#[test]
fn a_source_at_the_address_of_a_multicast_group_joins_the_group() {
    let Some(namespace) = Namespace::alone() else { return };
    namespace.run(|| {
        let group = "239.1.1.1:40111".parse().unwrap();
        let error = UdpSource::<u8>::open("udp", group, None).err().unwrap().to_string();
        assert!(error.contains("no route leads to this multicast group"), "{error}");
        namespace.sh("ip link set lo up multicast on");
        namespace.sh("ip route add 239.0.0.0/8 dev lo");
        let mut mock = Mock::new(UdpSource::<u8>::open("udp", group, None).unwrap());
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[1, 2, 3], group).unwrap();
        let mut items = Vec::new();
        while items.len() < 3 {
            mock.call().unwrap();
            items.extend(mock.take::<u8>("out"));
        }
        assert_eq!(items, [1, 2, 3]);
    });
}
