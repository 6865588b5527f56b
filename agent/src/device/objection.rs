//! A reason against writing to a device, wherever it was found.

use serde::Serialize;

/// One reason against writing to a device: a word and half a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Objection {
    /// One of the words of docs/reference/wire.md.
    pub code: &'static str,
    /// What is the matter, with names and values.
    pub says: String,
}

impl Objection {
    /// Make one.
    pub fn new(code: &'static str, says: impl Into<String>) -> Self {
        Self { code, says: says.into() }
    }
}
