//! One connection, and the request that is on its way over it.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use super::body::BodyWriter;
use super::client::redacted;
use super::contents::{Comparison, ContentFault, Contents};
use super::date::parse_http_date;
use super::error_class::{ErrorClass, code_and_message};
use super::http::{BodyLength, ChunkedBody, Head, parse_head};
use super::transport::{TlsSettings, Transport};
use crate::native::tsc::Clock;

/// Of an answer that says why a request failed.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Of an answer that is read as text: a page of keys.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// What is to become of an answer's body.
#[derive(Debug, Default)]
pub struct Expectation {
    /// What is done with it.
    pub body: BodyUse,
    /// So many bytes.
    pub bytes: Option<u64>,
    /// The status of a part of an object.
    pub is_partial: bool,
    /// The object's tag is kept.
    pub wants_tag: bool,
    /// The server's clock is read.
    pub wants_date: bool,
    /// It is compared with what was written.
    pub comparison: Option<Box<Comparison>>,
}

/// What is done with an answer's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BodyUse {
    /// It goes away, unless it is compared.
    #[default]
    Discarded,
    /// It is kept as text.
    Text,
    /// There is none, whatever its length says.
    Absent,
}

/// When what happened to a request, in ticks; zero for what did not.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestTimes {
    /// Its attempt began: before the connection, if a new one was needed.
    pub start: u64,
    /// The connection was there, where a new one was needed.
    pub connected: u64,
    /// The kernel had all of it.
    pub sent: u64,
    /// The head of the answer was there.
    pub headers: u64,
    /// The first byte of the body was.
    pub first_byte: u64,
    /// The last byte of the answer was.
    pub last_byte: u64,
}

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptFault {
    /// Its class.
    pub class: ErrorClass,
    /// What happened, without a full stop.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Connecting,
    Handshaking,
    Sending,
    Receiving,
}

/// What all lanes of a thread share.
pub struct LaneContext<'a> {
    /// Makes and compares bodies.
    pub contents: &'a Contents,
    /// Of all times.
    pub clock: Clock,
    /// Where bodies go that nobody keeps.
    pub sink: &'a mut [u8],
    /// Never told in a message.
    pub access_key: &'a str,
    /// Ticks that bodies took to be made, and to be compared.
    pub contents_ticks: u64,
    /// See `contents_ticks`.
    pub verify_ticks: u64,
    /// Nanoseconds of encryption.
    pub tls_ns: u64,
}

/// A connection and its request.
#[derive(Debug)]
pub struct Lane {
    /// Which of the servers.
    pub server: usize,
    address: SocketAddr,
    tls: Option<TlsSettings>,
    transport: Option<Transport>,
    phase: Phase,
    /// The head of the request, and the piece of its body that is sent.
    pub output: Vec<u8>,
    sent: usize,
    body: Option<BodyWriter>,
    expectation: Expectation,
    /// What has come of a head.
    input: Vec<u8>,
    head: Option<Head>,
    chunks: ChunkedBody,
    body_bytes: u64,
    /// A body that is kept.
    pub text: Vec<u8>,
    /// The tag of an object.
    pub tag: String,
    /// The server's second since 1970.
    pub date: Option<u64>,
    /// When what happened.
    pub times: RequestTimes,
    peer_closed: bool,
    /// A connection was opened for this request.
    pub is_fresh: bool,
    /// The kernel tells of the connection.
    pub is_watched: bool,
}

impl Lane {
    /// Of one address of a server.
    #[must_use]
    pub fn new(server: usize, address: SocketAddr, tls: Option<TlsSettings>) -> Self {
        Self {
            server,
            address,
            tls,
            transport: None,
            phase: Phase::Idle,
            output: Vec::with_capacity(2048),
            sent: 0,
            body: None,
            expectation: Expectation::default(),
            input: Vec::new(),
            head: None,
            chunks: ChunkedBody::default(),
            body_bytes: 0,
            text: Vec::new(),
            tag: String::new(),
            date: None,
            times: RequestTimes::default(),
            peer_closed: false,
            is_fresh: false,
            is_watched: false,
        }
    }

    /// The connection, where there is one.
    #[must_use]
    pub fn transport(&self) -> Option<&Transport> {
        self.transport.as_ref()
    }

