//! Messages as JSON, written into memory that is there.

use millstream_flow::{Tag, TagTime, TagValue};
use std::io::Write;

/// The alphabet of base64 (RFC 4648, clause 4).
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Writes messages of one sink, each into the same memory.
pub(crate) struct DocumentWriter {
    /// The beginning of every message: the sink's label.
    start: Vec<u8>,
    text: Vec<u8>,
    /// The number of the next message.
    next: u64,
}

impl DocumentWriter {
    /// Makes a writer for messages of up to about `bytes` bytes; longer ones allocate.
    pub fn new(label: &str, bytes: usize) -> Self {
        let start =
            format!("{{\"stream\":{},\"seq\":", serde_json::Value::from(label)).into_bytes();
        let text = Vec::with_capacity(start.len() + bytes);
        Self { start, text, next: 0 }
    }

    fn begin(&mut self, kind: &str) {
        self.text.clear();
        self.text.extend_from_slice(&self.start);
        self.put_count(self.next);
        self.next += 1;
        self.text.extend_from_slice(b",\"kind\":\"");
        self.text.extend_from_slice(kind.as_bytes());
        self.text.push(b'"');
    }

    /// Adds the place of an item: its number, and its time where that is known.
    fn put_place(&mut self, item: u64, time: Option<TagTime>) {
        self.text.extend_from_slice(b",\"item\":");
        self.put_count(item);
        if let Some(time) = time {
            self.text.extend_from_slice(b",\"time\":\"");
            self.put_time(time);
            self.text.push(b'"');
        }
    }

