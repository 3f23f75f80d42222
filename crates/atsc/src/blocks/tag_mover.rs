//! Tags through blocks that make more or fewer items than they take.

use millstream_flow::{In, Item, Out, Tag};

/// Tags of a call whose memory is reserved.
const TAGS: usize = 64;

/// Moves each tag to the output item that is made next when its item is taken.
#[derive(Debug)]
pub(super) struct TagMover {
    /// Tags with the index of their output item.
    moved: Vec<(usize, Tag)>,
}

impl TagMover {
    pub fn new() -> Self {
        Self { moved: Vec::with_capacity(TAGS) }
    }

    /// Notes the tags of item `index` of the input for output item `made` of this call.
    pub fn note<T: Item>(&mut self, input: &In<T>, index: usize, made: usize) {
        let tags = input.tags().skip_while(|(at, _)| *at < index);
        self.moved.extend(tags.take_while(|(at, _)| *at == index).map(|(_, tag)| (made, tag)));
    }

    /// Puts the noted tags on the output, before its items are produced.
    pub fn put<T: Item>(&mut self, output: &mut Out<T>) {
        self.moved.drain(..).for_each(|(made, tag)| output.tag(made, tag.key, tag.value));
    }
}
