//! What the metadata engine does in a folder: operations a second by phase, one rank.
//!
//! `DIR=/mnt/target cargo bench --bench metadata` measures there, else in the temporary folder;
//! `FILES` and `BYTES` set the number and the size of the files. It fails when an operation does.

use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use iolab_agent::error::{Context, Result};
use iolab_agent::latency::upper_ns;
use iolab_agent::metadata::{Phase, PhaseResult, PhaseSpec, Phases, run_phase};
use iolab_agent::prepare::scratch::Scratch;
use iolab_agent::sys::file::open_folder;

const PHASES: [Phase; 6] = [
    Phase::TreeCreate,
    Phase::FileCreate,
    Phase::FileStat,
    Phase::FileRead,
    Phase::FileRemove,
    Phase::TreeRemove,
];
const DEFAULT_FILES: u32 = 20_000;
const ROUNDS: u32 = 3;

fn main() -> ExitCode {
    let target = env::var_os("DIR").map_or_else(env::temp_dir, PathBuf::from);
    match measure_in(&target) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(errors) => {
            eprintln!("{errors} operations failed");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{}", error.message);
            ExitCode::FAILURE
        }
    }
}

/// All phases, several times over; returns how many operations failed.
fn measure_in(target: &Path) -> Result<u64> {
    let name = format!("iolab-scratch-bench-{}", std::process::id());
    let (scratch, _) = Scratch::open(target, &name, "cargo bench")?;
    let errors = measure_all(scratch.dir());
    scratch.remove().map_err(|stays| stays.error)?;
    errors
}

fn open(dir: &Path) -> Result<File> {
    open_folder(dir).context("open the scratch folder")
}

fn measure_all(dir: &Path) -> Result<u64> {
    let (files, bytes) = (number("FILES").unwrap_or(DEFAULT_FILES), number("BYTES").unwrap_or(0));
    println!("{}: {files} files of {bytes} bytes, one rank", dir.display());
    let mut errors = 0;
    for iteration in 0..ROUNDS {
        for phase in PHASES {
            let load = one_rank(dir, phase, files, bytes, iteration);
            let measured = run_phase(&load, &mut Phases::default().reserve(1)?, &open, |_| {})?;
            errors += measured.errors.values().sum::<u64>();
            print(iteration, &measured);
        }
    }
    Ok(errors)
}

fn one_rank(dir: &Path, phase: Phase, files: u32, bytes: u32, iteration: u32) -> PhaseSpec {
    PhaseSpec {
        dir: dir.to_owned(),
        phase,
        first_rank: 0,
        ranks: 1,
        total_ranks: 1,
        shift: 0,
        others: Vec::new(),
        files_per_rank: files,
        files: Vec::new(),
        runtime_s: None,
        files_least: 0,
        file_bytes: bytes,
        iteration,
        start_at_real_ns: None,
        interval_ms: 1000,
        wall_limit_s: None,
    }
}

fn print(iteration: u32, measured: &PhaseResult) {
    let (Some(start), Some(end)) = (measured.first_start_real_ns, measured.last_end_real_ns) else {
        return;
    };
    let rate = measured.ops as f64 * 1e9 / end.saturating_sub(start).max(1) as f64;
    println!(
        "{iteration} {:<12} {:>8} ops {rate:>12.0} ops/s   p99 up to {:>9} ns   {:.3} CPU s",
        format!("{:?}", measured.phase),
        measured.ops,
        p99_ns(measured),
        measured.user_s + measured.system_s
    );
}

fn p99_ns(measured: &PhaseResult) -> u64 {
    let mut below = 0;
    let bin = measured.bins.iter().find(|(_, count)| {
        below += count;
        below * 100 >= measured.ops * 99
    });
    bin.map_or(0, |&(bin, _)| upper_ns(bin))
}

fn number(name: &str) -> Option<u32> {
    env::var(name).ok()?.parse().ok()
}
