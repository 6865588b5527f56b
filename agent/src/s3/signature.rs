//! Requests with a signature of AWS's version 4, built in place.
//!
//! All that holds for a second is made once a second, the key once a day; what is left for a
//! request are its two hashes. Nothing is allocated once the buffers have grown.

use std::fmt;

use sha2::{Digest, Sha256};

use super::date::{DATE_BYTES, DAY_BYTES, signature_date};

/// What stands in place of a body's hash where bodies are not signed.
pub const UNSIGNED_PAYLOAD: &[u8] = b"UNSIGNED-PAYLOAD";
/// The same where each chunk of a body bears a signature.
pub const STREAMING_PAYLOAD: &[u8] = b"STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
/// The hash of no bytes.
pub const EMPTY_HASH: &[u8] = b"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

const ALGORITHM: &[u8] = b"AWS4-HMAC-SHA256";
const CHUNK_ALGORITHM: &[u8] = b"AWS4-HMAC-SHA256-PAYLOAD";
const SERVICE: &[u8] = b"s3";
const TERMINATOR: &[u8] = b"aws4_request";
/// Of a block of SHA-256.
const BLOCK_BYTES: usize = 64;
/// Bytes of a hash in hexadecimal digits.
pub const HASH_DIGITS: usize = 64;

/// Who signs. Never shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The public part.
    pub access_key: String,
    /// The secret part.
    pub secret_key: String,
    /// Of temporary credentials.
    pub session_token: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credentials")
    }
}

/// A hash in hexadecimal digits.
#[must_use]
pub fn hex_hash(hash: &[u8; 32]) -> [u8; HASH_DIGITS] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [0; HASH_DIGITS];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(hash) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    digits
}

/// HMAC-SHA-256 of one key: its two first blocks are hashed already.
#[derive(Clone)]
struct Hmac {
    inner: Sha256,
    outer: Sha256,
}

impl Hmac {
    fn new(key: &[u8]) -> Self {
        let mut block = [0_u8; BLOCK_BYTES];
        if key.len() > BLOCK_BYTES {
            block[..32].copy_from_slice(&Sha256::digest(key));
        } else {
            block[..key.len()].copy_from_slice(key);
        }
        let (mut inner, mut outer) = (Sha256::new(), Sha256::new());
        inner.update(block.map(|byte| byte ^ 0x36));
        outer.update(block.map(|byte| byte ^ 0x5c));
        Self { inner, outer }
    }

    fn sign(&self, message: &[u8]) -> [u8; 32] {
        let mut inner = self.inner.clone();
        inner.update(message);
        let mut outer = self.outer.clone();
        outer.update(inner.finalize());
        outer.finalize().into()
    }
}

/// A header that is signed: its name in small letters, its value.
pub type Header<'a> = (&'static [u8], &'a [u8]);

/// A request to be signed.
#[derive(Debug, Clone, Copy)]
pub struct RequestParts<'a> {
    /// In capital letters.
    pub method: &'static [u8],
    /// From the slash on, percent-encoded.
    pub path: &'a [u8],
    /// What stands behind the question mark: `name=value`, encoded, in the order of names.
    pub query: &'a [u8],
    /// What comes beside host, date and hash, in the order of names.
    pub headers: &'a [Header<'a>],
    /// In hexadecimal digits, or what stands in its place.
    pub payload_hash: &'a [u8],
    /// Bytes of the body, where there may be one.
    pub content_length: Option<u64>,
}

/// Signs requests to one host.
#[derive(Clone)]
pub struct Signer {
    credentials: Credentials,
    region: Vec<u8>,
    host: Vec<u8>,
    key: Hmac,
    second: u64,
    date: [u8; DATE_BYTES],
    /// `20130524/us-east-1/s3/aws4_request`.
    scope: Vec<u8>,
    /// What is hashed, and what is signed: kept for their memory.
    canonical: Vec<u8>,
    to_sign: Vec<u8>,
}

impl fmt::Debug for Signer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Signer")
    }
}

