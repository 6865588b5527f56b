//! What becomes of a scratch folder when it is let go.

/// What is to be left of a scratch folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// Neither the folder nor what is in it.
    Nothing,
    /// All of it, for a later session.
    Files,
}
