//! One run: a process with its output streamed as it comes, under limits, and its whole tree gone
//! before the end is told.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs};

use serde::{Deserialize, Serialize};

use crate::bound::{IoGroup, IoLimit, MemoryLimit, MemoryUse, group_name};
use crate::error::{Context, Error, Result};
use crate::libraries::LibraryUse;
use crate::processor::{ProcessorUse, ProcessorWatcher};
use crate::roots::Roots;
use crate::runs::{RunExit, RunStart, Runs, StartedRun};
use crate::sign::{MARK_VARIABLE, own_agent_id, run_mark};
use crate::sys::process::{
    LaunchContext, Program, READABLE, WRITABLE, poll, set_nonblocking, start_isolated,
};
use crate::sys::time::{SECOND_NS, real_ns};
use crate::token;
use crate::tree::kill_run;
use crate::wire::MAX_ID;

/// Output in one message: what a pipe of the kernel holds, so one read empties it.
const CHUNK_BYTES: usize = 64 << 10;
/// Output kept when the request sets no limit; fio's largest documents are a few MiB.
const DEFAULT_OUTPUT_LIMIT_BYTES: u64 = 256 << 20;
/// After the tree was killed its pipes end at once, unless a process outlived it.
const DRAIN_PATIENCE: Duration = Duration::from_secs(2);
/// A start further ahead is a wrong clock, not a plan.
const MAX_START_DELAY_NS: u64 = 3600 * SECOND_NS;
/// The environment variable that tells a process when to start.
pub const START_VARIABLE: &str = "IOLAB_START_REAL_NS";
/// The program's name that means this agent's own file, wherever that lies.
const AGENT_PROGRAM_NAME: &str = "iolab-agent";
/// It is there as long as a process of it is, also when the file was replaced or removed.
const AGENT_PROGRAM_FILE: &str = "/proc/self/exe";
/// The search path of a process when the agent itself was given none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What to run, as the request says it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Program and arguments; never a shell line.
    pub argv: Vec<String>,
    /// Added to a minimal environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Working directory; `/` when null.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// When to start; at once when null or past.
    #[serde(default)]
    pub start_at_real_ns: Option<u64>,
    /// Started at once and told the start, for which it then waits itself, all set up.
    #[serde(default)]
    pub waits_for_start: bool,
    /// Killed after this, counted from its start at the earliest; never when null.
    #[serde(default)]
    pub wall_limit_s: Option<f64>,
    /// Output past this is read and thrown away.
    #[serde(default)]
    pub output_limit_bytes: Option<u64>,
    /// What its whole tree may have of memory, page cache too; no bound when null.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// The limit of the I/O of its whole tree, which is in a control group of its own; none when null.
    #[serde(default)]
    pub io_limit: Option<IoLimit>,
    /// Whether to tell what its threads got of the processors, and which libraries it has.
    #[serde(default)]
    pub watch_processor: bool,
    /// Started in the host's own PID namespace: it is about processes of the host.
    #[serde(default)]
    pub of_host: bool,
}

/// Where a piece of output came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What a run tells before it ends.
#[derive(Debug)]
pub enum RunEvent<'a> {
    /// The process was started.
    Started {
        /// Its id.
        pid: u32,
        /// When.
        real_ns: u64,
    },
    /// A piece of its output.
    Output(OutputStream, &'a [u8]),
}

/// The final message of a run.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Exited {
    /// The exit code, null when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// User seconds of the process and the children it waited for.
    pub user_s: f64,
    /// System seconds of the same.
    pub system_s: f64,
    /// The largest resident set among them.
    pub max_rss_bytes: u64,
    /// When it ended.
    pub real_ns: u64,
    /// The wall limit ended it.
    pub timed_out: bool,
    /// The output limit cut its output.
    pub truncated: bool,
    /// What its tree used, where that was bounded.
    #[serde(flatten)]
    pub memory: Option<MemoryUse>,
    /// What its threads got of the processors, where that was requested and can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<ProcessorUse>,
    /// Which libraries its processes had, where that was requested and can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub libraries: Option<LibraryUse>,
    /// The disks on which its I/O could be limited, of a run with `io_limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limited_disks: Option<Vec<String>>,
}

