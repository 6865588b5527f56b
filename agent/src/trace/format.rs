//! The `format` file of a tracepoint: where each field lies in a record.

use std::collections::HashMap;

/// Fields of one tracepoint by name: offset and size in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// What records of it begin with.
    pub id: u64,
    fields: HashMap<String, (usize, usize)>,
}

impl Format {
    /// Read the file's text; None when it has no id or no field.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        let fields: HashMap<_, _> = text.lines().filter_map(field).collect();
        (!fields.is_empty()).then_some(Self { id, fields })
    }

    /// A field's bytes in a record; None when the tracepoint or the record lacks it.
    #[must_use]
    pub fn bytes<'a>(&self, raw: &'a [u8], name: &str) -> Option<&'a [u8]> {
        let &(offset, size) = self.fields.get(name)?;
        raw.get(offset..offset.checked_add(size)?)
    }

    /// A whole number of one to eight bytes.
    #[must_use]
    pub fn number(&self, raw: &[u8], name: &str) -> Option<u64> {
        let bytes = self.bytes(raw, name)?;
        match bytes.len() {
            1 => Some(bytes[0].into()),
            2 => Some(u16::from_ne_bytes(bytes.try_into().ok()?).into()),
            4 => Some(u32::from_ne_bytes(bytes.try_into().ok()?).into()),
            8 => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
            _ => None,
        }
    }
}

/// `field:unsigned int nr_sector; offset:24; size:4; signed:0;`, with tabs between
fn field(line: &str) -> Option<(String, (usize, usize))> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
    let declared = parts.next()?.split_ascii_whitespace().last()?;
    let name = declared.split('[').next()?.to_owned();
    let mut number = |label: &str| parts.next()?.strip_prefix(label)?.parse().ok();
    Some((name, (number("offset:")?, number("size:")?)))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Of Linux 6.18, but for the line of `print fmt`.
    pub const QUEUE: &str = "name: block_bio_queue
ID: 2097
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;
\tfield:char rwbs[10];\toffset:28;\tsize:10;\tsigned:0;
\tfield:char comm[16];\toffset:38;\tsize:16;\tsigned:0;
";
    /// Of Linux 5.10, whose rwbs is shorter.
    const COMPLETE: &str = "name: block_bio_complete
ID: 1053
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;
\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned nr_sector;\toffset:24;\tsize:4;\tsigned:0;
\tfield:int error;\toffset:28;\tsize:4;\tsigned:1;
\tfield:char rwbs[8];\toffset:32;\tsize:8;\tsigned:0;
";

    #[test]
    fn fields_are_found_by_their_names() {
        let format = Format::parse(QUEUE).unwrap();
        let mut raw = vec![0; 54];
        raw[..2].copy_from_slice(&2097_u16.to_ne_bytes());
        raw[16..24].copy_from_slice(&(1_u64 << 40).to_ne_bytes());
        raw[24..28].copy_from_slice(&8_u32.to_ne_bytes());
        raw[28..30].copy_from_slice(b"WS");
        assert_eq!(format.id, 2097);
        assert_eq!(format.number(&raw, "common_type"), Some(2097));
        assert_eq!(format.number(&raw, "sector"), Some(1 << 40));
        assert_eq!(format.number(&raw, "nr_sector"), Some(8));
        assert_eq!(format.bytes(&raw, "rwbs").map(<[u8]>::len), Some(10));
        assert_eq!(format.number(&raw, "rwbs"), None);
        assert_eq!(format.number(&raw, "bytes"), None);
        assert_eq!(format.number(&raw[..20], "nr_sector"), None);
    }

    #[test]
    fn an_older_kernels_format_is_another() {
        let format = Format::parse(COMPLETE).unwrap();
        assert_eq!(format.id, 1053);
        assert_eq!(format.bytes(&[0; 40], "rwbs").map(<[u8]>::len), Some(8));
    }

    #[test]
    fn what_is_no_format_is_none() {
        for text in ["", "ID: x\n", "ID: 5\n", "ID: 5\nfield:int a;\toffset:x;\tsize:4;\n"] {
            assert_eq!(Format::parse(text), None, "{text:?}");
        }
    }
}
