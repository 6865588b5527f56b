//! What a controller may ask: one variant a verb, its arguments checked here and nowhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::action::Action;
use crate::bound::IoRates;
use crate::error::{Error, Result};
use crate::guard;
use crate::job::Job;
use crate::metadata::PhaseSpec;
use crate::sys::process::{effective_uid, own_pid};
use crate::undo::{Step, UndoTimer};
use crate::wire::{MAX_ID, WIRE};

/// One request. Verbs without arguments are written `{}`: only so are unknown ones refused.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
#[expect(missing_docs, reason = "the verbs and arguments are documented in schema/wire.json")]
pub enum Request {
    Clock {},
    Facts {
        path: Option<PathBuf>,
        #[serde(default)]
        tools: BTreeMap<String, Vec<String>>,
        #[serde(default)]
        cloud: bool,
    },
    Snapshot {
        inodes_of: Option<PathBuf>,
    },
    Watch {
        interval_ms: u64,
        inodes_of: Option<PathBuf>,
    },
    Unwatch {
        watch: u64,
    },
    Trace {
        device: String,
        wall_limit_s: f64,
    },
    Run(Job),
    Metadata(PhaseSpec),
    Signal {
        run: u64,
        signal: SignalName,
    },
    Use {
        run: u64,
    },
    Connect {
        dir: PathBuf,
        name: String,
        wait_s: f64,
    },
    Send {
        connection: u64,
    },
    Disconnect {
        connection: u64,
    },
    Put {
        path: PathBuf,
        mode: u32,
    },
    Get {
        path: PathBuf,
        max_bytes: u64,
    },
    Probe {
        path: PathBuf,
        #[serde(default)]
        rights: bool,
    },
    ScratchOpen {
        path: PathBuf,
        name: String,
        owner: String,
    },
    ScratchClose {
        dir: PathBuf,
        keep: bool,
    },
    FilesystemOpen {
        dir: PathBuf,
        #[serde(default)]
        image_bytes: Option<u64>,
        #[serde(default)]
        path: Option<PathBuf>,
        #[serde(default)]
        serial: Option<String>,
        #[serde(default)]
        overwrite: bool,
    },
    FilesystemClose {
        dir: PathBuf,
    },
    LedgerOpen {
        name: String,
    },
    LedgerClose {
        name: String,
    },
    Extents {
        paths: Vec<PathBuf>,
    },
    Evict {
        paths: Vec<PathBuf>,
        system: bool,
    },
    Device {
        path: PathBuf,
        serial: Option<String>,
        #[serde(default)]
        overwrite: bool,
    },
    DeviceOpen {
        path: PathBuf,
        serial: String,
        #[serde(default)]
        overwrite: bool,
    },
    DeviceClose {
        path: PathBuf,
    },
    Discard {
        path: PathBuf,
    },
    Trim {
        path: PathBuf,
    },
    DriveLogs {
        devices: Vec<String>,
    },
    Sync {},
    Leftovers {
        path: Option<PathBuf>,
        /// What to remove, by process id or path; without it this is a look.
        #[serde(default)]
        remove: Option<BTreeSet<String>>,
    },
    Resolve {
        what: Action,
        targets: Vec<PathBuf>,
        members: Vec<String>,
        timeout_s: f64,
    },
    Step {
        what: Vec<Step>,
        #[serde(default)]
        undo: Option<String>,
        #[serde(default)]
        undo_timer: Option<UndoTimer>,
        #[serde(default)]
        released_dir: Option<PathBuf>,
    },
    UndoAdd {
        name: String,
        what: Vec<Step>,
    },
    UndoRemove {
        name: String,
    },
    Undo {
        name: String,
    },
    IoLimit {
        run: u64,
        rates: IoRates,
    },
    Lease {
        seconds: u64,
    },
    Bye {},
}

/// The verbs, as the hello tells them.
const VERBS: [&str; 40] = [
    "clock",
    "facts",
    "snapshot",
    "watch",
    "unwatch",
    "trace",
    "run",
    "metadata",
    "signal",
    "use",
    "connect",
    "send",
    "disconnect",
    "put",
    "get",
    "probe",
    "scratch_open",
    "scratch_close",
    "filesystem_open",
    "filesystem_close",
    "ledger_open",
    "ledger_close",
    "extents",
    "evict",
    "device",
    "device_open",
    "device_close",
    "discard",
    "trim",
    "drive_logs",
    "sync",
    "leftovers",
    "resolve",
    "step",
    "undo_add",
    "undo_remove",
    "undo",
    "io_limit",
    "lease",
    "bye",
];

/// The agent's first words.
#[derive(Serialize)]
pub struct Hello {
    wire: u32,
    version: &'static str,
    pid: i32,
    /// 0 is root.
    uid: u32,
    capabilities: &'static [&'static str],
    /// What ends the processes of runs when all of the agent is killed at once.
    runs_end_by: Option<&'static str>,
}

impl Hello {
    /// Those of this process.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "no process has other first words")]
    pub fn new() -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let runs_end_by = guard::guard_pid().map(|_| "pid-namespace");
        let (pid, uid) = (own_pid(), effective_uid());
        Self { wire: WIRE, version, pid, uid, capabilities: &VERBS, runs_end_by }
    }
}