impl Signer {
    /// A signer of requests to a host, as its header names it, from that second since 1970 on.
    #[must_use]
    pub fn new(credentials: &Credentials, region: &str, host: &str, second: u64) -> Self {
        let mut signer = Self {
            credentials: credentials.clone(),
            region: region.as_bytes().to_vec(),
            host: host.as_bytes().to_vec(),
            key: Hmac::new(b""),
            second,
            date: signature_date(second),
            scope: Vec::new(),
            canonical: Vec::with_capacity(1024),
            to_sign: Vec::with_capacity(256),
        };
        signer.make_key();
        signer
    }

    /// Take the second since 1970 as now.
    #[inline]
    pub fn set_second(&mut self, second: u64) {
        if second != self.second {
            self.second = second;
            let date = signature_date(second);
            let is_new_day = date[..DAY_BYTES] != self.date[..DAY_BYTES];
            self.date = date;
            if is_new_day {
                self.make_key();
            }
        }
    }

    fn make_key(&mut self) {
        let day = &self.date[..DAY_BYTES];
        let first = [b"AWS4", self.credentials.secret_key.as_bytes()].concat();
        let keys = [day, &self.region, SERVICE, TERMINATOR];
        let key = keys.iter().fold(first, |key, part| Hmac::new(&key).sign(part).to_vec());
        self.key = Hmac::new(&key);
        self.scope = [day, &self.region, SERVICE, TERMINATOR].join(&b'/');
    }

    /// Write the head of a request, signed, to the end of `output`; the signature.
    pub fn write_request(
        &mut self,
        parts: &RequestParts,
        output: &mut Vec<u8>,
    ) -> [u8; HASH_DIGITS] {
        let token = self.credentials.session_token.as_deref().map(str::as_bytes);
        let own: [Option<Header>; 4] = [
            Some((b"host", &self.host)),
            Some((b"x-amz-content-sha256", parts.payload_hash)),
            Some((b"x-amz-date", &self.date)),
            token.map(|token| (b"x-amz-security-token".as_slice(), token)),
        ];
        output.extend_from_slice(parts.method);
        output.push(b' ');
        output.extend_from_slice(parts.path);
        if !parts.query.is_empty() {
            output.push(b'?');
            output.extend_from_slice(parts.query);
        }
        output.extend_from_slice(b" HTTP/1.1\r\n");
        let canonical = &mut self.canonical;
        canonical.clear();
        for part in [parts.method, parts.path, parts.query] {
            canonical.extend_from_slice(part);
            canonical.push(b'\n');
        }
        for (name, value) in merge_headers(&own, parts.headers) {
            canonical.extend_from_slice(name);
            canonical.push(b':');
            canonical.extend_from_slice(value);
            canonical.push(b'\n');
            output.extend_from_slice(name);
            output.extend_from_slice(b": ");
            output.extend_from_slice(value);
            output.extend_from_slice(b"\r\n");
        }
        canonical.push(b'\n');
        let names_start = canonical.len();
        for (name, _) in merge_headers(&own, parts.headers) {
            canonical.extend_from_slice(name);
            canonical.push(b';');
        }
        canonical.pop();
        let names_end = canonical.len();
        canonical.push(b'\n');
        canonical.extend_from_slice(parts.payload_hash);
        let to_sign = &mut self.to_sign;
        to_sign.clear();
        for part in [ALGORITHM, &self.date, &self.scope] {
            to_sign.extend_from_slice(part);
            to_sign.push(b'\n');
        }
        to_sign.extend_from_slice(&hex_hash(&Sha256::digest(&canonical).into()));
        let signature = hex_hash(&self.key.sign(to_sign));
        for part in [
            b"authorization: AWS4-HMAC-SHA256 Credential=",
            self.credentials.access_key.as_bytes(),
            b"/",
            &self.scope,
            b",SignedHeaders=",
            &canonical[names_start..names_end],
            b",Signature=",
            &signature,
            b"\r\n",
        ] {
            output.extend_from_slice(part);
        }
        if let Some(length) = parts.content_length {
            output.extend_from_slice(b"content-length: ");
            push_decimal(length, output);
            output.extend_from_slice(b"\r\n");
        }
        output.extend_from_slice(b"\r\n");
        signature
    }

