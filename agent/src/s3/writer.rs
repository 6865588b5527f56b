//! The requests of a load, written and signed.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::body::{BodyRange, BodyWriter};
use super::lane::{BodyUse, Expectation};
use super::listing::encoded_query;
use super::load::{Load, Work};
use super::signature::{
    EMPTY_HASH, Header, RequestParts, STREAMING_PAYLOAD, Signer, UNSIGNED_PAYLOAD, hex_hash,
    push_decimal,
};
use super::spec::{OperationKind, Payload};

/// A request of an upload in parts, beside the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadRequest {
    /// It begins.
    Create,
    /// It becomes an object.
    Complete,
    /// It is given up.
    Abort,
}

/// What writes one request.
pub struct RequestWriter<'a> {
    /// What all threads share.
    pub load: &'a Load,
    /// Of the server that it goes to.
    pub signer: &'a mut Signer,
    /// Where it is written.
    pub output: &'a mut Vec<u8>,
    /// The path of its object; of a list, of the bucket.
    pub path: &'a [u8],
    /// Kept for its memory.
    pub scratch: &'a mut Vec<u8>,
}

impl RequestWriter<'_> {
    /// The only request of an operation. A body that comes is compared where that is wanted.
    pub fn write_single(
        &mut self,
        work: &Work,
        verifies: bool,
    ) -> (Option<BodyWriter>, Expectation) {
        let mut expectation = Expectation::default();
        let contents = &self.load.contents;
        let comparison =
            |offset| verifies.then(|| Box::new(contents.comparison(work.content, offset)));
        match work.kind {
            OperationKind::Get => {
                expectation.bytes = Some(work.bytes);
                expectation.comparison = comparison(0);
                self.write_bare(b"GET", b"");
            }
            // An object without bytes has no part.
            OperationKind::GetRange if work.bytes == 0 => self.write_bare(b"GET", b""),
            OperationKind::GetRange => {
                expectation.bytes = Some(work.bytes);
                expectation.is_partial = true;
                expectation.comparison = comparison(work.offset);
                self.write_range(work);
            }
            OperationKind::Head => {
                expectation.body = BodyUse::Absent;
                self.write_bare(b"HEAD", b"");
            }
            OperationKind::Delete => self.write_bare(b"DELETE", b""),
            OperationKind::List => {
                expectation.body = BodyUse::Text;
                let page = self.load.spec.list_page.to_string();
                let folder = self.load.set.folder(work.number as u32);
                let query =
                    encoded_query(&[("list-type", "2"), ("max-keys", &page), ("prefix", &folder)]);
                self.write_bare(b"GET", query.as_bytes());
            }
            OperationKind::Put => {
                return (Some(self.write_put(b"", part_range(work, 0, work.bytes))), expectation);
            }
        }
        (None, expectation)
    }

    /// A part of an upload, by its number from one on.
    pub fn write_part(
        &mut self,
        work: &Work,
        upload: &str,
        number: u64,
    ) -> (Option<BodyWriter>, Expectation) {
        let part_bytes = self.load.set.part_bytes.unwrap_or(u64::MAX);
        let range = part_range(work, (number - 1) * part_bytes, part_bytes);
        let number = number.to_string();
        let query = encoded_query(&[("partNumber", &number), ("uploadId", upload)]);
        let body = self.write_put(query.as_bytes(), range);
        (Some(body), Expectation { wants_tag: true, ..Expectation::default() })
    }

    /// Another request of an upload.
    pub fn write_upload(
        &mut self,
        request: UploadRequest,
        upload: &str,
        tags: &[String],
    ) -> Expectation {
        let query = encoded_query(&[("uploadId", upload)]);
        match request {
            UploadRequest::Abort => {
                self.write_bare(b"DELETE", query.as_bytes());
                return Expectation::default();
            }
            UploadRequest::Create => self.write_post(b"uploads=", ""),
            UploadRequest::Complete => self.write_post(query.as_bytes(), &complete_body(tags)),
        }
        Expectation { body: BodyUse::Text, ..Expectation::default() }
    }

    fn write_bare(&mut self, method: &'static [u8], query: &[u8]) {
        let parts = RequestParts {
            method,
            path: self.path,
            query,
            headers: &[],
            payload_hash: EMPTY_HASH,
            content_length: None,
        };
        self.signer.write_request(&parts, self.output);
    }

    fn write_post(&mut self, query: &[u8], body: &str) {
        let hash = hex_hash(&Sha256::digest(body.as_bytes()).into());
        let parts = RequestParts {
            method: b"POST",
            path: self.path,
            query,
            headers: &[],
            payload_hash: &hash,
            content_length: Some(body.len() as u64),
        };
        self.signer.write_request(&parts, self.output);
        self.output.extend_from_slice(body.as_bytes());
    }

    fn write_range(&mut self, work: &Work) {
        self.scratch.clear();
        self.scratch.extend_from_slice(b"bytes=");
        push_decimal(work.offset, self.scratch);
        self.scratch.push(b'-');
        push_decimal(work.offset + work.bytes - 1, self.scratch);
        let headers: [Header; 1] = [(b"range", self.scratch)];
        let parts = RequestParts {
            method: b"GET",
            path: self.path,
            query: b"",
            headers: &headers,
            payload_hash: EMPTY_HASH,
            content_length: None,
        };
        self.signer.write_request(&parts, self.output);
    }

    /// The head of a request with a body, and the first piece of that.
    fn write_put(&mut self, query: &[u8], range: BodyRange) -> BodyWriter {
        let plain = RequestParts {
            method: b"PUT",
            path: self.path,
            query,
            headers: &[],
            payload_hash: UNSIGNED_PAYLOAD,
            content_length: Some(range.bytes),
        };
        let mut body = match self.load.spec.target.payload {
            Payload::Unsigned => {
                self.signer.write_request(&plain, self.output);
                BodyWriter::new(range, None)
            }
            Payload::Signed => {
                let hash = range.hash(&self.load.contents, self.scratch);
                let parts = RequestParts { payload_hash: &hash, ..plain };
                self.signer.write_request(&parts, self.output);
                BodyWriter::new(range, None)
            }
            Payload::Streaming => {
                self.scratch.clear();
                push_decimal(range.bytes, self.scratch);
                let headers: [Header; 2] = [
                    (b"content-encoding", b"aws-chunked"),
                    (b"x-amz-decoded-content-length", self.scratch),
                ];
                let parts = RequestParts {
                    headers: &headers,
                    payload_hash: STREAMING_PAYLOAD,
                    content_length: Some(range.chunked_bytes()),
                    ..plain
                };
                let signature = self.signer.write_request(&parts, self.output);
                BodyWriter::new(range, Some(self.signer.chunk_signer(signature)))
            }
        };
        if !body.is_done() {
            body.write_piece(&self.load.contents, self.output);
        }
        body
    }
}

/// The bytes of a part of what is written, at most as many as it has.
fn part_range(work: &Work, offset: u64, bytes: u64) -> BodyRange {
    BodyRange {
        object: work.content,
        version: work.version,
        offset,
        bytes: bytes.min(work.bytes - offset),
    }
}

/// What makes an object of its parts.
fn complete_body(tags: &[String]) -> String {
    let mut text = String::from("<CompleteMultipartUpload>");
    for (number, tag) in (1..).zip(tags) {
        // A tag has quotes of its own, which stand for themselves within an element.
        let _ = write!(text, "<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>");
    }
    text.push_str("</CompleteMultipartUpload>");
    text
}
