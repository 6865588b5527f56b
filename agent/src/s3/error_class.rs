//! Why a request failed, as one of a few classes that are counted.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::xml::element_text;
use crate::latency::add_by_owner;

macro_rules! error_classes {
    ($($(#[$note:meta])* $class:ident => $name:literal,)*) => {
        /// Why a request failed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ErrorClass { $($(#[$note])* $class,)* }

        /// All, in the order of their counters.
        pub const ERROR_CLASSES: &[ErrorClass] = &[$(ErrorClass::$class,)*];

        impl ErrorClass {
            /// As lines name it: S3's own code where it has one.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$class => $name,)* }
            }
        }
    };
}

error_classes! {
    /// Nobody listens there.
    ConnectRefused => "connect-refused",
    /// No connection within the time of an attempt.
    ConnectTimeout => "connect-timeout",
    /// No connection for another reason.
    ConnectFailed => "connect-failed",
    /// TLS could not be agreed on, or was broken.
    Tls => "tls",
    /// The server closed the connection before the status.
    Closed => "closed",
    /// The connection was reset.
    Reset => "reset",
    /// No whole answer within the time of an attempt.
    Timeout => "timeout",
    /// The body ended before its length.
    ShortBody => "short-body",
    /// The object has another length than was written.
    WrongLength => "wrong-length",
    /// The answer is none of HTTP, or lacks what it must have.
    BadResponse => "bad-response",
    /// The body is not what was written.
    WrongContent => "wrong-content",
    /// The body is of two writes.
    TornContent => "torn-content",
    /// The server names another address; it is not followed.
    Redirect => "redirect",
    /// The server wants fewer requests, by 503 with or without that code.
    SlowDown => "SlowDown",
    /// The same by 429, or by a code of `SeaweedFS`.
    TooManyRequests => "TooManyRequests",
    /// 503 with another code.
    ServiceUnavailable => "ServiceUnavailable",
    /// 500.
    InternalError => "InternalError",
    /// Another 5xx.
    ServerError => "server-error",
    /// 403 without one of the codes below.
    AccessDenied => "AccessDenied",
    /// The secret key is another.
    SignatureDoesNotMatch => "SignatureDoesNotMatch",
    /// The server does not know the access key.
    InvalidAccessKeyId => "InvalidAccessKeyId",
    /// Temporary credentials are over.
    ExpiredToken => "ExpiredToken",
    /// The clocks are more than 15 minutes apart.
    RequestTimeTooSkewed => "RequestTimeTooSkewed",
    /// There is no such bucket.
    NoSuchBucket => "NoSuchBucket",
    /// There is no such object.
    NoSuchKey => "NoSuchKey",
    /// The upload was aborted or completed.
    NoSuchUpload => "NoSuchUpload",
    /// The object is shorter.
    InvalidRange => "InvalidRange",
    /// A part is smaller than the server takes.
    EntityTooSmall => "EntityTooSmall",
    /// A condition did not hold.
    PreconditionFailed => "PreconditionFailed",
    /// Another 4xx.
    ClientError => "client-error",
}

impl ErrorClass {
    /// What an answer that is no success says by its status and S3's code, if it has one.
    #[must_use]
    pub fn of_answer(status: u16, code: Option<&str>) -> Self {
        if let Some(class) = code.and_then(Self::of_code) {
            return class;
        }
        match status {
            300..400 => Self::Redirect,
            400 | 405..412 | 413..416 | 417..429 | 430..500 => Self::ClientError,
            401 | 403 => Self::AccessDenied,
            404 => Self::NoSuchKey,
            412 => Self::PreconditionFailed,
            416 => Self::InvalidRange,
            429 => Self::TooManyRequests,
            500 => Self::InternalError,
            // A bare 503 is what gateways send that have too many connections.
            503 => code.map_or(Self::SlowDown, |_| Self::ServiceUnavailable),
            501..600 => Self::ServerError,
            _ => Self::BadResponse,
        }
    }

    fn of_code(code: &str) -> Option<Self> {
        match code {
            "ErrTooManyRequest" | "ErrRequestBytesExceed" | "TooManyRequests" => {
                Some(Self::TooManyRequests)
            }
            "TokenRefreshRequired" | "InvalidToken" => Some(Self::ExpiredToken),
            // Names with a hyphen are none of S3's.
            _ => ERROR_CLASSES
                .iter()
                .copied()
                .find(|class| class.name() == code && !code.contains('-')),
        }
    }

    /// Of a connection that failed while it was used.
    #[must_use]
    pub fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => Self::Tls,
            io::ErrorKind::UnexpectedEof => Self::Closed,
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::Timeout,
            _ => Self::Reset,
        }
    }

    /// Of a connection that could not be made.
    #[must_use]
    pub fn of_connect(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::ConnectRefused,
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::ConnectTimeout,
            io::ErrorKind::InvalidData => Self::Tls,
            _ => Self::ConnectFailed,
        }
    }

    /// Whether the server says that it has too much to do.
    #[must_use]
    pub fn is_busy(self) -> bool {
        matches!(self, Self::SlowDown | Self::TooManyRequests | Self::ServiceUnavailable)
    }

    /// Whether another attempt may do better.
    #[must_use]
    pub fn is_transient(self) -> bool {
        matches!(
            self,
            Self::ConnectRefused
                | Self::ConnectTimeout
                | Self::ConnectFailed
                | Self::Closed
                | Self::Reset
                | Self::Timeout
                | Self::ShortBody
                | Self::SlowDown
                | Self::TooManyRequests
                | Self::ServiceUnavailable
                | Self::InternalError
                | Self::ServerError
        )
    }
}

