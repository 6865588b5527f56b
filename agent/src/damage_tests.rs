//! What others send is damaged in many ways: the decoder of frames, the requests in them and the
//! jobs of the native engine refuse it or mean it, and never panic.
//!
//! Inputs are mutations of good ones, the same at each run. `INPUTS=10000000 cargo test --release
//! --lib damage_tests` makes more of them; RUSTFLAGS="-C overflow-checks -C debug-assertions" keeps
//! all checks.

use std::env;

use crate::native::random::Random;
use crate::native::source::{IoOp, OpStream};
use crate::native::spec::{JobSpec, Spec};
use crate::native::tsc::Clock;
use crate::request::{self, take_id};
use crate::wire::{MAX_HEADER_BYTES, MAX_PAYLOAD_BYTES, read_frame};

/// Inputs of each kind when nobody asks for more: a second.
const DEFAULT_INPUTS: u64 = 10_000;
/// Changes to one input.
const MAX_CHANGES: u64 = 6;
/// I/Os drawn from each job that is accepted.
const DRAWS: usize = 24;
/// Jobs and files of one accepted input that are looked at.
const MAX_LOOKED_AT: usize = 4;

/// Good requests, which mutations begin with.
const REQUESTS: &[&str] = &[
    r#"{"id":1,"do":"clock"}"#,
    r#"{"id":2,"do":"facts","path":"/tmp","tools":{"fio":["--version"]}}"#,
    r#"{"id":3,"do":"watch","interval_ms":1000}"#,
    r#"{"id":4,"do":"run","argv":["fio","--version"],"stdin":"eA==","wall_limit_s":10.5}"#,
    r#"{"id":5,"do":"signal","run":4,"signal":"TERM"}"#,
    r#"{"id":6,"do":"connect","dir":"/tmp/x","name":"socket","wait_s":1.5}"#,
    r#"{"id":7,"do":"put","path":"/tmp/x/a","mode":420}"#,
    r#"{"id":8,"do":"get","path":"/tmp/x/a","max_bytes":1048576}"#,
    r#"{"id":9,"do":"scratch_open","path":"/tmp","name":"iolab-scratch-1","owner":"s"}"#,
    r#"{"id":10,"do":"metadata","dir":"/tmp/x","phase":"file-create","first_rank":0,"ranks":2,
        "total_ranks":2,"shift":0,"files_per_rank":10,"file_bytes":0,"iteration":0,
        "interval_ms":1000}"#,
];

/// Good jobs.
const SPECS: &[&str] = &[
    r#"{"format":1,"jobs":[{"files":[{"path":"a","bytes":1048576}],"rw":"randread",
        "blocks":[{"bytes":4096,"share":100}],"depth":32,"seed":1}],"runtime_s":1.5}"#,
    r#"{"format":1,"jobs":[{"files":[{"path":"a","bytes":1048576},{"path":"b","bytes":999999}],
        "rw":"randrw","read_percent":70,"blocks":[{"bytes":4096,"share":60},{"bytes":65536,
        "share":40}],"depth":4,"offset_bytes":8192,"size_bytes":500000,"io_bytes":1000000,
        "rate":{"iops":1000.5},"arrivals":"poisson","distribution":{"kind":"zipf","theta":1.1},
        "fsync_every":3,"end_fsync":true,"contents":{"kind":"random","compress_percent":50,
        "dedupe_percent":20},"seed":18446744073709551615}],"direct":false,"method":"libaio",
        "threads":2,"runtime_s":2.0,"interval_ms":500,"ledger":null}"#,
    r#"{"format":1,"jobs":[{"files":[{"path":"a","bytes":40960}],"rw":"write","blocks":
        [{"bytes":4096}],"depth":1,"io_bytes":40960,"rate":{"bytes_per_s":1e6},"arrivals":"fixed",
        "distribution":{"kind":"permutation"},"contents":{"kind":"zeros"}},
        {"files":[{"path":"b","bytes":65536,"create":true}],"rw":"randtrim","blocks":
        [{"bytes":512}],"depth":2,"io_bytes":65536,"think_us":10,"think_every":2,
        "distribution":{"kind":"zoned","zones":[{"access_percent":80,"size_percent":20},
        {"access_percent":20,"size_percent":80}]}}],"method":"auto"}"#,
    r#"{"format":1,"jobs":[{"files":[{"path":"a","bytes":1048576}],"rw":"randwrite","blocks":
        [{"bytes":4096}],"depth":8,"verify":true,"distribution":{"kind":"pareto","h":0.2}}],
        "runtime_s":1,"poll":true,"method":"io_uring","ledger":"l"}"#,
];

/// What is put in: ends of ranges, other types, other words.
const PIECES: &[&str] = &[
    "0",
    "1",
    "-1",
    "511",
    "512",
    "4097",
    "65536",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "1e308",
    "1e-308",
    "1e999",
    "0.5",
    "100",
    "101",
    "null",
    "true",
    "false",
    "\"\"",
    "[]",
    "{}",
    "[[[[[[",
    "{\"a\":",
    ",",
    ":",
    "\"",
    "\\u0000",
    "\\ud800",
    "\"read\"",
    "\"trim\"",
    "\"rw\"",
    "\"fixed\"",
    "\"uniform\"",
    "\"pareto\"",
    "\"h\":1",
    "\"theta\":0",
    "\"bytes\":0",
    "\"offset_bytes\":18446744073709551615,",
    "\"depth\":65536,",
    "\"size_bytes\":0,",
    "\"io_bytes\":1,",
    "\"rate\":{\"iops\":1e9},",
    "\"verify\":true,",
];

/// How often each outcome came: inputs that are all refused at the first byte prove nothing.
#[derive(Default)]
struct Outcomes {
    refused: u64,
    faulty: u64,
    meant: u64,
}

