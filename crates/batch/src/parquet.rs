//! A writer of small Parquet files: one row group, a page for each column, nothing compressed.
//!
//! The format is <https://github.com/apache/parquet-format>: pages, then a footer with the schema
//! and the places of the pages, in Thrift's compact protocol.

const MAGIC: &[u8] = b"PAR1";

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub name: String,
    pub cells: Cells,
}

/// The cells of a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cells {
    Texts(Vec<String>),
    /// A missing number is null.
    Numbers(Vec<Option<f64>>),
}

/// Returns a file with columns of `rows` cells each.
pub(crate) fn file(columns: &[Column], rows: usize) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    let chunks: Vec<Chunk<'_>> = columns
        .iter()
        .map(|column| {
            let page = page(&column.cells);
            let offset = file.len();
            file.extend(page_header(page.len(), rows));
            file.extend(page);
            Chunk { column, offset, bytes: file.len() - offset }
        })
        .collect();
    let footer = footer(&chunks, rows);
    file.extend_from_slice(&footer);
    file.extend_from_slice(&(footer.len() as u32).to_le_bytes());
    file.extend_from_slice(MAGIC);
    file
}

/// Where a column is in the file.
struct Chunk<'a> {
    column: &'a Column,
    offset: usize,
    bytes: usize,
}

/// The values, PLAIN; of numbers first which of them are there, as one bit-packed run of bits.
fn page(cells: &Cells) -> Vec<u8> {
    let mut page = Vec::new();
    match cells {
        Cells::Texts(texts) => {
            for text in texts {
                page.extend((text.len() as u32).to_le_bytes());
                page.extend_from_slice(text.as_bytes());
            }
        }
        Cells::Numbers(numbers) => {
            let mut levels = Thrift::default();
            levels.varint((numbers.len().div_ceil(8) as u64) << 1 | 1);
            let bits = |eight: &[Option<f64>]| {
                let bit = |(at, cell): (usize, &Option<f64>)| u8::from(cell.is_some()) << at;
                eight.iter().enumerate().map(bit).sum::<u8>()
            };
            levels.0.extend(numbers.chunks(8).map(bits));
            page.extend((levels.0.len() as u32).to_le_bytes());
            page.extend(levels.0);
            page.extend(numbers.iter().flatten().flat_map(|number| number.to_le_bytes()));
        }
    }
    page
}

const PLAIN: i64 = 0;
const RLE: i64 = 3;
const DATA_PAGE: i64 = 0;

fn page_header(bytes: usize, rows: usize) -> Vec<u8> {
    let mut header = Fields::default();
    header.int(1, DATA_PAGE).int(2, bytes as i64).int(3, bytes as i64);
    let mut data = Fields::default();
    data.int(1, rows as i64).int(2, PLAIN).int(3, RLE).int(4, RLE);
    header.structure(5, data);
    header.end()
}