/// Run a job in its working directory `folder`, its place in `runs` reserved; blocks until its whole tree is gone.
pub fn run(
    runs: &Runs,
    id: u64,
    job: &Job,
    folder: File,
    input: &[u8],
    mut tell: impl FnMut(RunEvent),
) -> Result<Exited> {
    let wall_limit = check_limits(job)?;
    let mark = run_mark(id);
    let bound = memory_limit_of(job, id)?;
    let io_group = io_group_of(job, id)?;
    let door = bound.as_ref().map(MemoryLimit::door).or(io_group.as_ref().map(IoGroup::door));
    let mut command = build_command(job, folder, &mark, input, door)?;
    if let Some(at_ns) = job.start_at_real_ns.filter(|_| !job.waits_for_start) {
        if let Some(signal) = runs.wait_for_start(id, at_ns) {
            return Ok(cancelled_before_start(signal));
        }
    }
    let start = runs
        .start(id, &mut command, mark, wall_limit, job.of_host)
        .context(format_args!("start {}", command.get_program().to_string_lossy()))?;
    let started = match start {
        RunStart::Started(started) => started,
        RunStart::Cancelled(signal) => return Ok(cancelled_before_start(signal)),
    };
    tell(RunEvent::Started { pid: started.child.id(), real_ns: started.real_ns });
    let limit = job.output_limit_bytes.unwrap_or(DEFAULT_OUTPUT_LIMIT_BYTES);
    let mut pump = PipePump::new(started, input, limit).context("read output")?;
    let begins_ns = job.start_at_real_ns.unwrap_or(0);
    let leader = pump.started.family.leader;
    let make = || ProcessorWatcher::for_process(Roots::default(), leader, begins_ns);
    let mut watcher = job.watch_processor.then(make);
    let exit = pump.run_until_exit(runs, id, &mut tell, &mut watcher);
    let memory = bound.as_ref().map(MemoryLimit::read_memory_use);
    let processor = watcher.as_ref().and_then(ProcessorWatcher::result);
    let libraries = watcher.as_ref().and_then(ProcessorWatcher::libraries);
    let limited_disks = io_group.as_ref().map(IoGroup::disk_names);
    drop((bound, io_group)); // Nothing of them is left when the end is told.
    Ok(Exited {
        processor,
        libraries,
        limited_disks,
        ..exited_message(&exit, pump.truncated, memory)
    })
}

fn memory_limit_of(job: &Job, id: u64) -> Result<Option<MemoryLimit>> {
    let make = |bytes| MemoryLimit::make(&Roots::default(), &group_name(own_agent_id(), id), bytes);
    job.memory_limit_bytes.map(make).transpose()
}

fn io_group_of(job: &Job, id: u64) -> Result<Option<IoGroup>> {
    if job.io_limit.is_some() && job.memory_limit_bytes.is_some() {
        // In version 2 both would be the same group.
        return Err(Error::bad_request("io_limit beside memory_limit_bytes"));
    }
    let name = group_name(own_agent_id(), id);
    let make = |limit| IoGroup::make(&Roots::default(), &name, limit);
    job.io_limit.as_ref().map(make).transpose()
}

fn check_limits(job: &Job) -> Result<Option<Duration>> {
    if let Some(at_ns) = job.start_at_real_ns {
        if at_ns > real_ns() + MAX_START_DELAY_NS {
            return Err(Error::bad_request(format!(
                "start_at_real_ns {at_ns} is more than an hour ahead"
            )));
        }
    }
    let Some(limit_s) = job.wall_limit_s else { return Ok(None) };
    let awaited_ns = job.start_at_real_ns.filter(|_| job.waits_for_start).unwrap_or(0);
    let ahead = Duration::from_nanos(awaited_ns.saturating_sub(real_ns()));
    match Duration::try_from_secs_f64(limit_s) {
        Ok(limit) if !limit.is_zero() => Ok(Some(limit.saturating_add(ahead))),
        _ => Err(Error::bad_request(format!("wall_limit_s {limit_s} is not a time above zero"))),
    }
}