/// Signals that may be sent to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "they are what their names say")]
pub enum SignalName {
    Int,
    Term,
    Kill,
}

impl SignalName {
    /// Its number.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Self::Int => libc::SIGINT,
            Self::Term => libc::SIGTERM,
            Self::Kill => libc::SIGKILL,
        }
    }
}

/// Take the id out of a header; None when it has no proper one, so that no answer could be given.
pub fn take_id(header: &mut Map<String, Value>) -> Option<u64> {
    header.remove("id")?.as_u64().filter(|id| (1..=MAX_ID).contains(id))
}

/// What a header without its id asks for.
pub fn parse(header: Map<String, Value>) -> Result<Request> {
    let verb = match header.get("do") {
        Some(Value::String(verb)) => verb.clone(),
        _ => return Err(Error::bad_request("a request needs a verb in `do`")),
    };
    if !VERBS.contains(&verb.as_str()) {
        return Err(Error::bad_request(format!("there is no verb {verb:?}")));
    }
    let request = serde_json::from_value(Value::Object(header))
        .map_err(|error| Error::bad_request(format!("{verb}: {error}")))?;
    check_paths(&verb, &request)?;
    Ok(request)
}

/// A relative path would mean one under wherever the agent was started.
fn check_paths(verb: &str, request: &Request) -> Result<()> {
    let paths: Vec<&PathBuf> = match request {
        Request::Facts { path, .. } | Request::Leftovers { path, .. } => path.iter().collect(),
        Request::Run(job) => job.cwd.iter().collect(),
        Request::Metadata(load) => vec![&load.dir],
        Request::Put { path, .. }
        | Request::Get { path, .. }
        | Request::Probe { path, .. }
        | Request::Device { path, .. }
        | Request::DeviceOpen { path, .. }
        | Request::DeviceClose { path }
        | Request::Discard { path }
        | Request::Trim { path }
        | Request::ScratchOpen { path, .. }
        | Request::Connect { dir: path, .. } => vec![path],
        Request::FilesystemOpen { dir, path, .. } => path.iter().chain([dir]).collect(),
        Request::Extents { paths }
        | Request::Evict { paths, .. }
        | Request::Resolve { targets: paths, .. } => paths.iter().collect(),
        _ => Vec::new(),
    };
    match paths.into_iter().find(|path| !path.is_absolute()) {
        Some(path) => Err(Error::bad_request(format!(
            "{verb}: the path {:?} is not absolute",
            path.display().to_string()
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask(header: Value) -> Result<Request> {
        match header {
            Value::Object(header) => parse(header),
            _ => panic!("a header is an object"),
        }
    }

    #[test]
    fn arguments_are_read() {
        assert_eq!(ask(json!({"do": "clock"})).unwrap(), Request::Clock {});
        let request = ask(json!({"do": "signal", "run": 7, "signal": "INT"})).unwrap();
        assert_eq!(request, Request::Signal { run: 7, signal: SignalName::Int });
        let request = ask(json!({"do": "run", "argv": ["true"], "cwd": null})).unwrap();
        assert!(matches!(request, Request::Run(job) if job.argv == ["true"]));
    }

    #[test]
    fn what_cannot_be_meant_is_a_bad_request_with_its_value() {
        for (header, part) in [
            (json!({}), "`do`"),
            (json!({"do": 5}), "`do`"),
            (json!({"do": "format"}), "\"format\""),
            (json!({"do": "watch"}), "interval_ms"),
            (json!({"do": "watch", "interval_ms": -1}), "-1"),
            (json!({"do": "signal", "run": 7, "signal": "STOP"}), "STOP"),
            (json!({"do": "run", "argv": "rm -rf"}), "rm -rf"),
            (json!({"do": "run", "argv": ["true"], "shell": true}), "shell"),
            (json!({"do": "sync", "now": 1}), "now"),
            (json!({"do": "get", "path": "x", "max_bytes": 1}), "\"x\""),
        ] {
            let error = ask(header.clone()).expect_err(&header.to_string());
            assert_eq!(error.code, "bad-request");
            assert!(error.message.contains(part), "{} lacks {part}", error.message);
        }
    }

    #[test]
    fn every_verb_of_the_hello_is_known() {
        for verb in VERBS {
            let error = ask(json!({"do": verb, "no such argument": 1})).unwrap_err();
            assert!(!error.message.contains("there is no verb"), "{verb}");
            assert!(!error.message.contains("unknown variant"), "{verb}: {}", error.message);
        }
    }

    #[test]
    fn an_id_is_a_positive_integer() {
        for id in [json!(0), json!(-1), json!(1.5), json!("1"), json!(null), json!(MAX_ID + 1)] {
            let Value::Object(mut header) = json!({"id": id}) else { unreachable!() };
            assert_eq!(take_id(&mut header), None);
        }
        let Value::Object(mut header) = json!({"id": 3}) else { unreachable!() };
        assert_eq!(take_id(&mut header), Some(3));
        assert!(header.is_empty());
    }
}
