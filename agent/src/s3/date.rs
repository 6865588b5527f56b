//! Dates of the two forms that requests and answers bear.

/// Seconds of a day.
const DAY_S: u64 = 86_400;
/// Days from the first of March of the year 0 to 1970.
const EPOCH_DAYS: i64 = 719_468;
/// Days of 400 years.
const ERA_DAYS: i64 = 146_097;
/// As answers name them.
const MONTHS: [&[u8; 3]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// Bytes of a date of a signature.
pub const DATE_BYTES: usize = 16;
/// Bytes of it that are the day.
pub const DAY_BYTES: usize = 8;

/// `20130524T000000Z` of a second since 1970, in UTC.
#[must_use]
pub fn signature_date(second: u64) -> [u8; DATE_BYTES] {
    let (year, month, day) = civil_day((second / DAY_S) as i64);
    let rest = second % DAY_S;
    let mut date = *b"00000000T000000Z";
    put_number(&mut date[0..4], year as u64);
    put_number(&mut date[4..6], month);
    put_number(&mut date[6..8], day);
    put_number(&mut date[9..11], rest / 3600);
    put_number(&mut date[11..13], rest / 60 % 60);
    put_number(&mut date[13..15], rest % 60);
    date
}

/// The second since 1970 of `Fri, 24 May 2013 00:00:00 GMT`; None for anything else.
#[must_use]
pub fn parse_http_date(text: &[u8]) -> Option<u64> {
    let (_, rest) = text.split_at_checked(5)?;
    if rest.len() != 24 || &rest[20..] != b" GMT" {
        return None;
    }
    let month = MONTHS.iter().position(|name| name.as_slice() == &rest[3..6])? as i64 + 1;
    let [day, year, hour, minute, second] =
        [0..2, 7..11, 12..14, 15..17, 18..20].map(|range| parse_number(&rest[range]));
    let days = days_of_civil(year? as i64, month, day? as i64);
    u64::try_from(days).ok().map(|days| {
        days * DAY_S + hour.unwrap_or(0) * 3600 + minute.unwrap_or(0) * 60 + second.unwrap_or(0)
    })
}

fn put_number(digits: &mut [u8], mut number: u64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

fn parse_number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0'))
    })
}

/// Year, month and day of a day since 1970. Years begin in March here, so that leap days are last.
fn civil_day(days: i64) -> (i64, u64, u64) {
    let shifted = days + EPOCH_DAYS;
    let era = shifted.div_euclid(ERA_DAYS);
    let day_of_era = shifted.rem_euclid(ERA_DAYS);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month as u64, day as u64)
}

/// The day since 1970 of a year, month and day.
fn days_of_civil(year: i64, month: i64, day: i64) -> i64 {
    let shifted_year = year - i64::from(month <= 2);
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * ERA_DAYS + day_of_era - EPOCH_DAYS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_both_forms_are_the_same_second() {
        for (second, date, text) in [
            (0, b"19700101T000000Z", "Thu, 01 Jan 1970 00:00:00 GMT"),
            (1_369_353_600, b"20130524T000000Z", "Fri, 24 May 2013 00:00:00 GMT"),
            (1_709_251_199, b"20240229T235959Z", "Thu, 29 Feb 2024 23:59:59 GMT"),
            (4_107_542_400, b"21000301T000000Z", "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(&signature_date(second), date);
            assert_eq!(parse_http_date(text.as_bytes()), Some(second), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in
            ["", "Fri, 24 May 2013", "Fri, 24 Mai 2013 00:00:00 GMT", "x, 24 May 2013 00:00:00 CET"]
        {
            assert_eq!(parse_http_date(text.as_bytes()), None, "{text}");
        }
    }
}
