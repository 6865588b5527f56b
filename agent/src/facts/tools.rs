//! Tools on this host: where each is found, and what it says when asked for its version.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::error::Result;
use crate::job::{find_program, search_path};
use crate::runs::Runs;
use crate::{guest, own_run};

/// What to run for each tool's version.
pub type Asked = BTreeMap<String, Vec<String>>;

/// A tool that takes longer to tell its version waits for something: on a host busy with others
/// some took more than 5 s.
const PATIENCE_S: f64 = 15.0;
/// The first start of fio in an emulated guest on a busy node takes longer still; it is all that is
/// asked there.
const GUEST_PATIENCE_S: f64 = 30.0;
/// A version is a line of a table.
const MAX_LINE_CHARS: usize = 200;

/// One tool.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct ToolFacts {
    pub name: String,
    pub path: Option<String>,
    pub version: Option<String>,
}

/// Ask every tool, one after the other.
pub fn tools(asked: &Asked, runs: &Runs, faults: &mut Vec<String>) -> Vec<ToolFacts> {
    asked.iter().map(|(name, argv)| tool(name, argv, runs, faults)).collect()
}

fn tool(name: &str, argv: &[String], runs: &Runs, faults: &mut Vec<String>) -> ToolFacts {
    let program = argv.first().and_then(|program| find_program(program, &search_path()));
    let mut facts = ToolFacts { name: name.to_owned(), path: None, version: None };
    let Some(program) = program else { return facts };
    facts.path = Some(program.display().to_string());
    match first_line(argv, runs) {
        Ok(Some(line)) => facts.version = Some(line),
        Ok(None) => faults.push(format!("{name} did not tell its version.")),
        Err(error) => faults.push(format!("{name} did not tell its version: {}.", error.says)),
    }
    facts
}

fn first_line(argv: &[String], runs: &Runs) -> Result<Option<String>> {
    let patience_s = if guest::is_ours() { GUEST_PATIENCE_S } else { PATIENCE_S };
    let ended = own_run::run(runs, argv, patience_s)?;
    // Some tools speak of themselves on stderr only.
    Ok([ended.stdout, ended.stderr].iter().find_map(|output| line_of(output)))
}

fn line_of(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(MAX_LINE_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_says_something() {
        assert_eq!(line_of(b"\n  fio-3.33  \nmore").as_deref(), Some("fio-3.33"));
        assert_eq!(line_of(b"\n \n"), None);
        assert_eq!(line_of("x".repeat(900).as_bytes()).map(|line| line.len()), Some(200));
        assert!(line_of(&[0xff, b'a']).is_some());
    }
}