fn build_command(
    job: &Job,
    folder: File,
    mark: &str,
    input: &[u8],
    door: Option<BorrowedFd<'_>>,
) -> Result<Command> {
    let name = job.argv.first().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Error::bad_request("argv is empty"))?;
    let path = job.env.get("PATH").cloned().unwrap_or_else(search_path);
    let file = if name == AGENT_PROGRAM_NAME { AGENT_PROGRAM_FILE } else { name };
    let program = find_program(file, &path).ok_or_else(|| {
        let reason = if name.contains('/') {
            "no such file that can be executed".to_owned()
        } else {
            format!("no such program on PATH ({path})")
        };
        Error::errno(libc::ENOENT, format!("cannot start {name}: {reason}"))
    })?;
    let mut command = Command::new(&program);
    let argv = job.argv.iter().map(String::as_str);
    let program = Program::new(&program, argv, build_environment(job, path, mark))
        .map_err(|_| Error::bad_request("argv or env has a zero byte in it"))?;
    let door: Option<OwnedFd> = door
        .map(|door| door.try_clone_to_owned())
        .transpose()
        .context("keep the door of a control group open")?;
    start_isolated(
        &mut command,
        program,
        LaunchContext { folder, token: token::inheritable_token(), join_file: door },
    );
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

/// A minimal environment and what the job adds; the mark stands last and cannot be replaced.
fn build_environment(job: &Job, path: String, mark: &str) -> Vec<String> {
    let home = env::var("HOME").unwrap_or_else(|_| "/".into());
    let minimal = [("PATH", path), ("LANG", "C".into()), ("HOME", home)];
    let mut all: BTreeMap<&str, String> = minimal.into_iter().collect();
    all.extend(job.env.iter().map(|(name, value)| (name.as_str(), value.clone())));
    all.remove(MARK_VARIABLE);
    if let Some(at_ns) = job.start_at_real_ns.filter(|_| job.waits_for_start) {
        all.insert(START_VARIABLE, at_ns.to_string());
    }
    let settings = all.into_iter().map(|(name, value)| format!("{name}={value}"));
    settings.chain([mark.to_owned()]).collect()
}

/// The search path that processes of this agent get.
#[must_use]
pub fn search_path() -> String {
    env::var("PATH").ok().filter(|path| !path.is_empty()).unwrap_or_else(|| DEFAULT_PATH.into())
}

/// The executable file that a name means: itself with a slash in it, else the first on `path`.
#[must_use]
pub fn find_program(name: &str, path: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|program| is_executable(program));
    }
    path.split(':')
        .filter(|folder| folder.starts_with('/'))
        .map(|folder| Path::new(folder).join(name))
        .find(|program| is_executable(program))
}

fn is_executable(program: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(program).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The three pipes of a process and what is left to do on each.
struct PipePump<'a> {
    started: StartedRun,
    input: &'a [u8],
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    output_bytes_left: u64,
    truncated: bool,
    buffer: Vec<u8>,
}

impl<'a> PipePump<'a> {
    fn new(mut started: StartedRun, input: &'a [u8], limit_bytes: u64) -> io::Result<Self> {
        let (stdin, stdout, stderr) =
            (started.child.stdin.take(), started.child.stdout.take(), started.child.stderr.take());
        for fd in [
            stdin.as_ref().map(AsFd::as_fd),
            stdout.as_ref().map(AsFd::as_fd),
            stderr.as_ref().map(AsFd::as_fd),
        ] {
            fd.map_or(Ok(()), set_nonblocking)?;
        }
        let buffer = vec![0; CHUNK_BYTES];
        Ok(Self {
            started,
            input,
            stdin,
            stdout,
            stderr,
            output_bytes_left: limit_bytes,
            truncated: false,
            buffer,
        })
    }

