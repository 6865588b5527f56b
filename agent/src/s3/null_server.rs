//! A server that keeps nothing and answers at once: what a load makes against it is the limit of
//! the generator itself.
//!
//! It is started as `iolab-agent objects-null-server BYTES [PORT]`, prints its port, and ends with
//! its standard input. Every object has that many bytes; signatures are not checked.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{self, ExitCode};
use std::thread;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use serde_json::json;

use crate::native::lines::print_line;

/// Objects up to this have a whole answer ready.
const READY_BYTES: u64 = 1 << 20;
/// Of longer ones, what is sent at a time.
const PIECE_BYTES: usize = 256 << 10;
const MAX_EVENTS: usize = 512;
/// The listener among the events.
const LISTENER: u64 = u64::MAX;
/// A request's head is shorter.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Serve until standard input ends.
#[must_use]
pub fn main(arguments: &[String]) -> ExitCode {
    let numbers: Option<Vec<u64>> = arguments.iter().map(|one| one.parse().ok()).collect();
    let (bytes, port) = match numbers.as_deref() {
        Some([bytes]) => (*bytes, 0),
        Some([bytes, port]) if u16::try_from(*port).is_ok() => (*bytes, *port as u16),
        _ => {
            eprintln!("iolab-agent: give BYTES [PORT] as numbers");
            return ExitCode::from(2);
        }
    };
    let served = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).and_then(|listener| {
        print_line(&json!({ "port": listener.local_addr()?.port() }));
        thread::Builder::new().name("stdin".into()).spawn(end_with_stdin)?;
        NullServer::new(listener, bytes)?.serve()
    });
    if let Err(error) = served {
        eprintln!("iolab-agent: the null server ends: {error}");
    }
    ExitCode::from(1)
}

fn end_with_stdin() {
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
    process::exit(0);
}

/// The server.
pub struct NullServer {
    listener: TcpListener,
    bytes: u64,
    /// The whole answer to GET, where objects are small.
    get_answer: Vec<u8>,
    piece: Vec<u8>,
    connections: Vec<Option<Connection>>,
}

/// What is to be answered once the body of a request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Get,
    Part(u64),
    Head,
    Empty,
    NoContent,
    List,
    Create,
    Complete,
}

struct Connection {
    socket: TcpStream,
    input: Vec<u8>,
    skip: u64,
    reply: Option<Reply>,
    /// Bytes of the ready answer that are sent, of one that is under way.
    ready_at: Option<usize>,
    output: Vec<u8>,
    written: usize,
    body_left: u64,
}

impl NullServer {
    /// On a listener.
    pub fn new(listener: TcpListener, bytes: u64) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let mut get_answer = Vec::new();
        if bytes <= READY_BYTES {
            get_answer = head("200 OK", bytes).into_bytes();
            get_answer.resize(get_answer.len() + bytes as usize, 0x5a);
        }
        let piece = vec![0x5a; PIECE_BYTES];
        Ok(Self { listener, bytes, get_answer, piece, connections: Vec::new() })
    }

    /// Answer for ever.
    pub fn serve(&mut self) -> io::Result<()> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &self.listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        let mut events: Vec<Event> = Vec::with_capacity(MAX_EVENTS);
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            events.clear();
            match epoll::wait(&epoll, spare_capacity(&mut events), None) {
                Ok(_) => {}
                Err(error) if io::Error::from(error).kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let data = event.data.u64();
                if data == LISTENER {
                    self.accept(&epoll)?;
                } else {
                    self.serve_connection(data as usize, &mut buffer);
                }
            }
        }
    }

    fn accept(&mut self, epoll: &impl std::os::fd::AsFd) -> io::Result<()> {
        loop {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            let place = self.connections.iter().position(Option::is_none);
            let place = place.unwrap_or(self.connections.len());
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
            epoll::add(epoll, &socket, EventData::new_u64(place as u64), flags)?;
            let connection = Connection {
                socket,
                input: Vec::new(),
                skip: 0,
                reply: None,
                ready_at: None,
                output: Vec::new(),
                written: 0,
                body_left: 0,
            };
            if place == self.connections.len() {
                self.connections.push(None);
            }
            self.connections[place] = Some(connection);
        }
    }

    fn serve_connection(&mut self, place: usize, buffer: &mut [u8]) {
        let Some(connection) = self.connections.get_mut(place).and_then(Option::as_mut) else {
            return;
        };
        if connection.answer_received(self.bytes, &self.get_answer, &self.piece, buffer).is_err() {
            self.connections[place] = None;
        }
    }
}

