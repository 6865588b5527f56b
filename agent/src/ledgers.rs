//! Write ledgers of the native engine, in this process's memory: nothing of them is on any file
//! system, and all of them go with this process, however it ends.
//!
//! An engine opens one by its path under `/proc`. What it stores there stays when it is killed, so
//! the next one knows what must be on the target.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Mutex;

use serde::Serialize;

use crate::error::{Context, Error, Result};
use crate::sys::file::memory_file;
use crate::sys::process::own_pid;
use crate::sys::thread::lock;
use crate::wire::EmptyBody;

/// Ledgers at a time: one for each data set that a session verifies.
const MAX_LEDGERS: usize = 256;
/// Of a name: a path and what lies there.
const MAX_NAME_BYTES: usize = 8192;

/// The ledgers that this agent keeps, by name.
#[derive(Debug, Default)]
pub struct Ledgers {
    open: Mutex<HashMap<String, File>>,
}

/// Where an engine finds a ledger.
#[derive(Debug, Serialize)]
pub struct OpenedLedger {
    /// Its path, for processes of this agent.
    pub path: PathBuf,
}

impl Ledgers {
    /// A new ledger, with nothing in it; one that had the name before is gone.
    pub fn open(&self, name: String) -> Result<OpenedLedger> {
        if name.len() > MAX_NAME_BYTES {
            return Err(Error::bad_request(format!(
                "a ledger's name of {} bytes is too long",
                name.len()
            )));
        }
        let mut open = lock(&self.open);
        if open.len() >= MAX_LEDGERS && !open.contains_key(&name) {
            return Err(Error::busy(format!("{MAX_LEDGERS} ledgers are kept already")));
        }
        let file = memory_file(c"iolab-ledger").context("make a ledger in memory")?;
        let path = format!("/proc/{}/fd/{}", own_pid(), file.as_raw_fd()).into();
        open.insert(name, file);
        Ok(OpenedLedger { path })
    }

    /// Keep it no longer.
    pub fn close(&self, name: &str) -> Result<EmptyBody> {
        let mut open = lock(&self.open);
        match open.remove(name) {
            Some(_) => Ok(EmptyBody {}),
            None => Err(Error::bad_request(format!("no ledger {name:?} is kept here"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_ledger_has_what_others_stored_in_it_until_it_begins_anew() {
        let ledgers = Ledgers::default();
        let first = ledgers.open("a".into()).unwrap().path;
        let other = ledgers.open("b".into()).unwrap().path;
        fs::write(&first, "stored").unwrap();
        assert_eq!(fs::read(&first).unwrap(), b"stored");
        assert_eq!(fs::read(&other).unwrap(), b"");
        assert!(fs::metadata(&first).unwrap().is_file());
        let anew = ledgers.open("a".into()).unwrap().path;
        assert_eq!(fs::read(anew).unwrap(), b"");
        ledgers.close("b").unwrap();
        assert_eq!(ledgers.close("b").map(|_| ()).unwrap_err().code, "bad-request");
    }

    #[test]
    fn there_is_a_limit_of_ledgers_and_of_names() {
        let ledgers = Ledgers::default();
        for nth in 0..MAX_LEDGERS {
            ledgers.open(nth.to_string()).unwrap();
        }
        assert_eq!(ledgers.open("one more".into()).unwrap_err().code, "busy");
        ledgers.open("0".into()).unwrap(); // In the place of the old one.
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        assert!(ledgers.open(long).unwrap_err().message.contains("8193"));
    }
}
