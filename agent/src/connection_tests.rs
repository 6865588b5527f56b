//! Both ends of a connection in one process.

use super::*;
use crate::trial::Folder;
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{Receiver, channel};

const ID: u64 = 7;

struct Trial {
    table: Connections,
    listener: UnixListener,
    folder: Folder,
}

impl Trial {
    fn new() -> Self {
        let folder = Folder::new();
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
                if let Event::Received(bytes) = event {
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
    let folder = Folder::new();
    let open = File::open(folder.path()).unwrap();
    let table = Connections::default();
    let place = table.reserve(ID).unwrap();
    assert_eq!(table.reserve(ID).map(drop).unwrap_err().code, "bad-request");
    let soon = Socket::new("/".into(), "gone".into(), 0.05).unwrap();
    let error = place.serve(&open, &soon, |_| {}).unwrap_err();
    assert_eq!((error.code.as_str(), error.says.contains("gone")), ("ENOENT", true));
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
        assert!(error.says.contains("wait_s"), "{wait_s}");
    }
}
