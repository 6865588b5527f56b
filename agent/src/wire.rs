//! Frames over stdin and stdout: two lengths, a JSON header, a payload. See docs/reference/wire.md.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::Error;
use crate::sys::signal;
use crate::sys::thread::lock;

/// The number of this wire format; a controller that does not know it stops at the hello.
pub const WIRE: u32 = 2;
/// Ids fit a double, so that any JSON reader keeps them; larger ones are the agent's own.
pub const MAX_ID: u64 = 1 << 53;
/// A header of facts of a host with a thousand disks is under 1 MiB; four leave room.
pub const MAX_HEADER_BYTES: usize = 4 << 20;
/// One piece of a file or of process output; larger things are sent in several.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 20;

/// One frame as it came in.
#[derive(Debug)]
pub struct Frame {
    /// The JSON object.
    pub header: Map<String, Value>,
    /// The bytes after it.
    pub payload: Vec<u8>,
}

/// The other side does not speak the wire: nothing that follows can be trusted.
#[derive(Debug, PartialEq, Eq)]
pub struct ProtocolFault(pub String);

/// Read one frame; None at a clean end, between two frames.
pub fn read_frame(input: &mut impl Read) -> Result<Option<Frame>, ProtocolFault> {
    let lengths = read_up_to(input, 8)?;
    if lengths.is_empty() {
        return Ok(None);
    }
    let lengths = <[u8; 8]>::try_from(lengths).map_err(|short| {
        ProtocolFault(format!("the input ended after {} of 8 bytes of lengths", short.len()))
    })?;
    let both = u64::from_le_bytes(lengths); // The first length in the lower half.
    let (header_length, payload_length) = (both as u32 as usize, (both >> 32) as usize);
    if header_length > MAX_HEADER_BYTES {
        return Err(ProtocolFault(format!("a header of {header_length} bytes is too long")));
    }
    if payload_length > MAX_PAYLOAD_BYTES {
        return Err(ProtocolFault(format!("a payload of {payload_length} bytes is too long")));
    }
    let header = read_exactly(input, header_length, "header")?;
    let payload = read_exactly(input, payload_length, "payload")?;
    match serde_json::from_slice(&header) {
        Ok(Value::Object(header)) => Ok(Some(Frame { header, payload })),
        Ok(_) => Err(ProtocolFault("a header is not a JSON object".into())),
        Err(error) => Err(ProtocolFault(format!("a header is not JSON: {error}"))),
    }
}

fn read_exactly(input: &mut impl Read, size: usize, part: &str) -> Result<Vec<u8>, ProtocolFault> {
    let bytes = read_up_to(input, size)?;
    if bytes.len() < size {
        let got = bytes.len();
        return Err(ProtocolFault(format!(
            "the input ended after {got} of {size} bytes of {part}"
        )));
    }
    Ok(bytes)
}

fn read_up_to(input: &mut impl Read, size: usize) -> Result<Vec<u8>, ProtocolFault> {
    let mut bytes = Vec::with_capacity(size);
    let read = input.by_ref().take(size as u64).read_to_end(&mut bytes);
    read.map_err(|error| ProtocolFault(format!("the input failed: {error}")))?;
    Ok(bytes)
}

/// The one way out: whole frames, one at a time, from any thread.
///
/// A slow reader blocks the sender (and so, by its pipe, the process whose output is sent).
#[derive(Clone)]
pub struct Outbox(Arc<Mutex<Box<dyn Write + Send>>>);

#[derive(Serialize)]
struct Message<'a, Body> {
    id: u64,
    is: &'a str,
    #[serde(flatten)]
    body: &'a Body,
}

/// The body of a message that says no more than what it is.
#[derive(Serialize)]
pub struct EmptyBody {}

