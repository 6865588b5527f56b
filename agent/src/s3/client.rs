//! Requests one after another, for all that is not measured.

use std::fmt;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::date::parse_http_date;
use super::endpoint::{Server, bucket_path};
use super::error_class::{ErrorClass, code_and_message};
use super::http::{BodyLength, ChunkedBody, Head, parse_head};
use super::signature::{Header, RequestParts, Signer, hex_hash, push_encoded};
use super::spec::{Spec, TargetSpec};
use super::transport::{TlsFacts, Transport};
use crate::sys::time::{SECOND_NS, real_ns};

/// A page of a list has at most a thousand keys of a kilobyte each.
const MAX_BODY_BYTES: usize = 16 << 20;
const READ_BYTES: usize = 64 << 10;
/// A request may meet a connection that the server has just closed; then a new one is used.
const CONNECTION_ATTEMPTS: usize = 2;
/// How often a request is sent again that a busy server refuses, and the pauses between.
const BUSY_REPEATS: usize = 10;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Call<'a> {
    /// In capital letters; GET where there is none.
    pub method: &'static str,
    /// The object; the bucket itself where there is none.
    pub key: &'a str,
    /// Encoded, in the order of names.
    pub query: &'a str,
    /// The body.
    pub body: &'a [u8],
    /// Headers to be signed, in the order of their names.
    pub headers: &'a [Header<'a>],
}

/// An answer that says that the request was done.
#[derive(Debug)]
pub struct Answer {
    /// All of its head, as it came.
    pub head_text: Vec<u8>,
    /// What that says.
    pub head: Head,
    /// All of its body.
    pub body: Vec<u8>,
    /// From the request's first byte to the answer's last.
    pub elapsed: Duration,
    /// By our clock, when the head was there, in nanoseconds since 1970.
    pub real_ns: u64,
}

impl Answer {
    /// The body as text, what is none replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// By how much the server's clock is ahead of ours, by the answer's date. That has whole
    /// seconds, so its middle is meant.
    #[must_use]
    pub fn clock_ahead_ms(&self) -> Option<i64> {
        let second = parse_http_date(&self.head_text[self.head.date.clone()])?;
        Some((second * 1000 + 500) as i64 - (self.real_ns / (SECOND_NS / 1000)) as i64)
    }
}

/// Why a request was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFault {
    /// Its class.
    pub class: ErrorClass,
    /// What happened, without a full stop.
    pub message: String,
    /// By how much the clock of the server that refused it is ahead of ours.
    pub clock_ahead_ms: Option<i64>,
}

impl fmt::Display for RequestFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.message, self.class.name())
    }
}

/// What sends requests to one address of a server.
#[derive(Debug)]
pub struct Client {
    server: Server,
    address: SocketAddr,
    signer: Signer,
    access_key: String,
    bucket_path: Vec<u8>,
    timeout: Duration,
    transport: Option<Transport>,
    request: Vec<u8>,
    buffer: Vec<u8>,
    /// Of the last connection.
    pub connect_time: Duration,
    /// How many connections were opened.
    pub connections: u64,
}

impl Client {
    /// To the `nth` address of a server.
    #[must_use]
    pub fn new(spec: &Spec, server: &Server, nth: usize) -> Self {
        let TargetSpec { bucket, region, style, .. } = &spec.target;
        let second = real_ns() / SECOND_NS;
        Self {
            server: server.clone(),
            address: server.addresses[nth % server.addresses.len()],
            signer: Signer::new(&spec.secret.credentials(), region, &server.host_header, second),
            access_key: spec.secret.access_key().to_owned(),
            bucket_path: bucket_path(bucket, *style),
            timeout: spec.timeout(),
            transport: None,
            request: Vec::new(),
            buffer: Vec::new(),
            connect_time: Duration::ZERO,
            connections: 0,
        }
    }

