//! Blocks that take items of the receiver one by one.

use millstream_flow::{
    Block, BlockError, BlockFacts, Context, In, Item, Out, Ports, Tag, TagRule, TagValue, Work,
};

/// Tags of a call whose memory is reserved.
const TAGS: usize = 64;

/// A stage of the receiver that makes a few items, or none, of each that it takes.
pub trait ReceiverStage: Send + 'static {
    /// Items of the input.
    type Input: Item;
    /// Items of the output.
    type Output: Item;
    /// The most items that one of the input makes.
    const MADE: usize;
    /// The most items that the end of the stream makes.
    const LAST: usize;
    /// Whether an item of the input makes the item behind those that it completes.
    const IS_LATE: bool = false;

    /// Takes an item; returns the number of items that it wrote into `output`.
    fn process(&mut self, item: &Self::Input, output: &mut [Self::Output]) -> usize;

    /// Ends the stream; returns the number of items that it wrote into `output`, and 0 when it is
    /// called again.
    fn finish(&mut self, _output: &mut [Self::Output]) -> usize {
        0
    }

    /// Returns a tag for the first item that an item of the input makes.
    fn tag(&self, _item: &Self::Input) -> Option<(millstream_flow::Key, TagValue)> {
        None
    }

    /// Called when items were made.
    fn report(&mut self) {}

    /// See [`Block::facts`]. Tags move as [`StageBlock`] says, whatever is stated here.
    fn facts(&self, facts: &mut BlockFacts);
}

/// The block of a [`ReceiverStage`]: ports `in` and `out`. A tag moves to the item that is made
/// next when its item is taken.
#[derive(Debug, Ports)]
pub struct StageBlock<S: ReceiverStage> {
    /// Items to process.
    pub input: In<S::Input>,
    /// Processed items.
    pub output: Out<S::Output>,
    stage: S,
    /// The tags of a call, with the index of their item of the output.
    tags: Vec<(usize, Tag)>,
}

impl<S: ReceiverStage> StageBlock<S> {
    pub(super) fn of(stage: S) -> Self {
        let output = Out::with_min_items(S::MADE.max(S::LAST));
        Self { input: In::new(), output, stage, tags: Vec::with_capacity(TAGS) }
    }
}

impl<S: ReceiverStage> Block for StageBlock<S> {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let Self { input, output, stage, tags } = self;
        let (items, room) = (input.slice(), output.slice_mut());
        let count = items.len().min(room.len() / S::MADE);
        let mut made = 0;
        for (index, item) in items[..count].iter().enumerate() {
            let before = made;
            made += stage.process(item, &mut room[made..]);
            let at = if S::IS_LATE { made } else { before };
            let here = input.tags().skip_while(|(tagged, _)| *tagged < index);
            tags.extend(here.take_while(|(tagged, _)| *tagged == index).map(|(_, tag)| (at, tag)));
            if let Some((key, value)) = stage.tag(item) {
                tags.push((at, Tag { offset: 0, key, value }));
            }
        }
        if input.is_ended() && count == items.len() && made + S::LAST <= room.len() {
            made += stage.finish(&mut room[made..]);
        }
        if made > 0 {
            stage.report();
        }
        tags.drain(..).for_each(|(at, tag)| output.tag(at, tag.key, tag.value));
        input.consume(count);
        output.produce(made);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        self.stage.facts(facts);
        facts.tag_rule(TagRule::Own);
    }
}