    /// Connect before there is a request.
    pub fn connect_blocking(&self, timeout: Duration) -> Result<Transport, AttemptFault> {
        let made = Transport::connect_blocking(&self.address, self.tls.as_ref(), timeout);
        made.and_then(|transport| {
            transport.set_nonblocking()?;
            Ok(transport)
        })
        .map_err(|error| self.connect_fault(&error))
    }

    /// Take a connection that is there.
    pub fn adopt(&mut self, transport: Transport) {
        self.transport = Some(transport);
        self.is_watched = false;
    }

    /// Give the connection up.
    pub fn close(&mut self) {
        self.transport = None;
        self.phase = Phase::Idle;
        self.peer_closed = false;
        self.is_watched = false;
    }

    /// Whether a request is on its way.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// The server has closed its side; whether that was while nothing was on its way.
    pub fn note_peer_closed(&mut self) -> bool {
        self.peer_closed = true;
        let is_idle = self.phase == Phase::Idle && self.transport.is_some();
        if is_idle {
            self.close();
        }
        is_idle
    }

    /// Begin the request whose head is in `output`. A connection is opened where there is none.
    pub fn start(
        &mut self,
        body: Option<BodyWriter>,
        expectation: Expectation,
        context: &LaneContext,
    ) -> Result<(), AttemptFault> {
        self.body = body;
        self.expectation = expectation;
        self.sent = 0;
        self.input.clear();
        self.head = None;
        self.chunks = ChunkedBody::default();
        self.body_bytes = 0;
        self.text.clear();
        self.tag.clear();
        self.date = None;
        self.is_fresh = self.transport.is_none();
        self.times = RequestTimes { start: context.clock.ticks(), ..RequestTimes::default() };
        self.phase = Phase::Sending;
        if self.is_fresh {
            let made = Transport::start_connect(&self.address, self.tls.as_ref());
            self.transport = Some(made.map_err(|error| {
                self.phase = Phase::Idle;
                self.connect_fault(&error)
            })?);
            self.is_watched = false;
            self.peer_closed = false;
            self.phase = Phase::Connecting;
        }
        Ok(())
    }

    /// Do all that can be done without waiting: None while the request is on its way, else what
    /// became of it.
    pub fn drive(&mut self, context: &mut LaneContext) -> Option<Result<(), AttemptFault>> {
        let outcome = self.drive_phases(context);
        context.tls_ns += self.transport.as_mut().map_or(0, Transport::take_crypto_ns);
        let finished = match outcome {
            Ok(false) => return None,
            Ok(true) => self.judge(context),
            Err(fault) => Err(fault),
        };
        self.finish(&finished);
        Some(finished)
    }

    /// Give the request up, as its time is over.
    pub fn time_out(&mut self) -> AttemptFault {
        let (class, message) = match self.phase {
            Phase::Connecting | Phase::Handshaking => {
                (ErrorClass::ConnectTimeout, format!("no connection to {} in time", self.address))
            }
            _ => (ErrorClass::Timeout, "no whole answer in time".to_owned()),
        };
        self.close();
        AttemptFault { class, message }
    }

    fn finish(&mut self, outcome: &Result<(), AttemptFault>) {
        self.phase = Phase::Idle;
        self.body = None;
        // After an answer that was whole the connection is as good as before, whatever it said.
        let is_whole = self.times.last_byte > 0 && self.times.sent > 0;
        let is_kept = self.head.as_ref().is_some_and(|head| head.keeps_alive);
        let is_broken = outcome.as_ref().is_err_and(|fault| fault.class == ErrorClass::BadResponse);
        if !is_whole || !is_kept || is_broken || self.peer_closed {
            self.close();
        }
    }

    /// Whether the answer is whole.
    fn drive_phases(&mut self, context: &mut LaneContext) -> Result<bool, AttemptFault> {
        if self.phase == Phase::Connecting {
            let outcome = self.transport.as_ref().map(Transport::connect_outcome);
            if let Some(Err(error)) = outcome {
                return Err(self.connect_fault(&error));
            }
            self.phase = Phase::Handshaking;
        }
        if self.phase == Phase::Handshaking {
            let Some(transport) = self.transport.as_mut() else { return Ok(false) };
            match transport.continue_handshake() {
                Ok(()) => {}
                // A socket that does not yet connect cannot be written to.
                Err(error) if is_pending(&error) => return Ok(false),
                Err(error) => return Err(self.connect_fault(&error)),
            }
            self.times.connected = context.clock.ticks();
            self.phase = Phase::Sending;
        }
        if self.phase == Phase::Sending {
            match self.send_all(context) {
                Ok(()) => {
                    self.times.sent = context.clock.ticks();
                    self.phase = Phase::Receiving;
                    // What comes tells of itself, unless TLS holds it already.
                    if self.transport.as_ref().is_some_and(|transport| !transport.is_tls()) {
                        return Ok(false);
                    }
                }
                Err(error) if is_pending(&error) => {}
                Err(error) => {
                    // The server may have told why before it closed the connection.
                    return match self.receive(context) {
                        Ok(true) => Ok(true),
                        _ => Err(io_fault(&error)),
                    };
                }
            }
        }
        self.receive(context)
    }

