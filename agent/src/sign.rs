//! The sign of an agent: by which its runs, control groups and folders are told from all others'.

use std::path::Path;
use std::sync::LazyLock;

use crate::probe::process::{environ_rest_after, parse_process_stat};
use crate::roots::read_text;
use crate::sys::process::{Pid, own_pid};
use crate::sys::time::real_ns;

/// The environment variable that marks a run's processes.
pub const MARK_VARIABLE: &str = "IOLAB_RUN";
/// Hexadecimal digits of the second part of a sign.
const TIME_DIGITS: usize = 16;
/// Its lower bits, of the time of day: agents of two hosts that started alike differ there.
const DAY_BITS: u32 = 24;
/// The process id, and the clock tick in which the process started: no two processes of a running
/// kernel have the same.
static AGENT_ID: LazyLock<String> = LazyLock::new(|| {
    let started =
        read_text(Path::new("/proc/self/stat")).and_then(|text| parse_process_stat(&text));
    let ticks = started.map_or(0, |place| place.start_ticks);
    let of_day = real_ns() & ((1 << DAY_BITS) - 1);
    format!("{}-{:016x}", own_pid(), (ticks << DAY_BITS) | of_day)
});

/// By what this agent's processes can be told from all others.
#[must_use]
pub fn own_agent_id() -> &'static str {
    &AGENT_ID
}

/// The setting that the processes of a run of this agent have in their environment.
#[must_use]
pub fn run_mark(id: u64) -> String {
    format!("{MARK_VARIABLE}={}.{id}", *AGENT_ID)
}

/// The sign of the agent that an environment was given by, if one has.
#[must_use]
pub fn agent_id_in_environ(environ: &[u8]) -> Option<String> {
    let mark = environ_rest_after(environ, &format!("{MARK_VARIABLE}="))?;
    agent_id_of_mark(std::str::from_utf8(mark).ok()?).map(str::to_owned)
}

/// The sign in `SIGN.ID`; none in what only looks like it, for what bears a sign may be killed.
#[must_use]
pub fn agent_id_of_mark(mark: &str) -> Option<&str> {
    let (sign, id) = mark.rsplit_once('.')?;
    let (pid, made_at) = sign.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let is_time = made_at.len() == TIME_DIGITS && made_at.bytes().all(is_hex);
    (is_number(pid) && is_number(id) && is_time).then_some(sign)
}

/// The process that a sign is of: its id, and the clock tick in which it started.
#[must_use]
pub fn process_of_agent_id(sign: &str) -> Option<(Pid, u64)> {
    let (pid, made_at) = sign.split_once('-')?;
    Some((pid.parse().ok()?, u64::from_str_radix(made_at, 16).ok()? >> DAY_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_only_looks_like_a_sign_is_one() {
        assert_eq!(agent_id_of_mark("812-18b2f3a4c5d6e7f8.31"), Some("812-18b2f3a4c5d6e7f8"));
        for other in
            ["2024-11-23.log", "3-node.service", "812-18b2f3a4c5d6e7f8", "-.1", "", "1-x.1"]
        {
            assert_eq!(agent_id_of_mark(other), None, "{other}");
        }
    }

    #[test]
    fn the_own_sign_names_this_process_and_when_it_started() {
        let stat = read_text(Path::new("/proc/self/stat")).unwrap();
        let start_ticks = parse_process_stat(&stat).unwrap().start_ticks;
        assert!(start_ticks > 0);
        assert_eq!(process_of_agent_id(own_agent_id()), Some((own_pid(), start_ticks)));
        assert_eq!(agent_id_of_mark(&format!("{}.1", own_agent_id())), Some(own_agent_id()));
    }
}
