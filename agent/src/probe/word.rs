//! Small forms that many kernel files share: `[chosen]` among words, CPU lists, `KEY="value"`.

/// The word in brackets, as in `none [mq-deadline] kyber`; a single bare word is chosen too.
#[must_use]
pub fn chosen(text: &str) -> Option<String> {
    let text = text.trim();
    let bracketed = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    match bracketed {
        Some((word, _)) => Some(word.to_owned()),
        None if text.is_empty() || text.contains(' ') => None,
        None => Some(text.to_owned()),
    }
}

/// The members of a kernel list such as `0-3,8,10-11`; odd parts are passed over.
#[must_use]
pub fn list_members(text: &str) -> Vec<u32> {
    let mut members = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) {
            // No machine has more CPUs; a longer range is not a list of them.
            members.extend(first..=last.min(first.saturating_add(65_535)));
        }
    }
    members
}

/// The value of a key in a file of `Key:\tvalue` lines, such as `/proc/PID/status`.
#[must_use]
pub fn setting_of_status<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim()))
}

/// The value of a key in os-release form, quotes taken off.
#[must_use]
pub fn setting(text: &str, key: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
    Some(value.trim().trim_matches(['"', '\'']).to_owned())
}

/// A trimmed text, None when nothing is left.
#[must_use]
pub fn non_empty(text: &str) -> Option<String> {
    let text = text.trim().trim_matches('\0').trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_brackets_is_chosen() {
        assert_eq!(chosen("[none] mq-deadline kyber bfq\n").as_deref(), Some("none"));
        assert_eq!(chosen("always [madvise] never\n").as_deref(), Some("madvise"));
        assert_eq!(chosen("none\n").as_deref(), Some("none"));
        assert_eq!(chosen("\n"), None);
        assert_eq!(chosen("always madvise"), None);
    }

    #[test]
    fn a_list_has_its_members() {
        assert_eq!(list_members("0-3,8,10-11\n"), [0, 1, 2, 3, 8, 10, 11]);
        assert_eq!(list_members("\n"), Vec::<u32>::new());
        assert_eq!(list_members("x,2,5-"), [2]);
        assert_eq!(list_members("7-4294967295").len(), 65_536);
    }

    #[test]
    fn a_setting_loses_its_quotes() {
        let text = "NAME=\"Debian GNU/Linux\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(setting(text, "PRETTY_NAME").unwrap(), "Debian GNU/Linux 12 (bookworm)");
        assert_eq!(setting(text, "PRETTY"), None);
    }

    #[test]
    fn blank_text_is_nothing() {
        assert_eq!(non_empty(" \0\n"), None);
        assert_eq!(non_empty("  SAMSUNG MZQL2   \n").as_deref(), Some("SAMSUNG MZQL2"));
    }
}
