//! Answers of HTTP/1.1: their heads, and bodies that come in chunks.

use std::ops::Range;

/// A head that is longer is none that a server of objects sends.
pub const MAX_HEAD_BYTES: usize = 64 << 10;
/// The line of a chunk's size, and one of its trailer.
const MAX_CHUNK_LINE_BYTES: usize = 4096;

/// How the end of a body is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyLength {
    /// So many bytes.
    Known(u64),
    /// Chunks, the last of which is empty.
    Chunked,
    /// The connection is closed behind it.
    UntilClose,
}

/// The head of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// 200 and its kin.
    pub status: u16,
    /// Where the body begins.
    pub bytes: usize,
    /// How long that is.
    pub body: BodyLength,
    /// Whether the connection is good for another request.
    pub keeps_alive: bool,
    /// Where the date of the answer stands.
    pub date: Range<usize>,
    /// Where the entity tag stands, quotes included.
    pub etag: Range<usize>,
    /// Where the name of the server's program stands.
    pub server: Range<usize>,
}

/// What stands there is no head of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadHead;

/// The head at the start of `buffer`; None while its end is not there. `has_body` is false of
/// answers to HEAD, whose length is that of a body which does not come.
pub fn parse_head(buffer: &[u8], has_body: bool) -> Result<Option<Head>, BadHead> {
    let Some((status_line, mut at)) = next_line(buffer, 0) else {
        return if buffer.len() > MAX_HEAD_BYTES { Err(BadHead) } else { Ok(None) };
    };
    let is_first_version = match buffer[status_line.clone()].get(..8) {
        Some(b"HTTP/1.1") => false,
        Some(b"HTTP/1.0") => true,
        _ => return Err(BadHead),
    };
    let digits = buffer[status_line].get(8..12).ok_or(BadHead)?;
    let status = parse_decimal(&digits[1..]).filter(|_| digits[0] == b' ').ok_or(BadHead)? as u16;
    let mut head = Head {
        status,
        bytes: 0,
        body: BodyLength::UntilClose,
        keeps_alive: !is_first_version,
        date: 0..0,
        etag: 0..0,
        server: 0..0,
    };
    loop {
        let Some((line, next)) = next_line(buffer, at) else {
            return if buffer.len() > MAX_HEAD_BYTES { Err(BadHead) } else { Ok(None) };
        };
        at = next;
        if line.is_empty() {
            break;
        }
        head.take_header(buffer, line)?;
    }
    head.bytes = at;
    if !has_body || status < 200 || status == 204 || status == 304 {
        head.body = BodyLength::Known(0);
    }
    if head.body == BodyLength::UntilClose {
        head.keeps_alive = false;
    }
    Ok(Some(head))
}

impl Head {
    /// Whether another head follows, of the real answer.
    #[must_use]
    pub fn is_interim(&self) -> bool {
        self.status < 200
    }

    /// Whether the request was done.
    #[must_use]
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    fn take_header(&mut self, buffer: &[u8], line: Range<usize>) -> Result<(), BadHead> {
        let text = &buffer[line.clone()];
        let colon = text.iter().position(|&byte| byte == b':').ok_or(BadHead)?;
        let value = trimmed(buffer, line.start + colon + 1..line.end);
        let name = &text[..colon];
        // By their lengths first: most headers are none of these.
        match colon {
            4 if name.eq_ignore_ascii_case(b"date") => self.date = value,
            4 if name.eq_ignore_ascii_case(b"etag") => self.etag = value,
            6 if name.eq_ignore_ascii_case(b"server") => self.server = value,
            10 if name.eq_ignore_ascii_case(b"connection") => {
                let value = &buffer[value];
                if value.eq_ignore_ascii_case(b"close") {
                    self.keeps_alive = false;
                } else if value.eq_ignore_ascii_case(b"keep-alive") {
                    self.keeps_alive = true;
                }
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length = parse_decimal(&buffer[value]).ok_or(BadHead)?;
                match self.body {
                    BodyLength::Chunked => {}
                    BodyLength::Known(other) if other != length => return Err(BadHead),
                    _ => self.body = BodyLength::Known(length),
                }
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if !buffer[value].eq_ignore_ascii_case(b"chunked") {
                    return Err(BadHead);
                }
                self.body = BodyLength::Chunked;
            }
            _ => {}
        }
        Ok(())
    }
}