    /// So many clients, spread over all addresses of all servers.
    #[must_use]
    pub fn spread_over_servers(spec: &Spec, servers: &[Server], count: usize) -> Vec<Self> {
        (0..count)
            .map(|nth| Self::new(spec, &servers[nth % servers.len()], nth / servers.len()))
            .collect()
    }

    /// Send a request and take the whole answer; any but a success is a fault.
    pub fn call(&mut self, call: &Call) -> Result<Answer, RequestFault> {
        self.write_request(call);
        let method = if call.method.is_empty() { "GET" } else { call.method };
        let place = if call.key.is_empty() { "the bucket" } else { call.key };
        let mut attempt = 0;
        let answer = loop {
            attempt += 1;
            let is_fresh = self.transport.is_none();
            match self.exchange(method != "HEAD") {
                Ok(answer) => break answer,
                Err((class, message)) => {
                    self.transport = None;
                    let may_retry = matches!(class, ErrorClass::Closed | ErrorClass::Reset);
                    if is_fresh || !may_retry || attempt >= CONNECTION_ATTEMPTS {
                        let url = &self.server.endpoint.url;
                        let message = format!("{method} {place} at {url}: {message}");
                        return Err(RequestFault { class, message, clock_ahead_ms: None });
                    }
                }
            }
        };
        let error = code_and_message(&answer.body);
        if answer.head.is_success() && error.is_none() {
            return Ok(answer);
        }
        let code = error.as_ref().map(|(code, _)| code.as_str());
        let class = ErrorClass::of_answer(answer.head.status, code);
        let words = error.map_or(String::new(), |(code, message)| {
            format!(" {code}: {}", redacted(&message, &self.access_key))
        });
        let message = format!("{method} {place}: {}{words}", answer.head.status);
        Err(RequestFault {
            class,
            message: message.trim_end_matches('.').to_owned(),
            clock_ahead_ms: answer.clock_ahead_ms(),
        })
    }