    fn send_all(&mut self, context: &mut LaneContext) -> io::Result<()> {
        loop {
            let Some(transport) = self.transport.as_mut() else {
                return Err(ErrorKind::NotConnected.into());
            };
            while self.sent < self.output.len() {
                self.sent += transport.send(&self.output[self.sent..])?;
            }
            match &mut self.body {
                Some(body) if !body.is_done() => {
                    self.output.clear();
                    self.sent = 0;
                    let before = context.clock.ticks();
                    body.write_piece(context.contents, &mut self.output);
                    context.contents_ticks += context.clock.ticks().saturating_sub(before);
                }
                _ => return transport.flush(),
            }
        }
    }

    fn receive(&mut self, context: &mut LaneContext) -> Result<bool, AttemptFault> {
        loop {
            let Some(transport) = self.transport.as_mut() else { return Ok(false) };
            let is_tls = transport.is_tls();
            let count = match transport.recv(context.sink) {
                Ok(count) => count,
                Err(error) if is_pending(&error) => return Ok(false),
                Err(error) => return Err(io_fault(&error)),
            };
            let now = context.clock.ticks();
            if count == 0 {
                return self.take_end(now);
            }
            let was_full = count == context.sink.len();
            if self.take_input(count, now, context)? {
                return Ok(true);
            }
            // A socket that gave less than there was room for has no more; the kernel tells of more.
            if !was_full && !is_tls && !self.peer_closed {
                return Ok(false);
            }
        }
    }

    fn take_end(&mut self, now: u64) -> Result<bool, AttemptFault> {
        self.peer_closed = true;
        match &self.head {
            None => Err(AttemptFault {
                class: ErrorClass::Closed,
                message: "the server closed the connection without an answer".into(),
            }),
            Some(head) if head.body == BodyLength::UntilClose => {
                self.times.last_byte = now;
                Ok(true)
            }
            Some(_) => Err(AttemptFault {
                class: ErrorClass::ShortBody,
                message: format!("the body ended after {} bytes", self.body_bytes),
            }),
        }
    }

    /// Take what is at the start of the sink; whether the answer is whole.
    fn take_input(
        &mut self,
        count: usize,
        now: u64,
        context: &mut LaneContext,
    ) -> Result<bool, AttemptFault> {
        let mut at = 0;
        while self.head.is_none() {
            let is_direct = self.input.is_empty();
            if !is_direct {
                self.input.extend_from_slice(&context.sink[at..count]);
            }
            let text: &[u8] = if is_direct { &context.sink[at..count] } else { &self.input };
            let has_body = self.expectation.body != BodyUse::Absent;
            let found =
                parse_head(text, has_body).map_err(|_| bad_response("no answer of HTTP"))?;
            let Some(head) = found else {
                if is_direct {
                    self.input.extend_from_slice(&context.sink[at..count]);
                }
                return Ok(false);
            };
            // How much of the head was in what came now.
            let earlier = text.len() - (count - at);
            at += head.bytes - earlier.min(head.bytes);
            if head.is_interim() {
                self.input.clear();
                continue;
            }
            if self.expectation.wants_tag {
                self.tag.push_str(&String::from_utf8_lossy(&text[head.etag.clone()]));
            }
            if self.expectation.wants_date {
                self.date = parse_http_date(&text[head.date.clone()]);
            }
            self.times.headers = now;
            self.input.clear();
            self.head = Some(head);
        }
        self.take_body(at, count, now, context)
    }

