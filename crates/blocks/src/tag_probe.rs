//! Statistics of tags.

use millstream_flow::copied_ns;
use millstream_flow::registry::{BlockParameters, WrittenFile};
use millstream_flow::{
    Block, BlockError, BlockFacts, Context, Counter, Gauge, In, Item, Key, Out, Ports, Tag, Work,
};
use millstream_output::{Existing, OutputError, OutputFile};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Passes a stream on, counts its tags, and lists them in a file if one is named. The output may
/// stay unconnected: a probe is a sink, too.
///
/// The list has a line for each tag: the item's number, the key, the value, with tabs between.
///
/// Ports: `in`, `out`.
///
/// # Metrics
/// Of the tags whose key is `key` (of all, if it is empty): `tags`; `last_item`, the number of the
/// item; `last_value`, if that is a number.
#[derive(Debug, Ports)]
pub struct TagProbe<T: Item> {
    /// Items.
    pub input: In<T>,
    /// The same items.
    pub output: Out<T>,
    key: Option<Key>,
    path: Option<PathBuf>,
    existing: Existing,
    list: Option<BufWriter<OutputFile>>,
    tags: Counter,
    last_item: Gauge,
    last_value: Gauge,
}

impl<T: Item> TagProbe<T> {
    /// Creates a probe of the tags of `key`, or of all tags; with a list at `path`.
    #[must_use]
    pub fn new(key: Option<Key>, path: Option<&Path>) -> Self {
        Self {
            input: In::new(),
            output: Out::new(),
            key,
            path: path.map(Path::to_owned),
            existing: Existing::Refuse,
            list: None,
            tags: Counter::new(),
            last_item: Gauge::new(),
            last_value: Gauge::new(),
        }
    }

    /// Lets the list replace an old file of its name, when it is complete.
    #[must_use]
    pub fn overwrite(self) -> Self {
        self.existing(Existing::Replace)
    }

    fn existing(mut self, existing: Existing) -> Self {
        self.existing = existing;
        self
    }

    fn note(&mut self, items: usize) -> std::io::Result<()> {
        for (_, tag) in self.input.tags().take_while(|(index, _)| *index < items) {
            let Tag { offset, key, value } = tag;
            if self.key.is_some_and(|wanted| wanted != key) {
                continue;
            }
            self.tags.add(1);
            self.last_item.set(offset as f64);
            self.last_value.set(value.as_f64().unwrap_or(f64::NAN));
            if let Some(list) = &mut self.list {
                writeln!(list, "{offset}\t{key}\t{value}")?;
            }
        }
        Ok(())
    }

    fn cannot(&self, error: std::io::Error) -> BlockError {
        OutputError::of(self.path.as_deref().unwrap_or(Path::new("")), error).into()
    }
}

impl<T: Item> Block for TagProbe<T> {
    fn start(&mut self) -> Result<(), BlockError> {
        if let Some(path) = &self.path {
            self.list = Some(BufWriter::new(OutputFile::create(path, self.existing)?));
        }
        Ok(())
    }

    fn work(&mut self, _: &mut Context) -> Result<Work, BlockError> {
        let (input, output) = (self.input.slice(), self.output.slice_mut());
        let items = input.len().min(output.len());
        output[..items].copy_from_slice(&input[..items]);
        self.note(items).map_err(|error| self.cannot(error))?;
        self.input.consume(items);
        self.output.produce(items);
        Ok(Work::Continue)
    }

    fn finish(&mut self) -> Result<(), BlockError> {
        let Some(list) = self.list.take() else { return Ok(()) };
        let list = list.into_inner().map_err(|error| self.cannot(error.into_error()))?;
        Ok(list.complete()?)
    }

    fn facts(&self, facts: &mut BlockFacts) {
        facts
            .ns_per_item(copied_ns::<T>())
            .metric("tags", &self.tags)
            .metric("last_item", &self.last_item)
            .metric("last_value", &self.last_value);
    }
}

/// Counts and lists the tags of a stream, and passes it on.
#[derive(BlockParameters)]
#[block(tag_probe, writes, items(cf32, f32, sc16, u8))]
struct TagProbeParameters {
    /// the tags to look at; without it, all
    key: Option<String>,
    /// text file to list them in; -: standard output
    path: Option<WrittenFile>,
}

impl TagProbeParameters {
    fn make<T: Item>(self) -> TagProbe<T> {
        let key = self.key.as_deref().map(Key::intern);
        match self.path {
            Some(file) => TagProbe::new(key, Some(&file.path)).existing(file.existing),
            None => TagProbe::new(key, None),
        }
    }

    /// Makes a probe without a list.
    fn rehearse<T: Item>(self) -> TagProbe<T> {
        Self { path: None, ..self }.make()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Mock;

    #[test]
    fn tags_are_counted_and_listed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tags.txt");
        let mut mock = Mock::new(TagProbe::<u8>::new(Some(Key::new("gain")), Some(&path)));
        let metrics = BlockFacts::of(&mock.block).metrics;
        mock.feed("in", &[0u8; 10]);
        for (item, key, value) in [(2, "gain", 1.5), (2, "other", 9.0), (7, "gain", -3.0)] {
            mock.tag("in", item, Key::new(key), value);
        }
        mock.end("in");
        mock.run().unwrap();
        assert!(mock.is_finished());
        let value = |name: &str| match &metrics.iter().find(|(known, _)| *known == name) {
            Some((_, millstream_flow::Metric::Counter(counter))) => counter.get() as f64,
            Some((_, millstream_flow::Metric::Gauge(gauge))) => gauge.get(),
            _ => f64::NAN,
        };
        assert_eq!((value("tags"), value("last_item"), value("last_value")), (2.0, 7.0, -3.0));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "2\tgain\t1.5\n7\tgain\t-3\n");
        assert_eq!(mock.take::<u8>("out").len(), 10);
    }

    #[test]
    fn a_list_that_cannot_be_written_is_an_error_at_the_start() {
        let mut probe = TagProbe::<u8>::new(None, Some(Path::new("/no/tags.txt")));
        let error = probe.start().unwrap_err().to_string();
        assert!(error.starts_with("cannot write /no/tags.txt: No such file"), "{error}");
    }
}
