//! Connections to sockets in a scratch folder, which carry what a controller and a guest say.
//!
//! The thread of the `connect` request reads; what is to be written waits in a queue, in the order
//! in which it came, for a thread of its own: a peer that does not read holds up nobody else.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Context, Error, Result};
use crate::runs::{MAX_RUNS, OWN_RUNS};
use crate::sys::socket::connect_in;
use crate::sys::thread::allow_open_files;
use crate::sys::thread::{lock, wait_timeout};

/// A guest has two: the channel to its agent and the one to its machine.
const MAX_CONNECTIONS: usize = 2 * MAX_RUNS;
/// What may wait for one peer: the largest frame of the wire, which is 5 MiB, and more to come.
const QUEUE_BYTES: usize = 8 << 20;
/// `done` is told when no more than this waits: who waits for it never meets a full queue.
const ROOM_BYTES: usize = 1 << 20;
/// Bytes in one message, as of a run's output.
const CHUNK_BYTES: usize = 64 << 10;
/// Between two tries to connect: a machine makes its socket in its first tenth of a second.
const CONNECT_PAUSE: Duration = Duration::from_millis(20);
/// A machine that has made no socket after ten minutes never will.
const MAX_WAIT_S: f64 = 600.0;
/// What was sent before a `disconnect` is written for so long; who does not read loses it.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);
/// An address has room for 107 bytes, of which the folder's descriptor takes up to 24.
const MAX_NAME_BYTES: usize = 80;
/// Every connection has its socket twice, every run two pipes and an event.
const OPEN_FILES: u64 = (2 * MAX_CONNECTIONS + 4 * (MAX_RUNS + OWN_RUNS) + 128) as u64;

/// What a connection tells before it ends.
#[derive(Debug)]
pub enum ConnectionEvent<'a> {
    /// The socket is there and took us.
    Connected,
    /// Bytes that came.
    Received(&'a [u8]),
}

/// Where to connect to.
pub struct Socket {
    /// A scratch folder.
    pub dir: PathBuf,
    name: String,
    wait: Duration,
}

impl Socket {
    /// The socket `name` in the scratch folder `dir`, which may take so long to appear.
    pub fn new(dir: PathBuf, name: String, wait_s: f64) -> Result<Self> {
        let plain = !name.contains(['/', '\0']) && !["", ".", ".."].contains(&name.as_str());
        if !plain || name.len() > MAX_NAME_BYTES {
            let message = format!("a socket's name is a file's, of at most 80 bytes, not {name:?}");
            return Err(Error::bad_request(message));
        }
        if !(0.0..=MAX_WAIT_S).contains(&wait_s) {
            let message = format!("wait_s {wait_s} is not 0 to {MAX_WAIT_S} s");
            return Err(Error::bad_request(message));
        }
        Ok(Self { dir, name, wait: Duration::from_secs_f64(wait_s) })
    }
}

/// All connections of this agent, by their request's id.
#[derive(Default)]
pub struct Connections(Arc<Mutex<HashMap<u64, Arc<Connection>>>>);

/// One connection, shared by its reader, its writer and those who send.
#[derive(Default)]
struct Connection {
    state: Mutex<ConnectionState>,
    changed: Condvar,
}

#[derive(Default)]
struct ConnectionState {
    queue: VecDeque<Vec<u8>>,
    /// Of the queue and of what is being written.
    waiting_bytes: usize,
    /// No more is taken; it ends when what waits is written.
    is_ending: bool,
    /// Nothing is written any more.
    is_closed: bool,
    stream: Option<UnixStream>,
}

/// The place of a connection in the table; its end takes it out.
pub struct Reservation {
    id: u64,
    connection: Arc<Connection>,
    table: Arc<Mutex<HashMap<u64, Arc<Connection>>>>,
}

/// Bytes that stand in the queue of a connection.
pub struct QueuedBytes(u64, Arc<Connection>);

/// A connection that is asked to end.
pub struct Disconnecting(Arc<Connection>);

impl Connections {
    /// Take a place; from now on what is sent to it is queued.
    pub fn reserve(&self, id: u64) -> Result<Reservation> {
        let mut table = lock(&self.0);
        if table.len() >= MAX_CONNECTIONS {
            let message = format!("{MAX_CONNECTIONS} connections are open, the most there may be");
            return Err(Error::busy(message));
        }
        if table.contains_key(&id) {
            return Err(Error::bad_request(format!("a connection with id {id} is open")));
        }
        let line = Arc::new(Connection::default());
        table.insert(id, Arc::clone(&line));
        Ok(Reservation { id, connection: line, table: Arc::clone(&self.0) })
    }

    /// Queue bytes behind all that were queued before.
    pub fn queue(&self, id: u64, bytes: Vec<u8>) -> Result<QueuedBytes> {
        let line = self.line(id)?;
        let mut state = lock(&line.state);
        if state.is_ending || state.is_closed {
            return Err(not_open_error(id));
        }
        if state.waiting_bytes + bytes.len() > QUEUE_BYTES {
            let waiting = state.waiting_bytes;
            return Err(Error::busy(format!("connection {id} has {waiting} bytes unsent already")));
        }
        state.waiting_bytes += bytes.len();
        state.queue.push_back(bytes);
        drop(state);
        line.changed.notify_all();
        Ok(QueuedBytes(id, line))
    }

