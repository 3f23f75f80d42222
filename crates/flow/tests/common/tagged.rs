//! Graphs of rate changers with tags on every stream, and their expected output.

use millstream_flow::{
    Block, BlockError, BlockFacts, Context, Graph, In, ItemRatio, Key, Out, Partition, Plan,
    PortVisitor, Ports, Tag, TagRule, WaitMode, Work,
};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::sync::{Arc, Mutex};

const RATES: [ItemRatio; 6] = [
    ItemRatio::ONE,
    ItemRatio::interpolate(2),
    ItemRatio::decimate(2),
    ItemRatio::new(3, 2),
    ItemRatio::new(2, 3),
    ItemRatio::decimate(7),
];

/// Random numbers from a seed.
#[derive(Clone)]
pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::seed_from_u64(seed))
    }

    /// Returns a number from 0 to `below`, exclusive.
    pub fn below(&mut self, below: usize) -> usize {
        self.0.next_u64() as usize % below
    }
}

pub const KEYS: [Key; 3] = [Key::new("a"), Key::new("b"), Key::new("c")];

/// Produces its items' numbers in bites, with given tags.
#[derive(Ports)]
pub struct Tagged {
    pub output: Out<u32>,
    pub items: u64,
    pub tags: Vec<Tag>,
    pub random: Random,
}

impl Block for Tagged {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let first = self.output.position();
        let bite = 1 + self.random.below(3000);
        let room = self.output.slice_mut();
        let items = room.len().min(bite).min((self.items - first) as usize);
        for (index, item) in room[..items].iter_mut().enumerate() {
            *item = first as u32 + index as u32;
        }
        let end = first + items as u64;
        let here = self.tags.iter().take_while(|tag| tag.offset < end).count();
        for tag in self.tags.drain(..here) {
            self.output.tag((tag.offset - first) as usize, tag.key, tag.value);
        }
        self.output.produce(items);
        Ok(if end == self.items { Work::Finished } else { Work::Again(std::time::Duration::ZERO) })
    }
}

/// `interpolation` items out for `decimation` in, whole groups only, in bites.
#[derive(Ports)]
pub struct Ratio {
    pub input: In<u32>,
    pub output: Out<u32>,
    pub rate: ItemRatio,
    pub rule: TagRule,
    pub random: Random,
}

impl Block for Ratio {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (up, down) = (self.rate.interpolation() as usize, self.rate.decimation() as usize);
        let groups = (self.input.slice().len() / down).min(self.output.slice_mut().len() / up);
        let groups = groups.min(1 + self.random.below(300));
        if self.rule == TagRule::Own {
            // Does by hand the same as the runtime.
            for (index, tag) in self.input.tags().take_while(|(i, _)| *i < groups * down) {
                self.output.tag(index * up / down, tag.key, tag.value);
            }
        }
        self.input.consume(groups * down);
        self.output.produce(groups * up);
        Ok(Work::Continue)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.rate(self.rate).tag_rule(self.rule);
    }
}

/// Joins two streams into one.
pub struct Join {
    pub left: In<u32>,
    pub right: In<u32>,
    pub output: Out<u32>,
}

impl Ports for Join {
    fn ports(&mut self, ports: &mut dyn PortVisitor) {
        ports.input("left", &mut self.left);
        ports.output("out", &mut self.output);
        ports.input("right", &mut self.right);
    }
}

impl Block for Join {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let items = self.left.slice().len().min(self.right.slice().len());
        let items = items.min(self.output.slice_mut().len());
        self.left.consume(items);
        self.right.consume(items);
        self.output.produce(items);
        Ok(Work::Continue)
    }
}

/// Keeps the tags it sees.
#[derive(Ports)]
pub struct Keep {
    pub input: In<u32>,
    pub tags: Vec<Tag>,
    pub kept: Arc<Mutex<(u64, Vec<Tag>)>>,
    pub random: Random,
}

impl Block for Keep {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let items = self.input.slice().len().min(1 + self.random.below(5000));
        let position = self.input.position();
        for (index, tag) in self.input.tags() {
            assert_eq!(position + index as u64, tag.offset);
            assert!(index < self.input.slice().len());
            if index < items {
                self.tags.push(tag);
            }
        }
        self.input.consume(items);
        Ok(Work::Continue)
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        *self.kept.lock().unwrap() = (self.input.position(), std::mem::take(&mut self.tags));
        Ok(())
    }
}

/// An expected stream.
#[derive(Clone)]
struct Stream {
    items: u64,
    tags: Vec<Tag>,
    /// Items for one of a source. Joining streams of different rates would stop a graph for ever:
    /// one ring fills while another waits.
    rate: ItemRatio,
}

impl Stream {
    fn random(random: &mut Random) -> Self {
        let items = 20_000 + random.below(60_000) as u64;
        let mut tags: Vec<Tag> = (0..random.below(2500))
            .map(|n| Tag {
                // Every second one in a burst.
                offset: random.below([items as usize, 500][n % 2]) as u64,
                key: KEYS[random.below(KEYS.len())],
                value: (n as u64).into(),
            })
            .collect();
        tags.sort_by_key(|tag| tag.offset);
        Self { items, tags, rate: ItemRatio::ONE }
    }