    fn take_body(
        &mut self,
        at: usize,
        count: usize,
        now: u64,
        context: &mut LaneContext,
    ) -> Result<bool, AttemptFault> {
        let Some(head) = &self.head else { return Ok(false) };
        let (length, is_kept) =
            (head.body, self.expectation.body == BodyUse::Text || !head.is_success());
        let limit = if head.is_success() { MAX_TEXT_BYTES } else { MAX_ERROR_BYTES };
        let compares = head.is_success();
        let bytes = &context.sink[at..count];
        let comparison = self.expectation.comparison.as_deref_mut().filter(|_| compares);
        let (text, contents) = (&mut self.text, context.contents);
        let (body_bytes, clock) = (&mut self.body_bytes, context.clock);
        let mut verify_ticks = 0;
        let mut comparison = comparison;
        let mut take = |data: &[u8]| {
            *body_bytes += data.len() as u64;
            if is_kept && text.len() < limit {
                text.extend_from_slice(data);
            }
            if let Some(comparison) = comparison.as_deref_mut() {
                let before = clock.ticks();
                contents.compare(comparison, data);
                verify_ticks += clock.ticks().saturating_sub(before);
            }
        };
        let is_whole = match length {
            BodyLength::Chunked => {
                let decoded = self.chunks.decode(bytes, take);
                let decoded = decoded.map_err(|_| bad_response("no chunk of a body"))?;
                if decoded.is_done && decoded.taken < bytes.len() {
                    return Err(bad_response("more bytes than the answer has"));
                }
                decoded.is_done
            }
            BodyLength::Known(all) => {
                take(bytes);
                if self.body_bytes > all {
                    return Err(bad_response("more bytes than the answer has"));
                }
                self.body_bytes == all
            }
            BodyLength::UntilClose => {
                take(bytes);
                false
            }
        };
        context.verify_ticks += verify_ticks;
        if self.times.first_byte == 0 && self.body_bytes > 0 {
            self.times.first_byte = now;
        }
        if is_whole {
            // With what came last, and not after it was looked at.
            self.times.last_byte = now;
        }
        Ok(is_whole)
    }

    /// What a whole answer says.
    fn judge(&mut self, context: &mut LaneContext) -> Result<(), AttemptFault> {
        let Some(head) = &self.head else { return Err(bad_response("no answer")) };
        let error = if self.text.is_empty() { None } else { code_and_message(&self.text) };
        if !head.is_success() || error.is_some() {
            let code = error.as_ref().map(|(code, _)| code.as_str());
            let class = ErrorClass::of_answer(head.status, code);
            let words = error.map_or(String::new(), |(code, message)| {
                format!(" {code}: {}", redacted(&message, context.access_key))
            });
            let message = format!("{}{words}", head.status).trim_end_matches('.').to_owned();
            return Err(AttemptFault { class, message });
        }
        if self.expectation.is_partial && head.status != 206 {
            let message = format!("{} for a part of an object, not 206", head.status);
            return Err(AttemptFault { class: ErrorClass::BadResponse, message });
        }
        if let Some(bytes) = self.expectation.bytes.filter(|&bytes| bytes != self.body_bytes) {
            return Err(AttemptFault {
                class: ErrorClass::WrongLength,
                message: format!("{} bytes of {bytes}", self.body_bytes),
            });
        }
        let comparison = self.expectation.comparison.as_deref_mut();
        match comparison.and_then(|comparison| context.contents.finish(comparison)) {
            None => Ok(()),
            Some(ContentFault::Corrupt(at)) => Err(AttemptFault {
                class: ErrorClass::WrongContent,
                message: format!("other bytes than were written, from byte {at} on"),
            }),
            Some(ContentFault::Torn(at)) => Err(AttemptFault {
                class: ErrorClass::TornContent,
                message: format!("bytes of two writes, the second from byte {at} on"),
            }),
        }
    }

    /// Bytes of the answer's body.
    #[must_use]
    pub fn body_bytes(&self) -> u64 {
        self.body_bytes
    }

    /// Whether the body was compared.
    #[must_use]
    pub fn is_compared(&self) -> bool {
        self.expectation.comparison.is_some()
    }

    fn connect_fault(&self, error: &io::Error) -> AttemptFault {
        AttemptFault {
            class: ErrorClass::of_connect(error),
            message: format!("no connection to {}: {error}", self.address),
        }
    }
}

fn is_pending(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected)
}

fn io_fault(error: &io::Error) -> AttemptFault {
    AttemptFault { class: ErrorClass::of_io(error), message: error.to_string() }
}

fn bad_response(what: &str) -> AttemptFault {
    AttemptFault { class: ErrorClass::BadResponse, message: format!("the server sent {what}") }
}