impl Outbox {
    /// An outbox that writes frames to `output`.
    pub fn new(output: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Box::new(output))))
    }

    /// Send a message without payload.
    pub fn send_message<Body: Serialize>(&self, id: u64, is: &str, body: &Body) {
        self.send_with_payload(id, is, body, &[]);
    }

    /// Send the final `error` message of a request.
    pub fn send_error(&self, id: u64, error: &Error) {
        self.send_with_payload(id, "error", error, &[]);
    }

    /// Send a message. A failed write means that nobody listens any more: the agent ends.
    pub fn send_with_payload<Body: Serialize>(
        &self,
        id: u64,
        is: &str,
        body: &Body,
        payload: &[u8],
    ) {
        let frame = encode(id, is, body, payload);
        let mut output = lock(&self.0);
        if output.write_all(&frame).and_then(|()| output.flush()).is_err() {
            signal::terminate_self();
        }
    }
}

/// A whole frame as bytes; one that would break a limit becomes an `error` that says so.
pub fn encode<Body: Serialize>(id: u64, is: &str, body: &Body, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0_u8; 8];
    let written = serde_json::to_writer(&mut frame, &Message { id, is, body });
    let header_length = frame.len() - 8;
    if written.is_err() || header_length > MAX_HEADER_BYTES || payload.len() > MAX_PAYLOAD_BYTES {
        let message = format!("a message '{is}' of {header_length} bytes does not fit a frame");
        return encode(id, "error", &Error::bug(message), &[]);
    }
    frame[..4].copy_from_slice(&(header_length as u32).to_le_bytes());
    frame[4..8].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    frame.extend_from_slice(payload);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fault(bytes: &[u8]) -> String {
        read_frame(&mut &bytes[..]).expect_err("the frame is wrong").0
    }

    #[test]
    fn a_frame_comes_back_as_it_was_sent() {
        let bytes = encode(7, "chunk", &json!({"size": 3}), b"abc");
        let frame = read_frame(&mut &bytes[..]).unwrap().unwrap();
        assert_eq!(Value::Object(frame.header), json!({"id": 7, "is": "chunk", "size": 3}));
        assert_eq!(frame.payload, b"abc");
    }

    #[test]
    fn the_end_between_frames_is_clean() {
        assert!(read_frame(&mut &[][..]).unwrap().is_none());
    }

    #[test]
    fn a_short_frame_says_where_it_ended() {
        assert!(fault(&[1, 0, 0]).contains("3 of 8 bytes of lengths"));
        let bytes = encode(1, "x", &EmptyBody {}, b"payload");
        assert!(fault(&bytes[..12]).contains("4 of 17 bytes of header"));
        assert!(fault(&bytes[..bytes.len() - 1]).contains("6 of 7 bytes of payload"));
    }

    #[test]
    fn an_oversized_frame_is_refused_before_it_is_read() {
        let two_gigabytes = 2_147_483_648_u32.to_le_bytes();
        let header = [&two_gigabytes[..], &[0; 4]].concat();
        assert!(fault(&header).contains("header of 2147483648 bytes"));
        let payload = [&2_u32.to_le_bytes()[..], &two_gigabytes].concat();
        assert!(fault(&payload).contains("payload of 2147483648 bytes"));
    }

    #[test]
    fn a_header_that_is_no_object_is_a_fault() {
        let list = [&2_u32.to_le_bytes()[..], &[0; 4], b"[]"].concat();
        assert!(fault(&list).contains("JSON object"));
        let garbage = [&2_u32.to_le_bytes()[..], &[0; 4], &[0xff, 0xfe]].concat();
        assert!(fault(&garbage).starts_with("a header is not JSON"));
    }

    #[test]
    fn a_message_too_large_for_a_frame_becomes_an_error() {
        let bytes = encode(9, "output", &EmptyBody {}, &vec![0; MAX_PAYLOAD_BYTES + 1]);
        let frame = read_frame(&mut &bytes[..]).unwrap().unwrap();
        assert_eq!(frame.header["is"], "error");
        assert_eq!(frame.header["code"], "bug");
    }

    #[test]
    fn input_that_comes_byte_by_byte_is_put_together() {
        struct Drip(Vec<u8>);
        impl Read for Drip {
            fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
                if self.0.is_empty() || bytes.is_empty() {
                    return Ok(0);
                }
                bytes[0] = self.0.remove(0);
                Ok(1)
            }
        }
        let mut drip = Drip(encode(1, "x", &EmptyBody {}, b"12"));
        assert_eq!(read_frame(&mut drip).unwrap().unwrap().payload, b"12");
    }
}
