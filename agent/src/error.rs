//! The one error of a request: the errno's name (or a word of ours) and one sentence with the
//! value.

use std::fmt::Display;
use std::io;

use serde::Serialize;

/// Why a request could not be served; it becomes the final `error` message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Error {
    /// The name of the errno where there is one, else `bad-request`, `busy`, `refused`,
    /// `replaced` or `bug`.
    pub code: String,
    /// One sentence with the value.
    pub message: String,
}

/// What every fallible part of the agent returns.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A request that cannot be meant: an unknown verb, a wrong argument.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self { code: "bad-request".into(), message: message.into() }
    }

    /// Something is held by somebody else, or a limit is reached.
    pub fn busy(message: impl Into<String>) -> Self {
        Self { code: "busy".into(), message: message.into() }
    }

    /// Something that would destroy what may not be destroyed.
    pub fn refused(message: impl Into<String>) -> Self {
        Self { code: "refused".into(), message: message.into() }
    }

    /// What a name means is not what was made under it.
    pub fn replaced(message: impl Into<String>) -> Self {
        Self { code: "replaced".into(), message: message.into() }
    }

    /// A fault of the agent itself.
    pub fn bug(message: impl Into<String>) -> Self {
        Self { code: "bug".into(), message: message.into() }
    }

    /// An operating system error; `doing` completes the sentence "cannot …".
    pub fn io(doing: impl Display, error: &io::Error) -> Self {
        Self {
            code: error_code(error),
            message: format!("cannot {doing}: {}", io_error_text(error)),
        }
    }

    /// The same for an errno that no `io::Error` came with.
    pub fn errno(errno: i32, message: impl Into<String>) -> Self {
        Self { code: errno_name(errno).unwrap_or("EIO").into(), message: message.into() }
    }
}

/// What could not be done, said with the error of the operating system.
pub trait Context<T> {
    /// `doing` completes the sentence "cannot …".
    fn context(self, doing: impl Display) -> Result<T>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, doing: impl Display) -> Result<T> {
        self.map_err(|error| Error::io(doing, &error))
    }
}

/// The message of an operating system error with the errno's name: `No such file… (ENOENT)`; with
/// its number where it has none here.
#[must_use]
pub fn io_error_text(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error().and_then(errno_name) {
        // What file systems say of damage; musl has no words for it.
        Some(name @ "EUCLEAN") => format!("Structure needs cleaning ({name})"),
        Some(name) => format!("{} ({name})", text.split(" (os error").next().unwrap_or(&text)),
        None => text,
    }
}

fn error_code(error: &io::Error) -> String {
    error.raw_os_error().and_then(errno_name).unwrap_or("EIO").to_owned()
}

/// The symbolic name of an errno; None for one that storage and processes do not produce.
#[must_use]
pub fn errno_name(errno: i32) -> Option<&'static str> {
    ERRNO_NAMES.iter().find(|(number, _)| *number == errno).map(|(_, name)| *name)
}

macro_rules! names {
    ($($name:ident),* $(,)?) => { &[$((libc::$name, stringify!($name))),*] };
}

const ERRNO_NAMES: &[(i32, &str)] = names![
    E2BIG,
    EACCES,
    EAGAIN,
    EBADF,
    EBUSY,
    ECHILD,
    ECONNABORTED,
    ECONNREFUSED,
    ECONNRESET,
    EDQUOT,
    EEXIST,
    EFAULT,
    EFBIG,
    EHOSTDOWN,
    EHOSTUNREACH,
    EINTR,
    EINVAL,
    EIO,
    EISDIR,
    ELOOP,
    EMFILE,
    EMLINK,
    ENAMETOOLONG,
    ENFILE,
    ENODATA,
    ENODEV,
    ENOENT,
    ENOEXEC,
    ENOLCK,
    ENOMEM,
    ENOSPC,
    ENOSYS,
    ENOTCONN,
    ENOTBLK,
    ENOTDIR,
    ENOTEMPTY,
    ENOTSUP,
    ENOTTY,
    ENXIO,
    EOVERFLOW,
    EPERM,
    EPIPE,
    EREMOTEIO,
    EROFS,
    ESPIPE,
    ESRCH,
    ESTALE,
    ETIMEDOUT,
    ETXTBSY,
    EUCLEAN,
    EXDEV,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_io_error_keeps_its_errno_name_and_value() {
        let error = Error::io("open /nowhere", &io::Error::from_raw_os_error(libc::ENOENT));
        assert_eq!(error.code, "ENOENT");
        assert_eq!(error.message, "cannot open /nowhere: No such file or directory (ENOENT)");
    }

    #[test]
    fn every_named_error_has_words() {
        for &(number, name) in ERRNO_NAMES {
            let message = io_error_text(&io::Error::from_raw_os_error(number));
            assert!(message.ends_with(&format!(" ({name})")), "{message}");
            assert!(!message.starts_with("No error information"), "{message}");
        }
        let message = io_error_text(&io::Error::from_raw_os_error(libc::EBADE));
        assert!(message.contains("52"), "{message}");
    }

    #[test]
    fn an_error_without_errno_is_an_io_error() {
        let error = Error::io("read", &io::Error::other("odd"));
        assert_eq!((error.code.as_str(), error.message.as_str()), ("EIO", "cannot read: odd"));
    }
}
