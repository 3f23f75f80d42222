//! What tags say stays true around a message to a block that delays, wherever its tags are.

use crate::common::moving::Random;
use millstream_flow::blocks::Copy;
use millstream_flow::{
    Block, BlockError, BlockFacts, Context, Each, Graph, In, Key, Mock, OneToOne, Out,
    ParameterKind, ParameterValue, Plan, Ports, Tag, TagTime, TagValue, Work, keys,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const MARK: Key = Key::new("mark");
const RATE_HZ: f64 = 1e6;

/// The tags of item `item` of a source that puts some on every `every`-th.
fn tags_of(item: u64, every: u64) -> [(Key, TagValue); 3] {
    let number = item / every;
    [
        (keys::RX_FREQ_HZ, (1e6 + 1e3 * number as f64).into()),
        (MARK, number.into()),
        // The clock jumps with each.
        (keys::RX_TIME, TagTime::from_ticks(10_000 + item + 1000 * number, RATE_HZ).into()),
    ]
}

/// Delays the numbers of items and shifts their band: an item says what it is, and the shift.
struct Mixer {
    position: u64,
    delay: u64,
    shift_hz: u64,
    told: Arc<AtomicU64>,
}

const BITS: u32 = 12;
const NOTHING: u64 = u64::MAX;

impl OneToOne for Mixer {
    type Input = u64;
    type Output = u64;

    fn run(&mut self, input: &[u64], output: &mut [u64]) {
        for to in &mut output[..input.len()] {
            let item = self.position.checked_sub(self.delay);
            *to = item.map_or(NOTHING, |item| (item << BITS) | self.shift_hz);
            self.position += 1;
        }
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts.delay(self.delay as f64).band_shift_hz(self.shift_hz as f64);
        for name in ["delay", "shift_hz"] {
            facts.message(name, ParameterKind::Integer, "from now on");
        }
    }

    fn message(&mut self, name: &str, value: &ParameterValue) -> Result<(), BlockError> {
        let ParameterValue::Integer(value) = value else { return Err("expected a number".into()) };
        *(if name == "delay" { &mut self.delay } else { &mut self.shift_hz }) = *value as u64;
        self.told.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn mixer(told: &Arc<AtomicU64>) -> Each<Mixer> {
    Each::new(Mixer { position: 0, delay: 60, shift_hz: 0, told: Arc::clone(told) })
}

/// Reads a stream as a user does: what holds for an item is what was said last.
struct Reader {
    every: u64,
    /// The items before this one were seen. Those that a longer delay shows once more are not
    /// judged: a stream does not say once more what held for them.
    next: u64,
    frequency_hz: f64,
    mark: u64,
    time: (u64, u64),
    judged: u64,
}

impl Reader {
    fn new(every: u64) -> Self {
        Self { every, next: 0, frequency_hz: 0.0, mark: 0, time: (0, 0), judged: 0 }
    }

    fn take(&mut self, tag: &Tag) {
        match (tag.key, tag.value) {
            (keys::RX_FREQ_HZ, TagValue::Number(hz)) => self.frequency_hz = hz,
            (MARK, TagValue::Count(mark)) => self.mark = mark,
            (keys::RX_TIME, TagValue::Time(time)) => {
                self.time = (tag.offset, time.to_ticks(RATE_HZ).unwrap_or(0));
            }
            _ => {}
        }
    }

    fn judge(&mut self, position: u64, item: u64) -> Result<(), String> {
        let (number, shift_hz) = (item >> BITS, item & ((1 << BITS) - 1));
        if item == NOTHING || number < self.next {
            return Ok(());
        }
        self.next = number + 1;
        self.judged += 1;
        let mark = number / self.every;
        let frequency_hz = 1e6 + 1e3 * mark as f64 - shift_hz as f64;
        let expected = (mark, frequency_hz, 10_000 + number + 1000 * mark);
        let time = self.time.1 + position - self.time.0;
        let found = (self.mark, self.frequency_hz, time);
        if found == expected {
            return Ok(());
        }
        Err(format!("output item {position} is item {number}: {found:?}, but {expected:?} is true"))
    }
}

#[test]
fn what_tags_say_is_true_for_every_item_around_messages() {
    const EVERY: u64 = 37;
    let mut judged = 0;
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let mut mock = Mock::with_room(mixer(&Arc::default()), 1024);
        let (mut reader, mut fed) = (Reader::new(EVERY), 0);
        mock.tag("in", 0, keys::RX_RATE_HZ, RATE_HZ);
        let (mut items, mut tags) = (Vec::new(), Vec::new());
        for _ in 0..30 {
            let more = 1 + random.below(150);
            for item in (fed..fed + more).filter(|item| item % EVERY == 0) {
                for (key, value) in tags_of(item, EVERY) {
                    mock.tag("in", item, key, value);
                }
            }
            mock.feed("in", &vec![0u64; more as usize]);
            fed += more;
            match random.below(3) {
                0 => mock.run().unwrap(),
                _ => drop(mock.call().unwrap()),
            }
            items.extend(mock.take::<u64>("out"));
            tags.extend(mock.take_tags("out"));
            for _ in 0..random.below(3) {
                let name = ["delay", "shift_hz"][random.below(2) as usize];
                mock.send(name, random.below(200) as i64).unwrap();
            }
        }
        mock.run().unwrap();
        items.extend(mock.take::<u64>("out"));
        tags.extend(mock.take_tags("out"));
        assert!(tags.is_sorted_by_key(|tag| tag.offset), "{seed}");
        let mut tags = tags.iter().peekable();
        for (item, position) in items.iter().zip(0..) {
            while let Some(tag) = tags.next_if(|tag| tag.offset <= position) {
                reader.take(tag);
            }
            reader.judge(position, *item).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        judged += reader.judged;
    }
    assert!(judged > 400_000, "{judged} items judged");
}

#[test]
fn a_new_band_is_said_on_the_first_item_behind_the_message_although_the_delay_grows() {
    let mut mock = Mock::with_room(mixer(&Arc::default()), 4096);
    mock.tag("in", 0, keys::RX_RATE_HZ, RATE_HZ);
    mock.tag("in", 100, keys::RX_FREQ_HZ, 1e6);
    mock.feed("in", &[0u64; 300]);
    mock.run().unwrap();
    let first = mock.take::<u64>("out").len() as u64;
    mock.take_tags("out");
    mock.send("delay", 1000).unwrap();
    mock.send("shift_hz", 7).unwrap();
    mock.feed("in", &[0u64; 3000]);
    mock.run().unwrap();
    let tags = mock.take_tags("out");
    let said = tags.iter().map(|tag| (tag.offset, tag.key, tag.value)).collect::<Vec<_>>();
    assert_eq!(said, [(first, keys::RX_FREQ_HZ, TagValue::Number(999_993.0))]);
}

const EVERY: u64 = 20_011;

/// Numbers with tags, until it is told to end.
#[derive(Ports)]
struct Source {
    output: Out<u64>,
    ended: Arc<AtomicBool>,
}

impl Block for Source {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        if self.ended.load(Ordering::Relaxed) {
            return Ok(Work::Finished);
        }
        let (position, items) = (self.output.position(), self.output.slice_mut().len());
        if position == 0 {
            self.output.tag(0, keys::RX_RATE_HZ, RATE_HZ);
        }
        let first = position.next_multiple_of(EVERY);
        for item in (first..position + items as u64).step_by(EVERY as usize) {
            for (key, value) in tags_of(item, EVERY) {
                self.output.tag((item - position) as usize, key, value);
            }
        }
        self.output.produce(items);
        Ok(Work::Continue)
    }
}

#[derive(Ports)]
struct Judge {
    input: In<u64>,
    reader: Reader,
}

impl Block for Judge {
    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let position = self.input.position();
        let mut tags = self.input.tags().peekable();
        for (index, item) in self.input.slice().iter().enumerate() {
            while let Some((_, tag)) = tags.next_if(|(at, _)| *at <= index) {
                self.reader.take(&tag);
            }
            self.reader.judge(position + index as u64, *item)?;
        }
        let items = self.input.slice().len();
        self.input.consume(items);
        Ok(Work::Continue)
    }
}

#[test]
fn what_tags_say_is_true_in_a_fused_chain_that_takes_messages() {
    const MESSAGES: u64 = 2000;
    let (told, ended) = <(Arc<AtomicU64>, Arc<AtomicBool>)>::default();
    let mut graph = Graph::new();
    graph.add("source", Source { output: Out::new(), ended: Arc::clone(&ended) }).unwrap();
    graph.add("before", Copy::<u64>::new()).unwrap();
    graph.add("mixer", mixer(&told)).unwrap();
    graph.add("behind", Copy::<u64>::new()).unwrap();
    graph.add("sink", Judge { input: In::new(), reader: Reader::new(EVERY) }).unwrap();
    graph.chain(&["source", "before", "mixer", "behind", "sink"]).unwrap();
    let running = graph.start(&Plan::default()).unwrap();
    let mut random = Random::new(1);
    let deadline = Instant::now() + Duration::from_secs(120);
    for number in 1..=MESSAGES {
        let name = ["delay", "shift_hz"][random.below(2) as usize];
        let most = if name == "delay" { 20_000 } else { 1 << BITS };
        running.send("mixer", name, ParameterValue::Integer(random.below(most) as i64)).unwrap();
        while told.load(Ordering::Relaxed) < number && !running.is_finished() {
            assert!(Instant::now() < deadline, "{number} messages were not taken");
            std::thread::yield_now();
        }
        if running.is_finished() {
            break;
        }
    }
    ended.store(true, Ordering::Relaxed);
    running.wait().unwrap();
    assert_eq!(told.load(Ordering::Relaxed), MESSAGES);
}