/// S3's code and message in the body of an answer.
#[must_use]
pub fn code_and_message(body: &[u8]) -> Option<(String, String)> {
    const MAX_CHARACTERS: usize = 200;
    let text = std::str::from_utf8(body).ok().filter(|text| text.contains("<Error"))?;
    let code = element_text(text, "Code")?;
    let message = element_text(text, "Message").unwrap_or_default();
    let cut = |text: &str| text.chars().take(MAX_CHARACTERS).collect();
    Some((cut(&code), cut(&message)))
}

/// How often each class was met: written by one thread alone.
#[derive(Debug, Default)]
pub struct ErrorCounters([AtomicU64; ERROR_CLASSES.len()]);

impl ErrorCounters {
    /// Count one.
    pub fn add(&self, class: ErrorClass) {
        add_by_owner(&self.0[class as usize], 1);
    }

    /// Add what was counted to the sums of all threads.
    pub fn add_to(&self, sums: &mut ErrorCounts) {
        for (sum, count) in sums.0.iter_mut().zip(&self.0) {
            *sum += count.load(Ordering::Relaxed);
        }
    }
}

/// How often all threads met each class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorCounts([u64; ERROR_CLASSES.len()]);

impl ErrorCounts {
    /// How many there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Those that were met, by name.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let all = ERROR_CLASSES.iter().zip(self.0);
        all.map(|(class, count)| (class.name(), count)).filter(|&(_, count)| count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart_by_code_and_status() {
        for (status, code, class) in [
            (503, Some("SlowDown"), ErrorClass::SlowDown),
            (503, None, ErrorClass::SlowDown),
            (503, Some("ServiceUnavailable"), ErrorClass::ServiceUnavailable),
            (503, Some("ErrTooManyRequest"), ErrorClass::TooManyRequests),
            (403, Some("SignatureDoesNotMatch"), ErrorClass::SignatureDoesNotMatch),
            (403, Some("Own"), ErrorClass::AccessDenied),
            (404, Some("NoSuchBucket"), ErrorClass::NoSuchBucket),
            (404, None, ErrorClass::NoSuchKey),
            (400, Some("server-error"), ErrorClass::ClientError),
            (301, Some("PermanentRedirect"), ErrorClass::Redirect),
            (200, Some("InternalError"), ErrorClass::InternalError),
            (507, None, ErrorClass::ServerError),
            (99, None, ErrorClass::BadResponse),
        ] {
            assert_eq!(ErrorClass::of_answer(status, code), class, "{status} {code:?}");
        }
    }

    #[test]
    fn a_body_tells_code_and_message() {
        let body =
            b"<?xml?><Error><Code>SlowDown</Code><Message>Reduce &amp; wait.</Message></Error>";
        assert_eq!(code_and_message(body), Some(("SlowDown".into(), "Reduce & wait.".into())));
        assert_eq!(code_and_message(b"<html><Code>x</Code></html>"), None);
    }

    #[test]
    fn what_was_met_is_summed_by_name() {
        let threads = [ErrorCounters::default(), ErrorCounters::default()];
        threads[0].add(ErrorClass::SlowDown);
        threads[1].add(ErrorClass::SlowDown);
        threads[1].add(ErrorClass::Timeout);
        let mut sums = ErrorCounts::default();
        for thread in &threads {
            thread.add_to(&mut sums);
        }
        assert_eq!(sums.named().collect::<Vec<_>>(), [("timeout", 1), ("SlowDown", 2)]);
        assert_eq!(sums.total(), 3);
    }
}