    /// Move input and output until the leader ended, its tree is killed and the pipes are empty.
    fn run_until_exit(
        &mut self,
        runs: &Runs,
        id: u64,
        tell: &mut impl FnMut(RunEvent),
        watcher: &mut Option<ProcessorWatcher>,
    ) -> RunExit {
        let mut end: Option<(RunExit, Instant)> = None;
        loop {
            if end.is_none() {
                if let Some(exit) = runs.exit(id) {
                    // A run is its leader: what the leader leaves behind ends with it.
                    kill_run(&self.started.family);
                    end = Some((exit, Instant::now() + DRAIN_PATIENCE));
                }
            }
            let drained = self.stdout.is_none() && self.stderr.is_none();
            if let Some((exit, deadline)) = end {
                if drained || Instant::now() >= deadline {
                    return exit;
                }
            }
            let look = watcher.as_mut().filter(|_| end.is_none()).map(|watcher| {
                watcher.look_if_due();
                Instant::now() + watcher.time_until_look()
            });
            self.move_bytes(end.map(|(_, deadline)| deadline), look, tell);
        }
    }

    fn move_bytes(
        &mut self,
        deadline: Option<Instant>,
        look: Option<Instant>,
        tell: &mut impl FnMut(RunEvent),
    ) {
        let timeout =
            deadline.or(look).map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let wanted = [
            self.stdout.as_ref().map(|pipe| (pipe.as_fd(), READABLE)),
            self.stderr.as_ref().map(|pipe| (pipe.as_fd(), READABLE)),
            self.stdin.as_ref().map(|pipe| (pipe.as_fd(), WRITABLE)),
            deadline.is_none().then(|| (self.started.ended.as_fd(), READABLE)),
        ];
        // A poll that fails has no memory; the pipes are then tried all the same.
        let [stdout, stderr, stdin, _] = poll(wanted, timeout).unwrap_or([true; 4]);
        if stdout {
            self.read_output(OutputStream::Stdout, tell);
        }
        if stderr {
            self.read_output(OutputStream::Stderr, tell);
        }
        if stdin {
            self.write_input();
        }
    }

    fn read_output(&mut self, stream: OutputStream, tell: &mut impl FnMut(RunEvent)) {
        let read = match stream {
            OutputStream::Stdout => self.stdout.as_mut().map(|pipe| pipe.read(&mut self.buffer)),
            OutputStream::Stderr => self.stderr.as_mut().map(|pipe| pipe.read(&mut self.buffer)),
        };
        let count = match read {
            Some(Ok(count)) if count > 0 => count,
            Some(Err(error)) if is_retryable(&error) => return,
            _ => return self.close_output(stream),
        };
        let kept = (count as u64).min(self.output_bytes_left) as usize;
        self.output_bytes_left -= kept as u64;
        self.truncated |= kept < count;
        if kept > 0 {
            tell(RunEvent::Output(stream, &self.buffer[..kept]));
        }
    }

    fn close_output(&mut self, stream: OutputStream) {
        match stream {
            OutputStream::Stdout => self.stdout = None,
            OutputStream::Stderr => self.stderr = None,
        }
    }

    fn write_input(&mut self) {
        let Some(pipe) = self.stdin.as_mut() else { return };
        match pipe.write(self.input) {
            Ok(count) => self.input = &self.input[count..],
            Err(error) if is_retryable(&error) => return,
            Err(_) => self.input = &[], // It does not read its input; that is its own affair.
        }
        if self.input.is_empty() {
            self.stdin = None;
        }
    }
}

fn is_retryable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn exited_message(exit: &RunExit, truncated: bool, memory: Option<MemoryUse>) -> Exited {
    Exited {
        code: exit.reaped.code,
        signal: exit.reaped.signal,
        user_s: exit.reaped.user_s,
        system_s: exit.reaped.system_s,
        max_rss_bytes: exit.reaped.max_rss_bytes,
        real_ns: exit.real_ns,
        timed_out: exit.timed_out,
        truncated,
        memory,
        ..Exited::default()
    }
}

/// A run that was cancelled before its start.
fn cancelled_before_start(signal: i32) -> Exited {
    Exited { signal: Some(signal), real_ns: real_ns(), ..Exited::default() }
}

/// Enough for a version or a reason; some tools print their whole help.
const PROGRAM_OUTPUT_LIMIT_BYTES: u64 = 64 << 10;
/// A reason is a part of a sentence.
const MAX_REASON_CHARS: usize = 300;