    fn put_time(&mut self, time: TagTime) {
        self.put_count(time.seconds);
        self.text.push(b'.');
        let mut nanos = time.subsec_nanos();
        let mut digits = [0; 9];
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (nanos % 10) as u8;
            nanos /= 10;
        }
        self.text.extend_from_slice(&digits);
    }

    fn put_count(&mut self, count: u64) {
        let (mut rest, mut digits, mut first) = (count, [0; 20], 20);
        loop {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.text.extend_from_slice(&digits[first..]);
    }

    /// Adds text as a JSON value.
    fn put_text(&mut self, text: &str) {
        // Writing to memory cannot fail.
        let _ = serde_json::to_writer(&mut self.text, text);
    }

    fn put_value(&mut self, value: TagValue) {
        // As above.
        let _ = match value {
            TagValue::Number(number) if !number.is_finite() => write!(self.text, "null"),
            TagValue::Number(number) => {
                serde_json::to_writer(&mut self.text, &number).map_err(Into::into)
            }
            TagValue::Text(text) => {
                self.put_text(text.as_str());
                Ok(())
            }
            TagValue::Document(document) => {
                self.put_text(document.text());
                Ok(())
            }
            TagValue::Time(time) => {
                self.text.push(b'"');
                self.put_time(time);
                self.text.push(b'"');
                Ok(())
            }
            other => write!(self.text, "{other}"),
        };
    }

    fn put_base64(&mut self, bytes: &[u8]) {
        let digit = |bits: u32| BASE64[(bits & 63) as usize];
        let mut rest = bytes;
        while let Some(([a, b, c], behind)) = rest.split_first_chunk() {
            rest = behind;
            let bits = u32::from(*a) << 16 | u32::from(*b) << 8 | u32::from(*c);
            let digits = [digit(bits >> 18), digit(bits >> 12), digit(bits >> 6), digit(bits)];
            self.text.extend_from_slice(&digits);
        }
        match *rest {
            [a] => {
                let bits = u32::from(a) << 16;
                self.text.extend_from_slice(&[digit(bits >> 18), digit(bits >> 12), b'=', b'=']);
            }
            [a, b] => {
                let bits = u32::from(a) << 16 | u32::from(b) << 8;
                let digits = [digit(bits >> 18), digit(bits >> 12), digit(bits >> 6), b'='];
                self.text.extend_from_slice(&digits);
            }
            _ => {}
        }
    }

    fn end(&mut self) -> &[u8] {
        self.text.push(b'}');
        &self.text
    }

    /// Writes items, of which the first is item `item`.
    pub fn packet(&mut self, item: u64, time: Option<TagTime>, bytes: &[u8]) -> &[u8] {
        self.begin("packet");
        self.put_place(item, time);
        self.text.extend_from_slice(b",\"bytes\":");
        self.put_count(bytes.len() as u64);
        self.text.extend_from_slice(b",\"data\":\"");
        self.put_base64(bytes);
        self.text.push(b'"');
        self.end()
    }

    /// Writes a tag.
    pub fn tag(&mut self, tag: &Tag, time: Option<TagTime>) -> &[u8] {
        self.begin("tag");
        self.put_place(tag.offset, time);
        self.text.extend_from_slice(b",\"key\":");
        self.put_text(tag.key.name());
        self.text.extend_from_slice(b",\"value\":");
        self.put_value(tag.value);
        self.end()
    }

    /// Writes the text of an event that came before item `item`.
    pub fn event(&mut self, item: u64, time: Option<TagTime>, text: &str) -> &[u8] {
        self.begin("event");
        self.put_place(item, time);
        self.text.extend_from_slice(b",\"text\":");
        self.put_text(text);
        self.end()
    }

    /// Writes metrics, which are a JSON object.
    pub fn metrics(&mut self, item: u64, time: Option<TagTime>, metrics: &str) -> &[u8] {
        self.begin("metrics");
        self.put_place(item, time);
        self.text.extend_from_slice(b",\"metrics\":");
        self.text.extend_from_slice(metrics.as_bytes());
        self.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_flow::Key;
    use serde_json::{Value, json};

    fn parsed(text: &[u8]) -> Value {
        serde_json::from_slice(text).unwrap()
    }

    #[test]
    fn every_message_is_json_with_its_place() {
        let mut writer = DocumentWriter::new("a \"b\"\n", 1000);
        let time = Some(TagTime { seconds: 1_793_000_000, fraction: 1 << 63 });
        let place = |seq: u64, kind: &str, item: u64| {
            json!({"stream": "a \"b\"\n", "seq": seq, "kind": kind, "item": item,
                   "time": "1793000000.500000000"})
        };
        let mut expected = place(0, "packet", 188);
        expected["bytes"] = json!(3);
        expected["data"] = json!("AP8Q");
        assert_eq!(parsed(writer.packet(188, time, &[0, 255, 16])), expected);
        let mut expected = place(1, "tag", u64::MAX);
        (expected["key"], expected["value"]) = (json!("loss_cause"), json!("a\\b"));
        let key = Key::new("loss_cause");
        let tag = Tag { offset: u64::MAX, key, value: TagValue::text("a\\b") };
        assert_eq!(parsed(writer.tag(&tag, time)), expected);
        let mut expected = place(2, "event", 0);
        expected["text"] = json!("line\nline");
        assert_eq!(parsed(writer.event(0, time, "line\nline")), expected);
        let mut expected = place(3, "metrics", 7);
        expected["metrics"] = json!({"a": 1});
        assert_eq!(parsed(writer.metrics(7, time, "{\"a\":1}")), expected);
        assert_eq!(parsed(writer.packet(1, None, &[])).get("time"), None);
    }

    #[test]
    fn values_keep_their_kind() {
        let mut writer = DocumentWriter::new("", 1000);
        let mut value = |value: TagValue| {
            let tag = Tag { offset: 0, key: Key::new("k"), value };
            parsed(writer.tag(&tag, None))["value"].clone()
        };
        assert_eq!(value(TagValue::Count(u64::MAX)), json!(u64::MAX));
        assert_eq!(value(TagValue::Integer(-3)), json!(-3));
        assert_eq!(value(TagValue::Number(6.25e6)), json!(6.25e6));
        assert_eq!(value(TagValue::Number(f64::NAN)), Value::Null);
        assert_eq!(value(TagValue::Boolean(true)), json!(true));
        let time = TagTime { seconds: 3, fraction: 0 };
        assert_eq!(value(TagValue::Time(time)), json!("3.000000000"));
    }

    #[test]
    fn base64_is_that_of_the_standard() {
        // RFC 4648, clause 10.
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let mut writer = DocumentWriter::new("", 100);
            assert_eq!(parsed(writer.packet(0, None, bytes.as_bytes()))["data"], json!(text));
        }
    }
}