/// The line that begins there, without its end, and where the next begins.
fn next_line(buffer: &[u8], start: usize) -> Option<(Range<usize>, usize)> {
    let length = buffer[start..].iter().position(|&byte| byte == b'\n')?;
    let end = start + length;
    let is_crlf = length > 0 && buffer[end - 1] == b'\r';
    Some((start..end - usize::from(is_crlf), end + 1))
}

fn trimmed(buffer: &[u8], range: Range<usize>) -> Range<usize> {
    let text = &buffer[range.clone()];
    let start = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let end = text[start..].iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
    range.start + start..range.end - end
}

fn parse_decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0'))
    })
}

/// Takes a body out of its chunks.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChunkedBody {
    state: ChunkState,
    /// Of the size that is read, or of the bytes that are left of a chunk.
    count: u64,
    line_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ChunkState {
    /// In the digits of a size.
    #[default]
    Size,
    /// Behind them, up to the end of the line.
    Extension,
    Data,
    /// The end of line behind the data.
    DataEnd,
    /// At the start of a line of the trailer, and within one.
    TrailerStart,
    Trailer,
    Done,
}

/// What a piece of a chunked body was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// Bytes that were taken.
    pub taken: usize,
    /// That was the end of the body.
    pub is_done: bool,
}

impl ChunkedBody {
    /// Take the next bytes; `data` gets those of the body among them. `BadHead` for what cannot be a chunk.
    pub fn decode(
        &mut self,
        input: &[u8],
        mut data: impl FnMut(&[u8]),
    ) -> Result<Decoded, BadHead> {
        let mut at = 0;
        while at < input.len() && self.state != ChunkState::Done {
            if self.state == ChunkState::Data {
                let length = self.count.min((input.len() - at) as u64) as usize;
                data(&input[at..at + length]);
                at += length;
                self.count -= length as u64;
                if self.count == 0 {
                    self.state = ChunkState::DataEnd;
                }
                continue;
            }
            self.take_byte(input[at])?;
            at += 1;
        }
        Ok(Decoded { taken: at, is_done: self.state == ChunkState::Done })
    }