    /// What signs the chunks of the body of a request whose signature was that.
    #[must_use]
    pub fn chunk_signer(&self, signature: [u8; HASH_DIGITS]) -> ChunkSigner {
        ChunkSigner { key: self.key.clone(), date: self.date, scope: self.scope.clone(), signature }
    }
}

/// Signs the chunks of one body, each with the signature before it.
#[derive(Clone)]
pub struct ChunkSigner {
    key: Hmac,
    date: [u8; DATE_BYTES],
    scope: Vec<u8>,
    signature: [u8; HASH_DIGITS],
}

impl fmt::Debug for ChunkSigner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ChunkSigner")
    }
}

impl ChunkSigner {
    /// The signature of the next chunk.
    pub fn sign(&mut self, chunk: &[u8]) -> [u8; HASH_DIGITS] {
        let mut to_sign = Vec::with_capacity(320);
        for part in [CHUNK_ALGORITHM, &self.date, &self.scope, &self.signature, EMPTY_HASH] {
            to_sign.extend_from_slice(part);
            to_sign.push(b'\n');
        }
        to_sign.extend_from_slice(&hex_hash(&Sha256::digest(chunk).into()));
        self.signature = hex_hash(&self.key.sign(&to_sign));
        self.signature
    }
}

/// Two lists of headers in the order of names, as one.
fn merge_headers<'a>(
    own: &'a [Option<Header<'a>>; 4],
    others: &'a [Header<'a>],
) -> impl Iterator<Item = Header<'a>> {
    let mut own = own.iter().flatten().copied().peekable();
    let mut others = others.iter().copied().peekable();
    std::iter::from_fn(move || match (own.peek(), others.peek()) {
        (Some((mine, _)), Some((other, _))) if other < mine => others.next(),
        (Some(_), _) => own.next(),
        (None, _) => others.next(),
    })
}

/// A number in decimal digits.
pub fn push_decimal(number: u64, output: &mut Vec<u8>) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    output.extend_from_slice(&digits[at..]);
}

