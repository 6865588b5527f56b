//! The token of an agent: a file in memory that all processes of its runs inherit open, by which they
//! are known should the agent die without ending them.
//!
//! Unlike a setting in the environment it cannot be made by another user: the kernel notes whose it
//! is. And whether the agent lives is seen by the lock that it holds on it, whatever its number.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;

use crate::sign::own_agent_id;
use crate::sys::file::{LockedFile, is_locked, memory_file};
use crate::sys::process::{Pid, effective_uid};

/// Of the file, before the sign of its agent.
const NAME_PREFIX: &str = "iolab-token-";
static TOKEN: OnceLock<Option<Token>> = OnceLock::new();

struct Token {
    /// Held as long as this process lives: no program inherits it.
    _lock: LockedFile,
    /// The same file opened once more, which shares no lock with that.
    shared: File,
}

impl Token {
    fn make(sign: &str) -> io::Result<Self> {
        let name = CString::new(format!("{NAME_PREFIX}{sign}"))?;
        let file = memory_file(&name)?;
        let shared = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let lock = LockedFile::try_lock(file)?.map_err(|_| io::Error::other("it is new"))?;
        Ok(Self { _lock: lock, shared })
    }
}

/// What processes of runs are to inherit; None where the kernel has no such files.
///
/// To be asked for in the agent alone, not in what forked before: the lock would outlive it there.
pub fn inheritable_token() -> Option<OwnedFd> {
    let token = TOKEN.get_or_init(|| Token::make(own_agent_id()).ok()).as_ref();
    token.and_then(|token| token.shared.try_clone().ok()).map(OwnedFd::from)
}

/// Whether a process has the token of an agent of this user with that sign, who is dead.
#[must_use]
pub fn belongs_to_dead_agent(pid: Pid, sign: &str) -> bool {
    let folder = Path::new("/proc").join(pid.to_string()).join("fd");
    let target = format!("/memfd:{NAME_PREFIX}{sign} (deleted)");
    let Ok(open) = fs::read_dir(folder) else { return false };
    open.flatten().map(|entry| entry.path()).any(|link| {
        fs::read_link(&link).is_ok_and(|to| to == Path::new(&target))
            && fs::metadata(&link).is_ok_and(|meta| meta.uid() == effective_uid())
            && File::open(&link).and_then(|file| is_locked(&file)).is_ok_and(|locked| !locked)
    })
}

#[cfg(test)]
pub(crate) mod tests {
    //! Processes that are, or only look like, those of a dead agent; for other tests too.

    use std::process::{Child, Command};

    use super::*;
    use crate::sign::MARK_VARIABLE;
    use crate::sys::process::{LaunchContext, Program, start_isolated};

    /// A process as one of a run, and what its agent holds while it lives.
    pub struct Planted {
        /// The process.
        pub child: Child,
        token: Option<Token>,
    }

    impl Planted {
        /// One of an agent that lives.
        pub fn of(sign: &str) -> Self {
            let token = Token::make(sign).unwrap();
            let inherited = token.shared.try_clone().unwrap().into();
            Self { child: start(sign, Some(inherited)), token: Some(token) }
        }

        /// One that only has the environment of one: no agent has started it.
        pub fn marked(sign: &str) -> Self {
            Self { child: start(sign, None), token: None }
        }

        /// Its agent dies.
        pub fn orphan(&mut self) {
            self.token = None;
        }

        /// Whether it still runs; it is ended.
        pub fn end(mut self) -> bool {
            let lived = self.child.try_wait().unwrap().is_none();
            self.child.kill().unwrap();
            self.child.wait().unwrap();
            lived
        }
    }

    fn start(sign: &str, token: Option<OwnedFd>) -> Child {
        let mut command = Command::new("/bin/sleep");
        let mark = format!("{MARK_VARIABLE}={sign}.7");
        let program = Program::new(Path::new("/bin/sleep"), ["sleep", "60"], [mark]).unwrap();
        let folder = File::open("/").unwrap();
        start_isolated(&mut command, program, LaunchContext { folder, token, join_file: None });
        let child = command.spawn().unwrap();
        // The kernel shows an environment a little after the call that gives it has returned.
        while fs::read(format!("/proc/{}/environ", child.id())).unwrap().is_empty() {
            std::thread::yield_now();
        }
        child
    }

    #[test]
    fn a_process_is_known_by_the_token_and_its_agent_by_the_lock() {
        let sign = "1-00000000deadbeef";
        let mut planted = Planted::of(sign);
        let marked = Planted::marked(sign);
        let pid = planted.child.id() as Pid;
        assert!(!belongs_to_dead_agent(pid, sign), "its agent lives");
        planted.orphan();
        assert!(belongs_to_dead_agent(pid, sign));
        assert!(!belongs_to_dead_agent(pid, "1-00000000deadbeee"), "another agent's");
        assert!(
            !belongs_to_dead_agent(marked.child.id() as Pid, sign),
            "anybody can set a variable"
        );
        assert!(planted.end() && marked.end());
    }
}
