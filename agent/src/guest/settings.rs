//! What a guest is told at its start: words of the kernel's command line, and the list of modules.

use crate::error::{Error, Result};

/// The kernel takes no longer name of a machine.
const MAX_NAME_BYTES: usize = 64;

/// The words of the command line that are ours.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `iolab.real_ns`: the time of the node when it started the guest.
    pub real_ns: Option<u64>,
    /// `iolab.name`: what the guest is called.
    pub name: Option<String>,
}

/// Read `/proc/cmdline`. Words of others are theirs; the last of a kind counts, as for the kernel.
pub fn parse_settings(command_line: &str) -> Result<Settings> {
    let mut settings = Settings::default();
    for word in command_line.split_ascii_whitespace() {
        let Some((key, value)) = word.strip_prefix("iolab.").and_then(|own| own.split_once('='))
        else {
            continue;
        };
        let odd = || Error::bad_request(format!("the kernel's parameter {word:?} is no setting"));
        match key {
            "real_ns" => settings.real_ns = Some(value.parse().map_err(|_| odd())?),
            "name" if (1..=MAX_NAME_BYTES).contains(&value.len()) => {
                settings.name = Some(value.to_owned());
            }
            _ => return Err(odd()),
        }
    }
    Ok(settings)
}

/// The files of modules in the order in which they are loaded: one a line, with or without `.ko`.
pub fn parse_order(order: &str) -> Result<Vec<String>> {
    let lines = order.lines().map(str::trim).filter(|line| !line.is_empty());
    let file = |line: &str| {
        let name = line.strip_suffix(".ko").unwrap_or(line);
        if name.is_empty() || name.contains(['/', '\0']) {
            return Err(Error::bad_request(format!("{line:?} is not the name of a module")));
        }
        Ok(format!("{name}.ko"))
    };
    lines.map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_words_are_found_among_others() {
        let line = "quiet console=ttyS0 iolab.real_ns=1700000000000000001 panic=-1 \
                    iolab.name=node1-vm03 lpj=4\n";
        let settings = parse_settings(line).unwrap();
        assert_eq!(settings.real_ns, Some(1_700_000_000_000_000_001));
        assert_eq!(settings.name.as_deref(), Some("node1-vm03"));
        assert_eq!(parse_settings("quiet").unwrap(), Settings::default());
    }

    #[test]
    fn a_word_of_ours_that_means_nothing_is_told() {
        let long = format!("iolab.name={}", "x".repeat(65));
        for word in ["iolab.real_ns=soon", "iolab.real_ns=-1", "iolab.name=", "iolab.x=1", &long] {
            let error = parse_settings(&format!("quiet {word}")).unwrap_err();
            assert!(error.says.contains(word), "{}", error.says);
        }
    }

    #[test]
    fn modules_keep_their_order() {
        let order = parse_order("virtio_ring.ko\nvirtio\n\n virtio_blk.ko \n").unwrap();
        assert_eq!(order, ["virtio_ring.ko", "virtio.ko", "virtio_blk.ko"]);
        for line in ["../x.ko", "/lib/x.ko", ".ko"] {
            assert!(parse_order(line).unwrap_err().says.contains(line), "{line}");
        }
    }
}
