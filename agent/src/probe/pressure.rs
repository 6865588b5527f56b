//! `/proc/pressure/*`: time in which work waited for a resource.

/// Stall time since boot in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stall {
    /// At least one task waited.
    pub some_ns: Option<u64>,
    /// All tasks that could work waited.
    pub full_ns: Option<u64>,
}

/// Parse one file of `/proc/pressure`; its totals are microseconds.
#[must_use]
pub fn parse_pressure(text: &str) -> Stall {
    let total = |kind: &str| {
        let line = text.lines().find(|line| line.starts_with(kind))?;
        let total = line.split_ascii_whitespace().find_map(|field| field.strip_prefix("total="))?;
        total.parse::<u64>().ok()?.checked_mul(1000)
    };
    Stall { some_ns: total("some "), full_ns: total("full ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_lines() {
        let text = "some avg10=0.00 avg60=0.12 avg300=0.10 total=1234\n\
            full avg10=0.00 avg60=0.00 avg300=0.00 total=56\n";
        let stall = Stall { some_ns: Some(1_234_000), full_ns: Some(56_000) };
        assert_eq!(parse_pressure(text), stall);
    }

    #[test]
    fn cpu_of_an_old_kernel_has_one_line_and_no_file_has_none() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(parse_pressure(text), Stall { some_ns: Some(7000), full_ns: None });
        assert_eq!(parse_pressure(""), Stall::default());
        assert_eq!(parse_pressure("some total=x\nfull"), Stall::default());
    }
}
