//! Names made before the loop: a file's number advances in place, digit by digit.

use std::ffi::{CStr, CString};

/// Enough for the most files of a rank; a fixed width keeps every name equally long.
const DIGITS: usize = 7;
const PREFIX: &[u8; 5] = b"file.";
const LENGTH: usize = PREFIX.len() + DIGITS + 1;

/// The name of a rank's file, first that of number 0.
#[derive(Debug, Clone)]
pub struct FileName([u8; LENGTH]);

impl FileName {
    /// `file.0000000`.
    #[must_use]
    pub fn first() -> Self {
        let mut bytes = [b'0'; LENGTH];
        bytes[..PREFIX.len()].copy_from_slice(PREFIX);
        bytes[LENGTH - 1] = 0;
        Self(bytes)
    }

    /// Become the name of the next number; after the last comes the first.
    #[inline]
    pub fn advance(&mut self) {
        for digit in self.0[PREFIX.len()..LENGTH - 1].iter_mut().rev() {
            if *digit < b'9' {
                *digit += 1;
                return;
            }
            *digit = b'0';
        }
    }

    /// As system calls take it.
    #[inline]
    #[must_use]
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

/// The folder of one iteration, in a scratch folder.
#[must_use]
pub fn tree_name(iteration: u32) -> CString {
    CString::new(format!("metadata.{iteration}")).unwrap_or_default()
}

/// The folder of one rank, in that of the iteration.
#[must_use]
pub fn rank_name(rank: u32) -> CString {
    CString::new(format!("rank.{rank}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_advances_as_its_number_would_be_written() {
        let mut name = FileName::first();
        for number in 0..20_000 {
            assert_eq!(name.as_c_str().to_str().unwrap(), format!("file.{number:07}"));
            name.advance();
        }
    }

    #[test]
    fn folders_are_named_by_number() {
        assert_eq!(tree_name(2).as_c_str(), c"metadata.2");
        assert_eq!(rank_name(1087).as_c_str(), c"rank.1087");
    }
}