    /// Returns the output of a block for these inputs.
    fn through(inputs: &[&Self], rate: ItemRatio) -> Self {
        let (up, down) = (u64::from(rate.interpolation()), u64::from(rate.decimation()));
        let items = inputs.iter().map(|input| input.items / down * up).min().unwrap();
        let mut tags = Vec::new();
        for (input, stream) in inputs.iter().enumerate() {
            let mapped =
                stream.tags.iter().map(|tag| Tag { offset: tag.offset * up / down, ..*tag });
            tags.extend(mapped.filter(|tag| tag.offset < items).map(|tag| (tag, input)));
        }
        tags.sort_by_key(|(tag, input)| (tag.offset, *input));
        let source = inputs[0].rate;
        let rate = ItemRatio::new(
            source.interpolation() * rate.interpolation(),
            source.decimation() * rate.decimation(),
        );
        Self { items, tags: tags.into_iter().map(|(tag, _)| tag).collect(), rate }
    }
}

/// A graph, and the expected tags at each of its sinks.
pub struct Case {
    pub graph: Graph,
    pub sinks: Vec<Sink>,
}

pub struct Sink {
    pub name: String,
    expected: Stream,
    kept: Arc<Mutex<(u64, Vec<Tag>)>>,
}

impl Case {
    /// Returns the same case for the same seed.
    pub fn random(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut graph = Graph::new();
        let mut streams: Vec<(String, Stream, bool)> = Vec::new();
        for n in 0..2 + random.below(8) {
            let name = format!("n{n}");
            let stream = if n < 1 + random.below(2) {
                let stream = Stream::random(&mut random);
                let (items, tags) = (stream.items, stream.tags.clone());
                let block = Tagged { output: Out::new(), items, tags, random: random.clone() };
                graph.add(&name, block).unwrap();
                stream
            } else if random.below(4) == 0 {
                let block = Join { left: In::new(), right: In::new(), output: Out::new() };
                graph.add(&name, block).unwrap();
                let left = random.below(streams.len());
                let like = |n: &usize| streams[*n].1.rate == streams[left].1.rate;
                let alike: Vec<usize> = (0..streams.len()).filter(like).collect();
                let right = alike[random.below(alike.len())];
                let ends = [("left", left), ("right", right)].map(|(port, from)| {
                    graph.connect(&streams[from].0, &format!("{name}.{port}")).unwrap();
                    streams[from].2 = true;
                    from
                });
                let inputs = ends.map(|from| &streams[from].1);
                Stream::through(&inputs, ItemRatio::ONE)
            } else {
                let from = random.below(streams.len());
                let rate = RATES[random.below(RATES.len())];
                let rule = [TagRule::Forward, TagRule::Forward, TagRule::Own, TagRule::Drop]
                    [random.below(4)];
                let (up, down) = (rate.interpolation() as usize, rate.decimation() as usize);
                let (input, output) = (In::with_min_items(down), Out::with_min_items(up));
                let block = Ratio { input, output, rate, rule, random: random.clone() };
                graph.add(&name, block).unwrap();
                graph.connect(&streams[from].0, &name).unwrap();
                streams[from].2 = true;
                let mut stream = Stream::through(&[&streams[from].1], rate);
                if rule == TagRule::Drop {
                    stream.tags.clear();
                }
                stream
            };
            streams.push((name, stream, false));
        }
        let mut sinks = Vec::new();
        for (from, expected, is_read) in streams {
            for _ in 0..usize::from(!is_read) + random.below(2) {
                let (kept, name) = (Arc::default(), format!("s{}", sinks.len()));
                let (input, random) = (In::new(), random.clone());
                let keep = Keep { input, tags: Vec::new(), kept: Arc::clone(&kept), random };
                graph.add(&name, keep).unwrap();
                graph.connect(&from, &name).unwrap();
                sinks.push(Sink { name, expected: expected.clone(), kept });
            }
        }
        Self { graph, sinks }
    }

    /// Runs with a plan and compares.
    pub fn run(self, plan: &Plan) -> u64 {
        self.run_by(|graph| {
            graph.run(plan).unwrap();
        })
    }

    /// Runs with `run` to the end, and compares.
    pub fn run_by(self, run: impl FnOnce(Graph)) -> u64 {
        run(self.graph);
        let mut tags = 0;
        for sink in &self.sinks {
            let kept = sink.kept.lock().unwrap();
            assert_eq!(kept.0, sink.expected.items, "items of {}", sink.name);
            let differ = kept.1.iter().zip(&sink.expected.tags).position(|(a, b)| a != b);
            let [found, wanted] = [&kept.1, &sink.expected.tags]
                .map(|tags| differ.map(|at| &tags[at..(at + 5).min(tags.len())]));
            assert_eq!(found, wanted, "{} from {differ:?}", sink.name);
            assert_eq!(kept.1.len(), sink.expected.tags.len(), "tags of {}", sink.name);
            tags += kept.1.len() as u64;
        }
        tags
    }
}

/// All blocks in one partition, each alone, and assigned at random to three.
pub fn plans(graph: &Graph, seed: u64) -> [Plan; 3] {
    let names: Vec<String> = graph.block_names().map(str::to_owned).collect();
    let partition =
        |name: String, blocks| Partition { name, blocks, cpu: None, wait: WaitMode::Park };
    let each = names.iter().map(|name| partition(name.clone(), vec![name.clone()])).collect();
    let mut random = Random::new(seed);
    let mut dealt: [Vec<String>; 3] = Default::default();
    names.iter().for_each(|name| dealt[random.below(3)].push(name.clone()));
    let dealt = dealt.into_iter().enumerate().map(|(n, blocks)| partition(format!("p{n}"), blocks));
    [
        Plan::single(graph, WaitMode::Park),
        Plan { partitions: each, ..Plan::default() },
        Plan { partitions: dealt.collect(), ..Plan::default() },
    ]
}