fn footer(chunks: &[Chunk<'_>], rows: usize) -> Vec<u8> {
    let mut root = Fields::default();
    root.text(4, "results").int(5, chunks.len() as i64);
    let schema = chunks.iter().map(|chunk| {
        let mut element = Fields::default();
        let is_text = matches!(chunk.column.cells, Cells::Texts(_));
        // Its type; required or optional.
        element.int(1, kind(&chunk.column.cells)).int(3, i64::from(!is_text));
        element.text(4, &chunk.column.name);
        if is_text {
            // UTF8.
            element.int(6, 0);
        }
        element.end()
    });
    let schema = std::iter::once(root.end()).chain(schema).collect();
    let columns = chunks.iter().map(|chunk| {
        let mut data = Fields::default();
        data.int(1, kind(&chunk.column.cells)).ints(2, &[PLAIN, RLE]);
        data.texts(3, &[&chunk.column.name]).int(4, 0).long(5, rows as i64);
        data.long(6, chunk.bytes as i64).long(7, chunk.bytes as i64).long(9, chunk.offset as i64);
        let mut column = Fields::default();
        column.long(2, chunk.offset as i64).structure(3, data);
        column.end()
    });
    let mut group = Fields::default();
    group.structures(1, columns.collect());
    let bytes = chunks.iter().map(|chunk| chunk.bytes as i64).sum();
    group.long(2, bytes).long(3, rows as i64);
    let mut file = Fields::default();
    file.int(1, 1).structures(2, schema).long(3, rows as i64).structures(4, vec![group.end()]);
    file.text(6, concat!("millstream version ", env!("CARGO_PKG_VERSION")));
    file.end()
}

/// The number of a column's type: DOUBLE or BYTE_ARRAY.
fn kind(cells: &Cells) -> i64 {
    match cells {
        Cells::Texts(_) => 6,
        Cells::Numbers(_) => 5,
    }
}

/// Bytes of Thrift's compact protocol.
#[derive(Default)]
struct Thrift(Vec<u8>);

impl Thrift {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn zigzag(&mut self, number: i64) {
        self.varint(((number << 1) ^ (number >> 63)) as u64);
    }

    fn text(&mut self, text: &str) {
        self.varint(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn list(&mut self, length: usize, kind: u8) {
        match length {
            ..15 => self.0.push((length as u8) << 4 | kind),
            _ => {
                self.0.push(0xF0 | kind);
                self.varint(length as u64);
            }
        }
    }
}

const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// The fields of a structure, in the order of their numbers.
#[derive(Default)]
struct Fields {
    out: Thrift,
    last: u8,
}

impl Fields {
    fn field(&mut self, number: u8, kind: u8) -> &mut Thrift {
        self.out.0.push((number - self.last) << 4 | kind);
        self.last = number;
        &mut self.out
    }

    fn int(&mut self, number: u8, value: i64) -> &mut Self {
        self.field(number, I32).zigzag(value);
        self
    }

    fn long(&mut self, number: u8, value: i64) -> &mut Self {
        self.field(number, I64).zigzag(value);
        self
    }

    fn text(&mut self, number: u8, text: &str) -> &mut Self {
        self.field(number, BINARY).text(text);
        self
    }

    fn ints(&mut self, number: u8, values: &[i64]) -> &mut Self {
        let out = self.field(number, LIST);
        out.list(values.len(), I32);
        values.iter().for_each(|value| out.zigzag(*value));
        self
    }

    fn texts(&mut self, number: u8, texts: &[&str]) -> &mut Self {
        let out = self.field(number, LIST);
        out.list(texts.len(), BINARY);
        texts.iter().for_each(|text| out.text(text));
        self
    }

    fn structure(&mut self, number: u8, fields: Self) -> &mut Self {
        self.field(number, STRUCT).0.extend(fields.end());
        self
    }

    fn structures(&mut self, number: u8, ended: Vec<Vec<u8>>) -> &mut Self {
        let out = self.field(number, LIST);
        out.list(ended.len(), STRUCT);
        out.0.extend(ended.into_iter().flatten());
        self
    }

    fn end(mut self) -> Vec<u8> {
        self.out.0.push(0);
        self.out.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_bit_for_each_number_and_the_numbers_that_are_there() {
        let mut numbers = vec![None; 9];
        (numbers[1], numbers[8]) = (Some(1.0), Some(-2.0));
        let mut expected = vec![3, 0, 0, 0, 2 << 1 | 1, 0b10, 0b1];
        expected.extend(1f64.to_le_bytes());
        expected.extend((-2f64).to_le_bytes());
        assert_eq!(page(&Cells::Numbers(numbers)), expected);
        let texts = Cells::Texts(vec!["ab".to_owned(), String::new()]);
        assert_eq!(page(&texts), [2, 0, 0, 0, b'a', b'b', 0, 0, 0, 0]);
    }

    #[test]
    fn numbers_and_lists_are_those_of_the_compact_protocol() {
        let mut fields = Fields::default();
        fields.int(1, -3).long(4, 200).texts(5, &["a"; 15]);
        let mut expected = vec![0x15, 5, 0x36, 0x90, 3, 0x19, 0xF8, 15];
        expected.extend([1, b'a'].repeat(15));
        expected.push(0);
        assert_eq!(fields.end(), expected);
    }

    #[test]
    fn the_footer_says_its_own_length() {
        let column = Column { name: "x".to_owned(), cells: Cells::Numbers(vec![Some(0.5)]) };
        let file = file(&[column], 1);
        let (rest, end) = file.split_at(file.len() - 8);
        assert_eq!((&file[..4], &end[4..]), (MAGIC, MAGIC));
        let length = u32::from_le_bytes(end[..4].try_into().unwrap()) as usize;
        assert_eq!(rest[rest.len() - length], 0x15, "the version, field 1");
        assert_eq!(rest[rest.len() - 1], 0);
    }
}