/// A text as it stands in a path or in a query: all but unreserved bytes in percent; slashes too,
/// unless they are kept.
pub fn push_encoded(text: &[u8], keep_slashes: bool, output: &mut Vec<u8>) {
    for &byte in text {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if is_plain || (keep_slashes && byte == b'/') {
            output.push(byte);
        } else {
            const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            let digits = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
            output.extend_from_slice(&[b'%', digits[0], digits[1]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "examplebucket.s3.amazonaws.com";
    /// 24 May 2013.
    const SECOND: u64 = 1_369_353_600;

    /// The credentials of AWS's published examples.
    fn credentials() -> Credentials {
        Credentials {
            access_key: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            session_token: None,
        }
    }

    fn signature_of(parts: &RequestParts) -> (String, String) {
        let mut signer = Signer::new(&credentials(), "us-east-1", HOST, SECOND);
        let mut output = Vec::new();
        let signature = signer.write_request(parts, &mut output);
        (String::from_utf8(signature.to_vec()).unwrap(), String::from_utf8(output).unwrap())
    }

    #[test]
    fn the_published_examples_have_the_published_signatures() {
        let get = RequestParts {
            method: b"GET",
            path: b"/test.txt",
            query: b"",
            headers: &[(b"range", b"bytes=0-9")],
            payload_hash: EMPTY_HASH,
            content_length: None,
        };
        let root = RequestParts { path: b"/", headers: &[], ..get };
        let put_hash = hex_hash(&Sha256::digest(b"Welcome to Amazon S3.").into());
        let mut path = b"/".to_vec();
        push_encoded(b"test$file.text", true, &mut path);
        let put = RequestParts {
            method: b"PUT",
            path: &path,
            query: b"",
            headers: &[
                (b"date", b"Fri, 24 May 2013 00:00:00 GMT"),
                (b"x-amz-storage-class", b"REDUCED_REDUNDANCY"),
            ],
            payload_hash: &put_hash,
            content_length: Some(21),
        };
        for (parts, signature) in [
            (get, "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
            (
                RequestParts { query: b"max-keys=2&prefix=J", ..root },
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
            (
                RequestParts { query: b"lifecycle=", ..root },
                "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
            ),
            (put, "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        ] {
            let (own, request) = signature_of(&parts);
            assert_eq!(own, signature, "{request}");
            assert!(request.contains(&format!(",Signature={signature}\r\n")));
        }
    }

    #[test]
    fn the_published_upload_in_chunks_has_the_published_signatures() {
        let mut signer = Signer::new(&credentials(), "us-east-1", "s3.amazonaws.com", SECOND);
        let parts = RequestParts {
            method: b"PUT",
            path: b"/examplebucket/chunkObject.txt",
            query: b"",
            headers: &[
                (b"content-encoding", b"aws-chunked"),
                (b"content-length", b"66824"),
                (b"x-amz-decoded-content-length", b"66560"),
                (b"x-amz-storage-class", b"REDUCED_REDUNDANCY"),
            ],
            payload_hash: STREAMING_PAYLOAD,
            content_length: None,
        };
        let seed = signer.write_request(&parts, &mut Vec::new());
        assert_eq!(&seed, b"4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9");
        let mut chunks = signer.chunk_signer(seed);
        for (bytes, signature) in [
            (65_536, b"ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"),
            (1024, b"0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"),
            (0, b"b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
        ] {
            assert_eq!(&chunks.sign(&vec![b'a'; bytes]), signature);
        }
    }

    #[test]
    fn a_day_has_a_key_of_its_own() {
        let parts = RequestParts {
            method: b"GET",
            path: b"/",
            query: b"",
            headers: &[],
            payload_hash: EMPTY_HASH,
            content_length: None,
        };
        let mut signer = Signer::new(&credentials(), "us-east-1", HOST, SECOND - 1);
        let before = signer.write_request(&parts, &mut Vec::new());
        signer.set_second(SECOND);
        let mut fresh = Signer::new(&credentials(), "us-east-1", HOST, SECOND);
        let after = signer.write_request(&parts, &mut Vec::new());
        assert_ne!(before, after);
        assert_eq!(after, fresh.write_request(&parts, &mut Vec::new()));
    }

    #[test]
    fn a_session_token_is_sent_and_signed() {
        let token = Credentials { session_token: Some("temporary".into()), ..credentials() };
        let mut output = Vec::new();
        Signer::new(&token, "r", "h", SECOND).write_request(
            &RequestParts {
                method: b"GET",
                path: b"/",
                query: b"",
                headers: &[],
                payload_hash: EMPTY_HASH,
                content_length: None,
            },
            &mut output,
        );
        let text = String::from_utf8(output).unwrap();
        assert!(text.contains("x-amz-security-token: temporary\r\n"));
        assert!(text.contains(";x-amz-security-token,Signature="));
    }

    #[test]
    fn nothing_secret_is_shown() {
        let signer = Signer::new(&credentials(), "r", "h", SECOND);
        let shown = format!("{:?} {signer:?} {:?}", credentials(), signer.chunk_signer([0; 64]));
        assert!(!shown.contains("wJalr") && !shown.contains("AKIA"), "{shown}");
    }

    #[test]
    fn numbers_and_encoded_texts_are_as_servers_read_them() {
        let mut output = Vec::new();
        push_decimal(0, &mut output);
        push_decimal(u64::MAX, &mut output);
        push_encoded("a b/ü".as_bytes(), true, &mut output);
        push_encoded(b"/", false, &mut output);
        assert_eq!(output, b"018446744073709551615a%20b/%C3%BC%2F");
    }
}