    /// Have a connection take no more, and end when what was queued is written.
    pub fn leave(&self, id: u64) -> Result<Disconnecting> {
        let line = self.line(id)?;
        lock(&line.state).is_ending = true;
        line.changed.notify_all();
        Ok(Disconnecting(line))
    }

    fn line(&self, id: u64) -> Result<Arc<Connection>> {
        lock(&self.0).get(&id).cloned().ok_or_else(|| not_open_error(id))
    }
}

impl QueuedBytes {
    /// Wait until there is room for more; an error when the connection ended before.
    pub fn settled(&self) -> Result<()> {
        let Self(id, line) = self;
        let state = line.wait_while(|state| !state.is_closed && state.waiting_bytes > ROOM_BYTES);
        if state.is_closed && state.waiting_bytes > 0 { Err(not_open_error(*id)) } else { Ok(()) }
    }
}

impl Disconnecting {
    /// Wait for the end, which is forced when the peer does not read.
    pub fn end(&self) {
        let line = &self.0;
        let deadline = Instant::now() + FLUSH_PATIENCE;
        let mut state = lock(&line.state);
        while !state.is_closed {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return state.close();
            }
            state = wait_timeout(&line.changed, state, left);
        }
    }
}

impl Reservation {
    /// Connect to a socket in its folder, and tell what comes until either side ends it.
    pub fn serve(
        &self,
        folder: &File,
        socket: &Socket,
        mut tell: impl FnMut(ConnectionEvent),
    ) -> Result<()> {
        let _ = allow_open_files(OPEN_FILES); // Where that is denied, the sockets will tell.
        let reached = self.reach(folder, socket);
        let reached = reached.context(format_args!("connect to {}", socket.name))?;
        let Some(stream) = reached else { return Ok(()) };
        let (mut input, mut output) = stream
            .try_clone()
            .and_then(|copy| Ok((stream.try_clone()?, copy)))
            .context("keep a socket open")?;
        lock(&self.connection.state).keep_socket(stream);
        let line = Arc::clone(&self.connection);
        let writer = thread::Builder::new().name(format!("writer-{}", self.id));
        let writer = writer.spawn(move || line.write_all(&mut output)).context("start a thread")?;
        tell(ConnectionEvent::Connected);
        read_all(&mut input, |bytes| tell(ConnectionEvent::Received(bytes)));
        lock(&self.connection.state).close();
        self.connection.changed.notify_all();
        let _ = writer.join(); // It cannot fail: nothing in it panics.
        Ok(())
    }

    /// The socket once it is there; None when the connection is called off meanwhile.
    fn reach(&self, folder: &File, socket: &Socket) -> io::Result<Option<UnixStream>> {
        let deadline = Instant::now() + socket.wait;
        let mut state = lock(&self.connection.state);
        while !state.is_ending {
            match connect_in(folder, &socket.name) {
                Ok(stream) => return Ok(Some(stream)),
                Err(error) if may_appear_later(&error) && Instant::now() < deadline => {}
                Err(error) => return Err(error),
            }
            state = wait_timeout(&self.connection.changed, state, CONNECT_PAUSE);
        }
        Ok(None)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        lock(&self.table).remove(&self.id);
        lock(&self.connection.state).close();
        self.connection.changed.notify_all();
    }
}

impl Connection {
    /// Write what is queued until the end of the connection, which this brings when it was asked.
    fn write_all(&self, output: &mut UnixStream) {
        loop {
            let idle = |state: &ConnectionState| {
                !state.is_closed && !state.is_ending && state.queue.is_empty()
            };
            let mut state = self.wait_while(idle);
            let Some(bytes) = state.queue.pop_front().filter(|_| !state.is_closed) else { break };
            drop(state);
            let written = output.write_all(&bytes);
            let mut state = lock(&self.state);
            if written.is_err() {
                break drop(state);
            }
            state.waiting_bytes -= bytes.len();
            drop(state);
            self.changed.notify_all();
        }
        lock(&self.state).close();
        self.changed.notify_all();
    }

    fn wait_while(
        &self,
        holds: impl Fn(&ConnectionState) -> bool,
    ) -> MutexGuard<'_, ConnectionState> {
        let state = lock(&self.state);
        self.changed.wait_while(state, |state| holds(state)).unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionState {
    /// Keep the socket, to end it; at once where that was asked before there was one.
    fn keep_socket(&mut self, stream: UnixStream) {
        self.stream = Some(stream);
        if self.is_closed {
            self.close();
        }
    }

    /// End both directions: who reads or writes then stops.
    fn close(&mut self) {
        self.is_closed = true;
        if let Some(stream) = self.stream.take() {
            let _ = stream.shutdown(Shutdown::Both); // The peer may have done it.
        }
    }
}

fn read_all(input: &mut UnixStream, mut tell: impl FnMut(&[u8])) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => tell(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return, // A reset is an end as well.
        }
    }
}

