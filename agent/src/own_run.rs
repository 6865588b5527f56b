//! Programs that the agent runs for itself, as it runs those of a controller.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::job::{self, Event, Exited, Job, Stream};
use crate::request::MAX_ID;
use crate::runs::Runs;

/// Enough for a version or a reason; some tools print their whole help.
const OUTPUT_LIMIT_BYTES: u64 = 64 << 10;
/// A reason is a part of a sentence.
const MAX_REASON_CHARS: usize = 300;

/// A program that ended, and what it printed.
pub struct Ended {
    /// How it ended.
    pub exited: Exited,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

/// Run a program to its end, or for so many seconds.
pub fn run(runs: &Runs, argv: &[String], seconds: f64) -> Result<Ended> {
    let job = Job {
        argv: argv.to_vec(),
        wall_limit_s: Some(seconds),
        output_limit_bytes: Some(OUTPUT_LIMIT_BYTES),
        ..Job::default()
    };
    let id = own_id();
    runs.reserve(id)?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let outcome = job::run(runs, id, &job, &[], |event| match event {
        Event::Output(Stream::Stdout, bytes) => stdout.extend_from_slice(bytes),
        Event::Output(Stream::Stderr, bytes) => stderr.extend_from_slice(bytes),
        Event::Started { .. } => {}
    });
    runs.release(id);
    Ok(Ended { exited: outcome?, stdout, stderr })
}

/// The same for one that must succeed: what it said on standard error is the reason else.
pub fn told(runs: &Runs, argv: &[&str], seconds: f64) -> Result<()> {
    let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
    let ended = run(runs, &argv, seconds)?;
    if ended.exited.code == Some(0) {
        return Ok(());
    }
    let how = match (ended.exited.timed_out, ended.exited.code) {
        (true, _) => format!("took more than {seconds} s"),
        (_, Some(code)) => format!("ended with code {code}"),
        (_, None) => format!("was ended by signal {}", ended.exited.signal.unwrap_or(0)),
    };
    Err(Error::errno(libc::EIO, format!("{} {how}: {}", argv[0], reason(&ended.stderr))))
}

/// The first line of an error that says something; how the program is to be used often follows.
fn reason(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or("it gave no reason").chars().take(MAX_REASON_CHARS).collect()
}

/// A number for a run of the agent's own, above any that a controller may choose.
fn own_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(MAX_ID + 1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line_of_limited_length() {
        assert_eq!(reason(b"\n  no room \nUsage: mkfs\n"), "no room");
        assert_eq!(reason("x".repeat(900).as_bytes()).len(), MAX_REASON_CHARS);
        assert_eq!(reason(b""), "it gave no reason");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = told(&Runs::default(), &["no-such-mkfs"], 1.0).unwrap_err();
        assert_eq!(error.code, "ENOENT");
        assert!(error.says.contains("no-such-mkfs"), "{}", error.says);
    }
}