/// A program that ended, and what it printed.
pub struct ProgramResult {
    /// How it ended.
    pub exited: Exited,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl ProgramResult {
    /// How it failed, with its first words: those on standard error, else those on standard output.
    /// None when it ended with code 0.
    #[must_use]
    pub fn failure(&self) -> Option<String> {
        let how = match (self.exited.timed_out, self.exited.code, self.exited.signal) {
            (true, ..) => "took too long and was ended".to_owned(),
            (_, Some(0), _) => return None,
            (_, Some(code), _) => format!("ended with code {code}"),
            (_, None, signal) => format!("was ended by signal {}", signal.unwrap_or(0)),
        };
        let words = if has_text(&self.stderr) { &self.stderr } else { &self.stdout };
        Some(format!("{how}: {}", first_error_line(words)))
    }
}

/// Run a program to its end, or for so many seconds.
pub fn run_program(runs: &Runs, argv: &[String], seconds: f64) -> Result<ProgramResult> {
    run_program_in(runs, argv, seconds, false)
}

fn run_program_in(
    runs: &Runs,
    argv: &[String],
    seconds: f64,
    of_host: bool,
) -> Result<ProgramResult> {
    let job = Job {
        argv: argv.to_vec(),
        of_host,
        wall_limit_s: Some(seconds),
        output_limit_bytes: Some(PROGRAM_OUTPUT_LIMIT_BYTES),
        ..Job::default()
    };
    let folder = File::open("/").context("open /")?; // Before a place is taken, which it would keep.
    let id = next_own_id();
    runs.reserve(id)?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let outcome = run(runs, id, &job, folder, &[], |event| match event {
        RunEvent::Output(OutputStream::Stdout, bytes) => stdout.extend_from_slice(bytes),
        RunEvent::Output(OutputStream::Stderr, bytes) => stderr.extend_from_slice(bytes),
        RunEvent::Started { .. } => {}
    });
    runs.release(id);
    Ok(ProgramResult { exited: outcome?, stdout, stderr })
}

/// The same for one that must succeed: what it said on standard error is the reason else.
pub fn run_checked(runs: &Runs, argv: &[&str], seconds: f64) -> Result<()> {
    let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
    require_success(&argv, &run_program(runs, &argv, seconds)?)
}

/// The same in the host's own PID namespace.
pub fn run_checked_of_host(runs: &Runs, argv: &[String], seconds: f64) -> Result<()> {
    require_success(argv, &run_program_in(runs, argv, seconds, true)?)
}

/// Start a program in this process's own PID namespace, without a table of runs: the keeper's way.
pub fn spawn_alone(argv: &[String]) -> Result<Child> {
    let job = Job { argv: argv.to_vec(), ..Job::default() };
    let folder = File::open("/").context("open /")?;
    let mut command = build_command(&job, folder, &run_mark(next_own_id()), &[], None)?;
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().context(format_args!("start {}", argv[0]))
}

fn require_success(argv: &[String], ended: &ProgramResult) -> Result<()> {
    match ended.failure() {
        None => Ok(()),
        Some(fault) => Err(Error::errno(libc::EIO, format!("{} {fault}", argv[0]))),
    }
}

fn has_text(output: &[u8]) -> bool {
    !String::from_utf8_lossy(output).trim().is_empty()
}

/// The first line of an error that says something; how the program is to be used often follows.
fn first_error_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or("it gave no reason").chars().take(MAX_REASON_CHARS).collect()
}

/// A number for a run of the agent's own, above any that a controller may choose.
fn next_own_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(MAX_ID + 1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_one_line_of_limited_length() {
        assert_eq!(first_error_line(b"\n  no room \nUsage: mkfs\n"), "no room");
        assert_eq!(first_error_line("x".repeat(900).as_bytes()).len(), MAX_REASON_CHARS);
        assert_eq!(first_error_line(b""), "it gave no reason");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = run_checked(&Runs::default(), &["no-such-mkfs"], 1.0).unwrap_err();
        assert_eq!(error.code, "ENOENT");
        assert!(error.message.contains("no-such-mkfs"), "{}", error.message);
    }
}