/// Whether a socket may be there later: it is not made yet, nobody listens yet, or all have come.
fn may_appear_later(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ECONNREFUSED | libc::EAGAIN))
}

fn not_open_error(id: u64) -> Error {
    Error::errno(libc::ENOTCONN, format!("connection {id} is not open, or not any more"))
}

#[cfg(test)]
mod tests {
    //! Both ends of a connection in one process.

    use super::*;
    use crate::trial::TestFolder;
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc::{Receiver, channel};

    const ID: u64 = 7;

    struct Trial {
        table: Connections,
        listener: UnixListener,
        folder: TestFolder,
    }

    impl Trial {
        fn new() -> Self {
            let folder = TestFolder::new();
            let listener = UnixListener::bind(folder.path().join("s")).unwrap();
            Self { table: Connections::default(), listener, folder }
        }

        /// The connection served by a thread, which hands over what was received, then how it ended.
        fn begin(&self) -> (UnixStream, Receiver<Vec<u8>>, thread::JoinHandle<Result<()>>) {
            let place = self.table.reserve(ID).unwrap();
            let folder = File::open(self.folder.path()).unwrap();
            let (tell, told) = channel();
            let served = thread::spawn(move || {
                let socket = Socket::new("/".into(), "s".into(), 5.0)?;
                place.serve(&folder, &socket, |event| {
                    if let ConnectionEvent::Received(bytes) = event {
                        tell.send(bytes.to_vec()).unwrap();
                    }
                })
            });
            (self.listener.accept().unwrap().0, told, served)
        }
    }

    #[test]
    fn both_directions_keep_their_order_until_the_peer_ends() {
        let trial = Trial::new();
        let (mut peer, told, served) = trial.begin();
        for number in 0..100_u8 {
            trial.table.queue(ID, vec![number; 3]).unwrap().settled().unwrap();
        }
        let mut got = [0; 300];
        peer.read_exact(&mut got).unwrap();
        assert!(got.iter().enumerate().all(|(at, &byte)| usize::from(byte) == at / 3));
        peer.write_all(b"answer").unwrap();
        drop(peer);
        served.join().unwrap().unwrap();
        assert_eq!(told.iter().flatten().collect::<Vec<u8>>(), b"answer");
        assert_eq!(trial.table.queue(ID, vec![1]).map(drop).unwrap_err().code, "ENOTCONN");
    }

    #[test]
    fn a_peer_that_does_not_read_fills_its_queue_and_nothing_else() {
        let trial = Trial::new();
        let (peer, _told, served) = trial.begin();
        let piece = || vec![0; 1 << 20];
        let refused = (0..20).find_map(|_| trial.table.queue(ID, piece()).map(drop).err());
        assert_eq!(refused.unwrap().code, "busy");
        let waiting = trial.table.queue(ID, Vec::new()).unwrap();
        let waiter = thread::spawn(move || waiting.settled());
        trial.table.leave(ID).unwrap().end();
        assert_eq!(waiter.join().unwrap().unwrap_err().code, "ENOTCONN");
        served.join().unwrap().unwrap();
        drop(peer);
    }

    #[test]
    fn what_was_sent_before_the_end_still_arrives() {
        let trial = Trial::new();
        let (mut peer, _told, served) = trial.begin();
        trial.table.queue(ID, b"last words".to_vec()).unwrap();
        let leaving = trial.table.leave(ID).unwrap();
        assert_eq!(trial.table.queue(ID, vec![1]).map(drop).unwrap_err().code, "ENOTCONN");
        leaving.end();
        let mut got = String::new();
        peer.read_to_string(&mut got).unwrap();
        assert_eq!(got, "last words");
        served.join().unwrap().unwrap();
    }

    #[test]
    fn a_socket_that_never_comes_is_named_and_can_be_called_off() {
        let folder = TestFolder::new();
        let open = File::open(folder.path()).unwrap();
        let table = Connections::default();
        let place = table.reserve(ID).unwrap();
        assert_eq!(table.reserve(ID).map(drop).unwrap_err().code, "bad-request");
        let soon = Socket::new("/".into(), "gone".into(), 0.05).unwrap();
        let error = place.serve(&open, &soon, |_| {}).unwrap_err();
        assert_eq!((error.code.as_str(), error.message.contains("gone")), ("ENOENT", true));
        let leaving = table.leave(ID).unwrap();
        let late = Socket::new("/".into(), "gone".into(), 600.0).unwrap();
        place.serve(&open, &late, |_| {}).unwrap();
        drop(place);
        leaving.end();
    }

    #[test]
    fn only_a_file_in_the_folder_can_be_meant() {
        let long = "x".repeat(81);
        for name in ["", ".", "..", "a/b", "/s", "a\0", &long] {
            let error = Socket::new("/".into(), name.into(), 1.0).map(drop).unwrap_err();
            assert_eq!(error.code, "bad-request", "{name}");
        }
        for wait_s in [-1.0, 601.0, f64::NAN, f64::INFINITY] {
            let error = Socket::new("/".into(), "s".into(), wait_s).map(drop).unwrap_err();
            assert!(error.message.contains("wait_s"), "{wait_s}");
        }
    }
}
