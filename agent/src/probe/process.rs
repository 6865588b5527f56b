//! `/proc/PID/stat` and `/proc/PID/environ`: whose child a process is, and which run it is of.

/// The few fields of `/proc/PID/stat` that place a process in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its id.
    pub pid: i32,
    /// Ended, but not reaped by its parent.
    pub is_zombie: bool,
    /// Its parent's id.
    pub parent: i32,
    /// Its session's id.
    pub session: i32,
}

/// Parse `/proc/PID/stat`. The name in parentheses may hold spaces, parentheses and line ends.
#[must_use]
pub fn parse_place(text: &str) -> Option<Place> {
    let (pid, _) = text.split_once(" (")?;
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let is_zombie = matches!(state, "Z" | "X");
    Some(Place { pid: pid.parse().ok()?, is_zombie, parent, session })
}

/// User and system time of a whole process in ticks, of `/proc/PID/stat`.
#[must_use]
pub fn parse_ticks(text: &str) -> Option<(u64, u64)> {
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Nanoseconds that a thread ran and that it waited for a processor, of `schedstat`.
#[must_use]
pub fn parse_schedule(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_ascii_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Whether `/proc/PID/environ` holds exactly this `NAME=value`.
#[must_use]
pub fn has_setting(environ: &[u8], setting: &str) -> bool {
    environ.split(|&byte| byte == 0).any(|entry| entry == setting.as_bytes())
}

/// The rest of the `NAME=value` of `/proc/PID/environ` that begins so.
#[must_use]
pub fn setting_after<'a>(environ: &'a [u8], beginning: &str) -> Option<&'a [u8]> {
    environ.split(|&byte| byte == 0).find_map(|entry| entry.strip_prefix(beginning.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_of_linux_6_18() {
        let text = "1413 (fio) S 1400 1399 1398 0 -1 4194560 1210 0 0 0 12 4 0 0 20 0 2 0\n";
        let place = Place { pid: 1413, is_zombie: false, parent: 1400, session: 1398 };
        assert_eq!(parse_place(text), Some(place));
    }

    #[test]
    fn a_name_may_look_like_the_rest_of_the_line() {
        let text = "7 (a) R 1 2 (x\n) Z 3 4 5 0 -1";
        let place = Place { pid: 7, is_zombie: true, parent: 3, session: 5 };
        assert_eq!(parse_place(text), Some(place));
    }

    #[test]
    fn an_odd_line_is_no_process() {
        for text in ["", "12", "12 (x", "12 (x) S", "12 (x) S one 2 3", "x (x) S 1 2 3"] {
            assert_eq!(parse_place(text), None, "{text}");
        }
    }

    #[test]
    fn the_times_of_a_process_and_of_a_thread() {
        let text = "1413 (CPU 0) S 1400 1399 1398 0 -1 4194560 1210 0 0 0 12 4 0 0 20 0 2 0\n";
        assert_eq!(parse_ticks(text), Some((12, 4)));
        assert_eq!(parse_ticks("1413 (x) S 1400"), None);
        assert_eq!(parse_schedule("901 77 3\n"), Some((901, 77)));
        assert_eq!(parse_schedule("901\n"), None);
    }

    #[test]
    fn a_setting_is_matched_whole() {
        let environ = b"PATH=/bin\0IOLAB_RUN=12.3\0";
        assert!(has_setting(environ, "IOLAB_RUN=12.3"));
        assert!(!has_setting(environ, "IOLAB_RUN=12"));
        assert_eq!(setting_after(environ, "IOLAB_RUN="), Some(&b"12.3"[..]));
        assert_eq!(setting_after(b"X=IOLAB_RUN=12.3\0", "IOLAB_RUN="), None);
        assert!(!has_setting(environ, "OLAB_RUN=12.3"));
    }
}
