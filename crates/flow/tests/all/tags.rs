//! Tags are at the right items, each once, with any plan.

use crate::common::tagged::{Case, plans};
use millstream_flow::blocks::{Copy, Head};
use millstream_flow::{Buffers, ItemRatio, Key, Mock, Plan, Tag, TagRule, TagValue, keys};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_gives_every_tag_at_its_item(seed in any::<u64>(), small in any::<bool>()) {
        for plan in plans(&Case::random(seed).graph, seed) {
            let bytes = if small { 4096 } else { 1 << 16 };
            let buffers = Buffers { inside_bytes: bytes, between_bytes: bytes, ..plan.buffers };
            Case::random(seed).run(&Plan { buffers, ..plan });
        }
    }
}

#[test]
fn the_graphs_compared_carry_thousands_of_tags() {
    let tags: u64 = (0..20).map(|seed| Case::random(seed).run(&Plan::default())).sum();
    assert!(tags > 20_000, "{tags}");
}

const KEY: Key = Key::new("key");

fn offsets(tags: &[Tag]) -> Vec<u64> {
    tags.iter().map(|tag| tag.offset).collect()
}

#[test]
fn a_mock_takes_tags_in_and_gives_them_back() {
    let mut mock = Mock::new(Copy::<u8>::new());
    mock.tag("in", 1, keys::RX_RATE_HZ, 1e6);
    mock.tag("in", 70, KEY, TagValue::text("mark"));
    mock.feed("in", &[0u8; 50]);
    mock.run().unwrap();
    let tags = mock.take_tags("out");
    assert_eq!(tags, [Tag { offset: 1, key: keys::RX_RATE_HZ, value: 1e6.into() }]);
    mock.feed("in", &[0u8; 50]);
    mock.run().unwrap();
    assert_eq!(offsets(&mock.take_tags("out")), [70]);
}

#[test]
fn tags_behind_the_end_go_with_their_items() {
    let mut mock = Mock::new(Head::<u8>::new(10));
    [0, 9, 10, 11].into_iter().for_each(|offset| mock.tag("in", offset, KEY, true));
    mock.feed("in", &[0u8; 50]);
    mock.run().unwrap();
    assert_eq!(offsets(&mock.take_tags("out")), [0, 9]);
}

#[test]
fn a_tag_for_an_item_that_is_gone_moves_to_the_next() {
    // Declares one out for three in and produces two for three.
    struct Wrong(crate::common::tagged::Ratio);
    impl millstream_flow::Ports for Wrong {
        fn ports(&mut self, ports: &mut dyn millstream_flow::PortVisitor) {
            self.0.ports(ports);
        }
    }

    impl millstream_flow::Block for Wrong {
        fn work(
            &mut self,
            context: &mut millstream_flow::Context,
        ) -> Result<millstream_flow::Work, millstream_flow::BlockError> {
            self.0.work(context)
        }
        fn facts(&self, facts: &mut millstream_flow::BlockFacts) {
            facts.rate(ItemRatio::decimate(3));
        }
    }
    let rate = ItemRatio::new(2, 3);
    let (input, output, rule) =
        (millstream_flow::In::new(), millstream_flow::Out::new(), TagRule::Forward);
    let random = crate::common::tagged::Random::new(1);
    let ratio = crate::common::tagged::Ratio { input, output, rate, rule, random };
    let mut mock = Mock::new(Wrong(ratio));
    mock.feed("in", &[0u32; 30]);
    mock.run().unwrap();
    mock.tag("in", 31, KEY, true);
    mock.feed("in", &[0u32; 30]);
    mock.run().unwrap();
    assert_eq!(offsets(&mock.take_tags("out")), [20]);
}