    /// The same, again and again where the server has too much to do: what is not measured waits.
    pub fn call_patiently(&mut self, call: &Call) -> Result<Answer, RequestFault> {
        let mut pause = FIRST_PAUSE;
        for _ in 0..BUSY_REPEATS {
            match self.call(call) {
                Err(fault) if fault.class.is_busy() => {}
                outcome => return outcome,
            }
            // Clients that were refused at one time must not come back at one time.
            let part = (real_ns() / 1000 % 16) as u32 + 1;
            thread::sleep(pause * part / 16);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        self.call(call)
    }

    /// What was agreed on with TLS.
    #[must_use]
    pub fn tls_facts(&self) -> Option<TlsFacts> {
        self.transport.as_ref().and_then(Transport::tls_facts)
    }

    fn write_request(&mut self, call: &Call) {
        let mut path = self.bucket_path.clone();
        if call.key.is_empty() && path.len() > 1 {
            path.pop();
        }
        push_encoded(call.key.as_bytes(), true, &mut path);
        self.signer.set_second(real_ns() / SECOND_NS);
        self.request.clear();
        let hash = hex_hash(&Sha256::digest(call.body).into());
        let method: &'static str = if call.method.is_empty() { "GET" } else { call.method };
        let has_length = !call.body.is_empty() || matches!(method, "PUT" | "POST");
        self.signer.write_request(
            &RequestParts {
                method: method.as_bytes(),
                path: &path,
                query: call.query.as_bytes(),
                headers: call.headers,
                payload_hash: &hash,
                content_length: has_length.then_some(call.body.len() as u64),
            },
            &mut self.request,
        );
        self.request.extend_from_slice(call.body);
    }

    fn exchange(&mut self, has_body: bool) -> Result<Answer, (ErrorClass, String)> {
        let began = Instant::now();
        let deadline = began + self.timeout;
        let transport = match &mut self.transport {
            Some(transport) => transport,
            empty => {
                let tls = self.server.tls.as_ref();
                let made = Transport::connect_blocking(&self.address, tls, self.timeout).map_err(
                    |error| {
                        let class = ErrorClass::of_connect(&error);
                        (class, format!("no connection to {}: {error}", self.address))
                    },
                )?;
                self.connect_time = began.elapsed();
                self.connections += 1;
                empty.insert(made)
            }
        };
        let failed = |error: std::io::Error| (ErrorClass::of_io(&error), error.to_string());
        let mut sent = 0;
        while sent < self.request.len() {
            sent += transport.send(&self.request[sent..]).map_err(failed)?;
        }
        transport.flush().map_err(failed)?;
        self.buffer.clear();
        let mut head: Option<(Head, Vec<u8>, u64)> = None;
        let mut body = Vec::new();
        let mut chunks = ChunkedBody::default();
        let mut piece = vec![0; READ_BYTES];
        loop {
            if head.is_none() {
                let found = parse_head(&self.buffer, has_body);
                let found = found.map_err(|_| {
                    (ErrorClass::BadResponse, "the answer is none of HTTP".to_owned())
                })?;
                if let Some(found) = found {
                    let rest = self.buffer.split_off(found.bytes);
                    let text = std::mem::replace(&mut self.buffer, rest);
                    if found.is_interim() {
                        continue;
                    }
                    head = Some((found, text, real_ns()));
                }
            }
            if let Some((found, _, _)) = &head {
                let is_whole = take_body(found.body, &mut self.buffer, &mut body, &mut chunks)?;
                if is_whole {
                    break;
                }
            }
            if Instant::now() >= deadline {
                return Err((ErrorClass::Timeout, "no whole answer in time".to_owned()));
            }
            let count = transport.recv(&mut piece).map_err(|error| match error.kind() {
                ErrorKind::WouldBlock => {
                    (ErrorClass::Timeout, "no whole answer in time".to_owned())
                }
                _ => failed(error),
            })?;
            if count == 0 {
                match &head {
                    None => {
                        let message = "the server closed the connection without an answer";
                        return Err((ErrorClass::Closed, message.to_owned()));
                    }
                    Some((found, _, _)) if found.body == BodyLength::UntilClose => break,
                    Some(_) => {
                        let message = "the body ended before its length";
                        return Err((ErrorClass::ShortBody, message.to_owned()));
                    }
                }
            }
            self.buffer.extend_from_slice(&piece[..count]);
        }
        let Some((head, head_text, real_ns)) = head else {
            return Err((ErrorClass::BadResponse, "there was no answer".to_owned()));
        };
        if !head.keeps_alive {
            self.transport = None;
        }
        Ok(Answer { head_text, head, body, elapsed: began.elapsed(), real_ns })
    }
}

/// Move what has come of a body; whether that was all.
fn take_body(
    length: BodyLength,
    buffer: &mut Vec<u8>,
    body: &mut Vec<u8>,
    chunks: &mut ChunkedBody,
) -> Result<bool, (ErrorClass, String)> {
    let is_done = match length {
        BodyLength::Chunked => {
            let decoded = chunks
                .decode(buffer, |data| body.extend_from_slice(data))
                .map_err(|_| (ErrorClass::BadResponse, "a chunk of the body is none".to_owned()))?;
            buffer.drain(..decoded.taken);
            decoded.is_done
        }
        BodyLength::Known(bytes) => {
            body.append(buffer);
            body.len() as u64 >= bytes
        }
        BodyLength::UntilClose => {
            body.append(buffer);
            false
        }
    };
    if body.len() > MAX_BODY_BYTES {
        let message = format!("the body has more than {MAX_BODY_BYTES} bytes");
        return Err((ErrorClass::BadResponse, message));
    }
    Ok(is_done)
}

/// A server's words without the access key.
#[must_use]
pub fn redacted(message: &str, access_key: &str) -> String {
    if access_key.is_empty() { message.to_owned() } else { message.replace(access_key, "…") }
}