impl Connection {
    /// Take what has come, and answer it; an error when the connection is over.
    fn answer_received(
        &mut self,
        bytes: u64,
        get_answer: &[u8],
        piece: &[u8],
        buffer: &mut [u8],
    ) -> io::Result<()> {
        self.write_out(get_answer, piece)?;
        loop {
            let count = match self.socket.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            let mut rest = &buffer[..count];
            while !rest.is_empty() {
                let skipped = self.skip.min(rest.len() as u64);
                self.skip -= skipped;
                rest = &rest[skipped as usize..];
                if self.skip > 0 {
                    break;
                }
                if let Some(reply) = self.reply.take() {
                    self.queue(reply, bytes, get_answer);
                    self.write_out(get_answer, piece)?;
                    continue;
                }
                rest = self.take_head(rest)?;
                if self.skip == 0 {
                    if let Some(reply) = self.reply.take() {
                        self.queue(reply, bytes, get_answer);
                        self.write_out(get_answer, piece)?;
                    }
                }
            }
            if self.skip == 0 {
                if let Some(reply) = self.reply.take() {
                    self.queue(reply, bytes, get_answer);
                    self.write_out(get_answer, piece)?;
                }
            }
            if count < buffer.len() {
                return Ok(());
            }
        }
    }

    /// Take bytes up to the end of a head; what is behind it.
    fn take_head<'a>(&mut self, rest: &'a [u8]) -> io::Result<&'a [u8]> {
        let before = self.input.len();
        self.input.extend_from_slice(rest);
        let from = before.saturating_sub(3);
        let end = self.input[from..].windows(4).position(|four| four == b"\r\n\r\n");
        let Some(end) = end.map(|at| from + at + 4) else {
            let is_long = self.input.len() > MAX_HEAD_BYTES;
            return if is_long { Err(ErrorKind::InvalidData.into()) } else { Ok(&[]) };
        };
        let (reply, length) = parse_request(&self.input[..end]);
        self.reply = Some(reply);
        self.skip = length;
        self.input.clear();
        Ok(&rest[end - before..])
    }

    fn queue(&mut self, reply: Reply, bytes: u64, get_answer: &[u8]) {
        self.output.clear();
        self.written = 0;
        let mut put = |text: String| self.output.extend_from_slice(text.as_bytes());
        match reply {
            Reply::Get if !get_answer.is_empty() => self.ready_at = Some(0),
            Reply::Get => {
                put(head("200 OK", bytes));
                self.body_left = bytes;
            }
            Reply::Part(length) => {
                put(head("206 Partial Content", length));
                self.body_left = length;
            }
            Reply::Head => put(head("200 OK", bytes)),
            Reply::Empty => put(head("200 OK", 0)),
            Reply::NoContent => put("HTTP/1.1 204 No Content\r\n\r\n".into()),
            Reply::List => put(with_body(
                "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>",
            )),
            Reply::Create => put(with_body(
                "<InitiateMultipartUploadResult><UploadId>null</UploadId>\
                 </InitiateMultipartUploadResult>",
            )),
            Reply::Complete => put(with_body("<CompleteMultipartUploadResult/>")),
        }
    }

    fn write_out(&mut self, get_answer: &[u8], piece: &[u8]) -> io::Result<()> {
        loop {
            let rest = match self.ready_at {
                Some(at) => &get_answer[at..],
                None if self.written < self.output.len() => &self.output[self.written..],
                None => &piece[..piece.len().min(self.body_left as usize)],
            };
            if rest.is_empty() {
                self.ready_at = None;
                return Ok(());
            }
            let count = match self.socket.write(rest) {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            match &mut self.ready_at {
                Some(at) => *at += count,
                None if self.written < self.output.len() => self.written += count,
                None => self.body_left -= count as u64,
            }
        }
    }
}

fn head(status: &str, bytes: u64) -> String {
    format!(
        "HTTP/1.1 {status}\r\nServer: null\r\nETag: \"d41d8cd98f00b204e9800998ecf8427e\"\r\n\
         Last-Modified: Sat, 28 Nov 2026 06:00:00 GMT\r\nContent-Type: binary/octet-stream\r\n\
         Content-Length: {bytes}\r\n\r\n"
    )
}

fn with_body(body: &str) -> String {
    head("200 OK", body.len() as u64) + body
}

/// What is to be answered to a head, and how long the body of the request is.
fn parse_request(head: &[u8]) -> (Reply, u64) {
    let line_end = head.iter().position(|&byte| byte == b'\r').unwrap_or(head.len());
    let line = &head[..line_end];
    let query = line.iter().position(|&byte| byte == b'?').map_or(&[][..], |at| &line[at + 1..]);
    let reply = match line.first() {
        Some(b'G') if query.starts_with(b"list-type") => Reply::List,
        Some(b'G') => header(head, b"range").and_then(range_bytes).map_or(Reply::Get, Reply::Part),
        Some(b'H') => Reply::Head,
        Some(b'D') => Reply::NoContent,
        Some(b'P') if line.starts_with(b"POST") => {
            if query.starts_with(b"uploads") {
                Reply::Create
            } else {
                Reply::Complete
            }
        }
        _ => Reply::Empty,
    };
    let length = header(head, b"content-length").and_then(|value| value.parse().ok());
    (reply, length.unwrap_or(0))
}

fn header<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a str> {
    head.split(|&byte| byte == b'\n').find_map(|line| {
        let (own, value) = line.split_at_checked(name.len())?;
        let value = value.strip_prefix(b":").filter(|_| own.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok().map(str::trim)
    })
}

/// The length of `bytes=FIRST-LAST`.
fn range_bytes(range: &str) -> Option<u64> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    last.checked_sub(first).map(|length| length + 1)
}