fn inputs() -> u64 {
    let asked = env::var("INPUTS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(DEFAULT_INPUTS)
}

/// A good input with a few changes.
fn mutated(good: &[&str], random: &mut Random) -> Vec<u8> {
    let mut bytes = good[random.next_below(good.len() as u64) as usize].as_bytes().to_vec();
    for _ in 0..=random.next_below(MAX_CHANGES) {
        change(&mut bytes, random);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.next_below(bytes.len() as u64 + 1) as usize;
    let end = (at + random.next_below(12) as usize).min(bytes.len());
    match random.next_below(8) {
        0 if at < bytes.len() => bytes[at] ^= 1 << random.next_below(8),
        1 if at < bytes.len() => bytes[at] = random.next() as u8,
        2 => drop(bytes.drain(at..end)),
        3 => {
            let copy = bytes[at..end].to_vec();
            let place = random.next_below(bytes.len() as u64 + 1) as usize;
            bytes.splice(place..place, copy);
        }
        4 => drop(bytes.splice(at..at, piece(random))),
        5 => bytes.truncate(if random.next_below(8) == 0 { at } else { bytes.len() }),
        // A number becomes another one: what is left is still JSON.
        _ => {
            let Some(from) = bytes[at..].iter().position(u8::is_ascii_digit) else { return };
            let start = at + from;
            let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            bytes.splice(start..start + length, piece(random));
        }
    }
}

fn piece(random: &mut Random) -> Vec<u8> {
    // Numbers come first, and more often than the rest.
    let most = if random.next_below(4) > 0 { 19 } else { PIECES.len() };
    PIECES[random.next_below(most as u64) as usize].as_bytes().to_vec()
}

#[test]
fn damaged_frames_and_requests_are_refused_or_meant() {
    let mut random = Random::new(0x0F_8A3E);
    let mut outcomes = Outcomes::default();
    for _ in 0..inputs() {
        let header = mutated(REQUESTS, &mut random);
        let payload = vec![7; random.next_below(20) as usize];
        let mut frame = Vec::with_capacity(8 + header.len() + payload.len());
        for part in [&header, &payload] {
            let right = part.len() as u32;
            let length = match random.next_below(16) {
                0 => random.next() as u32,
                1 => right.wrapping_add(random.next_below(9) as u32).wrapping_sub(4),
                _ => right,
            };
            frame.extend_from_slice(&length.to_le_bytes());
        }
        frame.extend_from_slice(&header);
        frame.extend_from_slice(&payload);
        let mut rest = &frame[..];
        match read_frame(&mut rest) {
            Err(fault) => {
                assert!(!fault.0.is_empty());
                outcomes.refused += 1;
            }
            Ok(None) => unreachable!("there are bytes"),
            Ok(Some(mut frame)) => {
                assert!(frame.payload.len() <= MAX_PAYLOAD_BYTES && rest.len() < MAX_HEADER_BYTES);
                let id = take_id(&mut frame.header);
                match request::parse(frame.header) {
                    Ok(_) if id.is_some() => outcomes.meant += 1,
                    Ok(_) => outcomes.faulty += 1,
                    Err(error) => {
                        assert!(!error.message.is_empty());
                        outcomes.faulty += 1;
                    }
                }
            }
        }
    }
    outcomes.assert_all_kinds();
}

#[test]
fn damaged_jobs_are_refused_or_stay_inside_their_files() {
    let mut random = Random::new(0x70_B5);
    let mut outcomes = Outcomes::default();
    let clock = Clock::of_kernel();
    for _ in 0..inputs() {
        let text = mutated(SPECS, &mut random);
        let Ok(spec) = Spec::parse(&text) else {
            outcomes.refused += 1;
            continue;
        };
        let faults = spec.faults();
        assert!(faults.iter().all(|message| message.ends_with('.')), "{faults:?}");
        if !faults.is_empty() {
            outcomes.faulty += 1;
            continue;
        }
        outcomes.meant += 1;
        for job in spec.jobs.iter().take(MAX_LOOKED_AT) {
            assert_inside(job, clock, &text);
        }
    }
    outcomes.assert_all_kinds();
}

/// Draws I/Os of a job that was accepted.
fn assert_inside(job: &JobSpec, clock: Clock, text: &[u8]) {
    let told = || String::from_utf8_lossy(text).into_owned();
    if job.files.len() > MAX_LOOKED_AT {
        return;
    }
    let targets: Vec<u32> = (0..job.files.len() as u32).collect();
    let mut source = match OpStream::new(job, &targets, clock) {
        Ok(source) => source,
        Err(faults) => {
            assert!(!faults.is_empty(), "{}", told());
            return;
        }
    };
    let mut before = 0;
    for _ in 0..DRAWS {
        let Some(IoOp { target, offset, bytes, due, .. }) = source.next() else { return };
        let file = &job.files[target as usize];
        assert!(offset >= job.offset_bytes || bytes == 0, "{offset}: {}", told());
        let end = offset.checked_add(u64::from(bytes));
        assert!(end.is_some_and(|end| end <= file.bytes), "{offset} {bytes}: {}", told());
        // An fsync is due as soon as there is room, and says 0.
        assert!(due >= before || due == 0, "{due} after {before}: {}", told());
        before = before.max(due);
    }
}

impl Outcomes {
    fn assert_all_kinds(&self) {
        let all = self.refused + self.faulty + self.meant;
        println!(
            "of {all} inputs {} were refused, {} had faults, {} were meant",
            self.refused, self.faulty, self.meant
        );
        for kind in [self.refused, self.faulty, self.meant] {
            assert!(kind * 100 > all, "hardly any input of one kind");
        }
    }
}
