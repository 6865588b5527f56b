//! The generator's limit: what this host makes of a load against a server that keeps nothing.
//!
//! The server is a process of its own, on the same processors. What it takes of them, and what
//! others take, does not count: the limit is what the load does for a second of its own
//! processor time, times the threads that it has.

use std::io::{self, BufRead, BufReader, ErrorKind};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::counters::OPERATIONS;
use super::endpoint::{BucketStyle, find_servers};
use super::engine::{prepare, start_workers};
use super::spec::{Retries, Spec, TargetSpec};
use crate::native::lines::{KindCounts, print_line};
use crate::sys::thread::process_usage;
use crate::sys::time::SECOND_NS;

/// A server that ends with this process.
struct NullServerProcess {
    child: Child,
    url: String,
}

impl NullServerProcess {
    fn start(object_bytes: u64) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["objects-null-server", &object_bytes.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let port = serde_json::from_str::<Value>(&line).ok().and_then(|told| told["port"].as_u64());
        let server = Self { child, url: format!("http://127.0.0.1:{}", port.unwrap_or(0)) };
        if port.is_none() { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(server) }
    }
}

impl Drop for NullServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Measure the limit of a load on objects of one size, as fast as it can.
pub fn measure_generator_limit(spec: &Spec) -> Result<(), Vec<String>> {
    let Some(set) = &spec.objects else { return Err(vec!["objects is missing.".into()]) };
    let server = NullServerProcess::start(set.largest_bytes())
        .map_err(|error| vec![format!("The null server does not start: {error}.")])?;
    let target = TargetSpec {
        endpoints: vec![server.url.clone()],
        style: BucketStyle::Path,
        ca_pem: None,
        ..spec.target.clone()
    };
    let spec =
        Spec { target, rate: None, verify_every: 0, retries: Retries::default(), ..spec.clone() };
    let servers = find_servers(&spec.target)?;
    let prepared = prepare(&spec, set, servers, None)?;
    let (load, threads) = (prepared.load, prepared.workers.len());
    let before = process_usage();
    let start = load.clock.ticks();
    let deadline = start + load.clock.ticks_of((spec.runtime_s * SECOND_NS as f64) as u64);
    let workers = start_workers(prepared.workers, prepared.counters, start, deadline)?;
    for _ in 0..threads {
        // A thread that panicked tells nothing, and the others end by themselves.
        let _ = workers.ended.recv();
    }
    let used = process_usage().since(before);
    let counts = OPERATIONS.iter().filter_map(|operation| {
        let rows = workers.counters.iter().filter_map(|thread| thread.row(operation.row()));
        KindCounts::of(rows)
    });
    let operations: u64 = counts.map(|counts| counts.count()).sum();
    print_line(&json!({ "generator_limit": {
        "operations": operations,
        "cpu_ns": used.user_ns + used.system_ns,
        "threads": threads,
        "examples": load.examples().0,
    } }));
    Ok(())
}
