//! The sign of an agent: by which its runs, control groups and folders are told from all others'.

use std::sync::LazyLock;

use crate::probe::process::setting_after;
use crate::sys::process::own_pid;
use crate::sys::time::real_ns;

/// The environment variable that marks a run's processes.
pub const MARK: &str = "IOLAB_RUN";
/// Digits of nanoseconds since 1970 in hexadecimal, from 2006 to 2554.
const TIME_DIGITS: usize = 16;
/// Two agents never have the same, wherever they run.
static SIGN: LazyLock<String> = LazyLock::new(|| format!("{}-{:016x}", own_pid(), real_ns()));

/// By what this agent's processes can be told from all others.
#[must_use]
pub fn own_sign() -> &'static str {
    &SIGN
}

/// The setting that the processes of a run of this agent have in their environment.
#[must_use]
pub fn mark_of(id: u64) -> String {
    format!("{MARK}={}.{id}", *SIGN)
}

/// The sign of the agent that an environment was given by, if one has.
#[must_use]
pub fn sign_in(environ: &[u8]) -> Option<String> {
    let mark = setting_after(environ, &format!("{MARK}="))?;
    sign_of(std::str::from_utf8(mark).ok()?).map(str::to_owned)
}

/// The sign in `SIGN.ID`; none in what only looks like it, for what bears a sign may be killed.
#[must_use]
pub fn sign_of(mark: &str) -> Option<&str> {
    let (sign, id) = mark.rsplit_once('.')?;
    let (pid, made_at) = sign.split_once('-')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let is_time = made_at.len() == TIME_DIGITS && made_at.bytes().all(is_hex);
    (is_number(pid) && is_number(id) && is_time).then_some(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_only_looks_like_a_sign_is_one() {
        assert_eq!(sign_of("812-18b2f3a4c5d6e7f8.31"), Some("812-18b2f3a4c5d6e7f8"));
        for other in
            ["2024-11-23.log", "3-node.service", "812-18b2f3a4c5d6e7f8", "-.1", "", "1-x.1"]
        {
            assert_eq!(sign_of(other), None, "{other}");
        }
    }
}
