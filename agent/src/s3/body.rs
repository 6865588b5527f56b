//! Bodies of requests, made piece by piece as they are sent.

use std::io::Write;

use sha2::{Digest, Sha256};

use super::contents::Contents;
use super::signature::{ChunkSigner, HASH_DIGITS, hex_hash};

/// Bytes that are made at a time, and a chunk where each is signed.
pub const PIECE_BYTES: u64 = 64 << 10;
/// Around the digits of a chunk's size: `;chunk-signature=`, the signature, and two ends of line.
const CHUNK_FRAME_BYTES: u64 = 17 + HASH_DIGITS as u64 + 4;

/// Which bytes a body has: a part of an object in a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyRange {
    /// Whose contents it has.
    pub object: u64,
    /// In which version.
    pub version: u64,
    /// Where it begins: at a sector's start.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
}

/// Writes one body.
#[derive(Debug)]
pub struct BodyWriter {
    range: BodyRange,
    done: u64,
    chunks: Option<ChunkSigner>,
    /// Chunks have an empty one at their end.
    needs_last_chunk: bool,
}

impl BodyRange {
    /// The hash of all of it.
    #[must_use]
    pub fn hash(&self, contents: &Contents, buffer: &mut Vec<u8>) -> [u8; HASH_DIGITS] {
        let mut hash = Sha256::new();
        let mut done = 0;
        while done < self.bytes {
            let length = PIECE_BYTES.min(self.bytes - done);
            buffer.resize(length as usize, 0);
            contents.fill(self.object, self.version, self.offset + done, buffer);
            hash.update(&buffer);
            done += length;
        }
        hex_hash(&hash.finalize().into())
    }

    /// Bytes of it with the frames of signed chunks.
    #[must_use]
    pub fn chunked_bytes(&self) -> u64 {
        let frame = |length: u64| {
            let digits = u64::from((u64::BITS - length.leading_zeros()).div_ceil(4).max(1));
            digits + CHUNK_FRAME_BYTES + length
        };
        let rest = self.bytes % PIECE_BYTES;
        let whole = self.bytes / PIECE_BYTES * frame(PIECE_BYTES);
        whole + if rest > 0 { frame(rest) } else { 0 } + frame(0)
    }
}

impl BodyWriter {
    /// With a signer, each chunk is signed.
    #[must_use]
    pub fn new(range: BodyRange, chunks: Option<ChunkSigner>) -> Self {
        Self { range, done: 0, needs_last_chunk: chunks.is_some(), chunks }
    }

    /// Whether all of it was made.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done >= self.range.bytes && !self.needs_last_chunk
    }

    /// Make the next piece, at the end of `output`.
    pub fn write_piece(&mut self, contents: &Contents, output: &mut Vec<u8>) {
        let length = PIECE_BYTES.min(self.range.bytes - self.done);
        let Some(signer) = &mut self.chunks else {
            let start = output.len();
            output.resize(start + length as usize, 0);
            self.fill(contents, &mut output[start..]);
            return;
        };
        // The signature stands before the bytes that it signs: room is left for it.
        let _ = write!(output, "{length:x};chunk-signature=");
        let signature_start = output.len();
        output.resize(signature_start + HASH_DIGITS, 0);
        output.extend_from_slice(b"\r\n");
        let start = output.len();
        output.resize(start + length as usize, 0);
        contents.fill(
            self.range.object,
            self.range.version,
            self.range.offset + self.done,
            &mut output[start..],
        );
        let signature = signer.sign(&output[start..]);
        output[signature_start..signature_start + HASH_DIGITS].copy_from_slice(&signature);
        output.extend_from_slice(b"\r\n");
        self.done += length;
        self.needs_last_chunk = length > 0;
    }

    fn fill(&mut self, contents: &Contents, output: &mut [u8]) {
        let BodyRange { object, version, offset, .. } = self.range;
        contents.fill(object, version, offset + self.done, output);
        self.done += output.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::s3::signature::{Credentials, Signer};

    fn written(bytes: u64, chunks: Option<ChunkSigner>) -> Vec<u8> {
        let contents = Contents::new(1);
        let range = BodyRange { object: 5, version: 2, offset: 1024, bytes };
        let mut writer = BodyWriter::new(range, chunks);
        let mut output = Vec::new();
        while !writer.is_done() {
            writer.write_piece(&contents, &mut output);
        }
        output
    }

    #[test]
    fn a_body_is_the_part_of_the_object() {
        for bytes in [0, 1, 4096, 65_536, 200_000] {
            let mut whole = vec![0; 1024 + bytes as usize];
            Contents::new(1).fill(5, 2, 0, &mut whole);
            assert_eq!(written(bytes, None), whole[1024..], "{bytes}");
            let range = BodyRange { object: 5, version: 2, offset: 1024, bytes };
            let hash = hex_hash(&Sha256::digest(&whole[1024..]).into());
            assert_eq!(range.hash(&Contents::new(1), &mut Vec::new()), hash, "{bytes}");
        }
    }

    #[test]
    fn chunks_are_as_long_as_was_said_before() {
        let secret =
            Credentials { access_key: "a".into(), secret_key: "b".into(), session_token: None };
        let signer = Signer::new(&secret, "r", "h", 0).chunk_signer([b'0'; HASH_DIGITS]);
        for bytes in [0, 1, 15, 16, 65_535, 65_536, 65_537, 200_000] {
            let range = BodyRange { object: 5, version: 2, offset: 0, bytes };
            let body = written(bytes, Some(signer.clone()));
            assert_eq!(body.len() as u64, range.chunked_bytes(), "{bytes}");
            assert!(body.ends_with(b"\r\n\r\n"));
        }
    }
}