    fn take_byte(&mut self, byte: u8) -> Result<(), BadHead> {
        self.line_bytes += 1;
        if self.line_bytes > MAX_CHUNK_LINE_BYTES {
            return Err(BadHead);
        }
        match (self.state, byte) {
            (ChunkState::Size | ChunkState::Extension, b'\n') if self.line_bytes > 1 => {
                self.state =
                    if self.count == 0 { ChunkState::TrailerStart } else { ChunkState::Data };
                self.line_bytes = 0;
            }
            (ChunkState::Size, b';' | b'\r' | b' ') if self.line_bytes > 1 => {
                self.state = ChunkState::Extension;
            }
            (ChunkState::Size, digit) => {
                let digit = (digit as char).to_digit(16).ok_or(BadHead)?;
                if self.count >> 56 != 0 {
                    return Err(BadHead);
                }
                self.count = self.count << 4 | u64::from(digit);
            }
            (ChunkState::DataEnd, b'\n') => {
                self.state = ChunkState::Size;
                self.line_bytes = 0;
            }
            (ChunkState::TrailerStart, b'\n') => self.state = ChunkState::Done,
            (ChunkState::TrailerStart, byte) if byte != b'\r' => self.state = ChunkState::Trailer,
            (ChunkState::Trailer, b'\n') => {
                self.state = ChunkState::TrailerStart;
            }
            (ChunkState::Extension | ChunkState::Trailer | ChunkState::TrailerStart, _)
            | (ChunkState::DataEnd, b'\r') => {}
            _ => return Err(BadHead),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &[u8] =
        b"HTTP/1.1 200 OK\r\nServer: x y\r\nETag: \"abc\"\r\nCONTENT-LENGTH:  12 \r\n\
        Date: Fri, 24 May 2013 00:00:00 GMT\r\n\r\nbody";

    #[test]
    fn a_head_is_read_when_it_is_whole_and_not_before() {
        let end = ANSWER.len() - 4;
        for cut in 0..end {
            assert_eq!(parse_head(&ANSWER[..cut], true), Ok(None), "{cut}");
        }
        let head = parse_head(ANSWER, true).unwrap().unwrap();
        assert_eq!((head.status, head.bytes, head.keeps_alive), (200, end, true));
        assert_eq!(head.body, BodyLength::Known(12));
        assert_eq!(&ANSWER[head.etag.clone()], b"\"abc\"");
        assert_eq!(&ANSWER[head.server.clone()], b"x y");
        assert_eq!(&ANSWER[head.date.clone()], b"Fri, 24 May 2013 00:00:00 GMT");
        assert_eq!(parse_head(ANSWER, false).unwrap().unwrap().body, BodyLength::Known(0));
    }

    #[test]
    fn the_end_of_a_body_is_known_by_its_kind() {
        let body = |text: &str| parse_head(text.as_bytes(), true).unwrap().unwrap();
        for (text, length, keeps_alive) in [
            ("HTTP/1.1 204 No\r\n\r\n", BodyLength::Known(0), true),
            ("HTTP/1.1 100 Continue\r\n\r\n", BodyLength::Known(0), true),
            ("HTTP/1.1 200 OK\r\n\r\n", BodyLength::UntilClose, false),
            ("HTTP/1.0 200 OK\nContent-Length: 1\n\n", BodyLength::Known(1), false),
            (
                "HTTP/1.1 503 X\r\nConnection: CLOSE\r\nContent-Length: 0\r\n\r\n",
                BodyLength::Known(0),
                false,
            ),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", BodyLength::Chunked, true),
        ] {
            let head = body(text);
            assert_eq!((head.body, head.keeps_alive), (length, keeps_alive), "{text}");
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for text in [
            "SSH-2.0-OpenSSH\r\n",
            "HTTP/1.1 2x0 OK\r\n\r\n",
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        ] {
            assert_eq!(parse_head(text.as_bytes(), true), Err(BadHead), "{text}");
        }
        assert_eq!(parse_head(&vec![b'x'; MAX_HEAD_BYTES + 1], true), Err(BadHead));
    }

    #[test]
    fn chunks_give_their_data_however_they_are_cut() {
        let input = b"5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\ntrailer: x\r\n\r\nHTTP";
        for step in 1..input.len() {
            let (mut body, mut decoder, mut taken) = (Vec::new(), ChunkedBody::default(), 0);
            for piece in input.chunks(step) {
                let piece = decoder.decode(piece, |data| body.extend_from_slice(data)).unwrap();
                taken += piece.taken;
                if piece.is_done {
                    break;
                }
            }
            assert_eq!((body.as_slice(), taken), (b"hello world".as_slice(), input.len() - 4));
        }
    }

    #[test]
    fn no_chunk_is_of_other_than_a_size_and_its_bytes() {
        for input in ["x\r\n", "\r\n\n", "3\r\nabcd", "ffffffffffffffffff\r\n"] {
            let mut decoder = ChunkedBody::default();
            assert_eq!(decoder.decode(input.as_bytes(), |_| {}), Err(BadHead), "{input:?}");
        }
        let endless = vec![b'0'; MAX_CHUNK_LINE_BYTES + 1];
        assert_eq!(ChunkedBody::default().decode(&endless, |_| {}), Err(BadHead));
    }
}
