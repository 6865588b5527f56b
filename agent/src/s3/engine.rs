//! Tasks that put and take objects: a load that is measured, and the layout before it.

use std::collections::HashMap;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Client, RequestFault};
use super::counters::{Operation, Row, ThreadCounters, sum_of};
use super::dataset::{DataSet, ObjectRange};
use super::endpoint::{Server, find_servers};
use super::error_class::ErrorCounts;
use super::listing::{ListQuery, PAGE_KEYS, list_page};
use super::load::{Load, MissingObjects};
use super::report::{Workers, report_load};
use super::spec::{OperationKind, OperationShare, PutKeys, Retries, Spec};
use super::tasks::sentences;
use super::worker::Worker;
use crate::native::lines::{KindCounts, print_line, requested_start_real_ns};
use crate::native::start::{head, no_thread, reserve_files, set_up_process, wait_for_start};
use crate::sys::block::allowed_processors;
use crate::sys::thread::lock;
use crate::sys::time::{SECOND_NS, real_ns};

/// Descriptors beside one for each connection.
const RESERVED_FILES: u64 = 64;
/// A layout is no measurement: it tries again where a server is busy.
const LAYOUT_RETRIES: Retries = Retries { max: 20, base_ms: 100, cap_ms: 5000 };
/// Longer than any layout takes.
const LAYOUT_RUNTIME_S: f64 = 1e7;
/// Between two lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// The threads of a load, set up.
pub(super) struct Prepared {
    pub(super) load: Arc<Load>,
    pub(super) workers: Vec<Worker>,
    pub(super) counters: Vec<Arc<ThreadCounters>>,
}

/// Measure what the spec asks for.
pub fn run_load(spec: &Spec) -> Result<(), Vec<String>> {
    let Some(set) = &spec.objects else { return Err(vec!["objects is missing.".into()]) };
    let servers = find_servers(&spec.target)?;
    let prepared = prepare(spec, set, servers, None)?;
    let clock = prepared.load.clock;
    let load = prepared.load;
    let connections: usize = prepared.workers.iter().map(Worker::connections).sum();
    let addresses: usize = load.servers.iter().map(|server| server.addresses.len()).sum();
    let facts = prepared.workers.first().and_then(Worker::tls_facts);
    let mut head = head(clock, "epoll", false, prepared.workers.len());
    head["connections"] = connections.into();
    head["addresses"] = addresses.into();
    head["tls"] =
        json!(facts.map(|facts| json!({ "version": facts.version, "cipher": facts.cipher })));
    print_line(&head);
    let start_real_ns = wait_for_start(&load.halt, requested_start_real_ns());
    let now = clock.ticks();
    let start = now + clock.ticks_of(start_real_ns.saturating_sub(real_ns()));
    let deadline = start + clock.ticks_of((load.spec.runtime_s * SECOND_NS as f64) as u64);
    let workers = start_workers(prepared.workers, prepared.counters, start, deadline)?;
    report_load(&load, &workers, start, start_real_ns);
    Ok(())
}

pub(super) fn prepare(
    spec: &Spec,
    set: &DataSet,
    servers: Vec<Server>,
    missing: Option<MissingObjects>,
) -> Result<Prepared, Vec<String>> {
    let one_fault = |fault: String| vec![fault];
    let connections = u64::from(spec.concurrency) * u64::from(spec.parts_in_flight);
    let files = connections + RESERVED_FILES;
    reserve_files(files).map_err(one_fault)?;
    let (clock, halt) = set_up_process().map_err(one_fault)?;
    let threads = spec.threads.map_or_else(allowed_processors, |threads| threads as usize);
    let threads = threads.min(spec.concurrency as usize).max(1);
    let load = Arc::new(Load::new(spec, set, servers, missing, halt, clock));
    let (mut workers, mut counters) = (Vec::new(), Vec::new());
    for nth in 0..threads {
        let own = Arc::new(ThreadCounters::new(spec, load.servers.len()));
        counters.push(Arc::clone(&own));
        workers.push(Worker::set_up(&load, own, (nth, threads)).map_err(one_fault)?);
    }
    Ok(Prepared { load, workers, counters })
}

pub(super) fn start_workers(
    workers: Vec<Worker>,
    counters: Vec<Arc<ThreadCounters>>,
    start: u64,
    deadline: u64,
) -> Result<Workers, Vec<String>> {
    let (tell, ended) = channel();
    for worker in workers {
        let tell = tell.clone();
        thread::Builder::new()
            .name("objects".into())
            .spawn(move || tell.send(worker.run(start, deadline)))
            .map_err(|error| vec![no_thread(&error)])?;
    }
    Ok(Workers { counters, ended })
}

/// Put the objects of this host's part that are missing or of another size.
pub fn lay_out(spec: &Spec) -> Result<(), Vec<String>> {
    let Some(set) = &spec.objects else { return Err(vec!["objects is missing.".into()]) };
    let began = Instant::now();
    let servers = find_servers(&spec.target)?;
    let range = spec.own_range();
    let found = find_objects(spec, set, &servers, range).map_err(|fault| sentences(&fault))?;
    let is_missing = |number: &u64| found.sizes.get(number) != Some(&set.object_bytes(*number));
    let numbers: Vec<u64> = (range.first..range.first + range.count).filter(is_missing).collect();
    let found_objects = range.count - numbers.len() as u64;
    let bytes = set.sums(range).0;
    let missing_bytes: u64 = numbers.iter().map(|&number| set.object_bytes(number)).sum();
    let mut layout = json!({
        "objects": range.count,
        "bytes": bytes,
        "found_objects": found_objects,
        "found_bytes": bytes - missing_bytes,
        "written_objects": 0,
        "written_bytes": 0,
        "failed": 0,
        "requests": { "list": found.pages },
        "retries": {},
        "examples": [],
    });
    if !numbers.is_empty() {
        put_missing(spec, set, servers, numbers, &mut layout)?;
    }
    layout["seconds"] = began.elapsed().as_secs_f64().into();
    print_line(&json!({ "layout": layout }));
    Ok(())
}

/// What is there of a range of objects.
struct FoundObjects {
    sizes: HashMap<u64, u64>,
    pages: u64,
}

/// List each prefix of the data set as far as this host's part goes, several at a time.
fn find_objects(
    spec: &Spec,
    set: &DataSet,
    servers: &[Server],
    range: ObjectRange,
) -> Result<FoundObjects, RequestFault> {
    let folders = Mutex::new(0..set.prefixes);
    let count = (spec.concurrency as usize).min(set.prefixes as usize).min(16);
    let mut clients = Client::spread_over_servers(spec, servers, count);
    let outcomes: Vec<Result<FoundObjects, RequestFault>> = thread::scope(|scope| {
        let listers: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                scope.spawn(|| {
                    let mut found = FoundObjects { sizes: HashMap::new(), pages: 0 };
                    loop {
                        let next = lock(&folders).next();
                        let Some(folder) = next else { return Ok(found) };
                        list_folder(client, set, range, folder, &mut found)?;
                    }
                })
            })
            .collect();
        listers.into_iter().filter_map(|lister| lister.join().ok()).collect()
    });
    let mut all = FoundObjects { sizes: HashMap::new(), pages: 0 };
    for outcome in outcomes {
        let found = outcome?;
        all.sizes.extend(found.sizes);
        all.pages += found.pages;
    }
    Ok(all)
}

fn list_folder(
    client: &mut Client,
    set: &DataSet,
    range: ObjectRange,
    folder: u32,
    found: &mut FoundObjects,
) -> Result<(), RequestFault> {
    let prefix = set.folder(folder);
    // The first object of the range that may be here; keys are in the order of numbers.
    let steps = u64::from(set.prefixes);
    let first = range.first + (u64::from(folder) + steps - range.first % steps) % steps;
    let end = range.first + range.count;
    if first >= end {
        return Ok(());
    }
    let mut start_after = String::new();
    if let Some(before) = first.checked_sub(steps) {
        set.push_key(&set.prefix, before, &mut start_after);
    }
    let left = (end - first).div_ceil(steps);
    let page = u32::try_from(left.min(u64::from(PAGE_KEYS))).unwrap_or(PAGE_KEYS);
    let mut query = ListQuery {
        prefix: &prefix,
        start_after: &start_after,
        page: Some(page),
        ..ListQuery::default()
    };
    loop {
        let page = list_page(client, &query)?;
        found.pages += 1;
        let mut is_past = page.objects.is_empty();
        for (key, bytes) in &page.objects {
            match set.number_of(key) {
                Some(number) if number < end => {
                    found.sizes.insert(number, *bytes);
                }
                Some(_) => is_past = true,
                None => {}
            }
        }
        if is_past || page.token.is_none() || page.token == query.token {
            return Ok(());
        }
        query.token = page.token;
    }
}

fn put_missing(
    spec: &Spec,
    set: &DataSet,
    servers: Vec<Server>,
    numbers: Vec<u64>,
    layout: &mut Value,
) -> Result<(), Vec<String>> {
    let retries = if spec.retries.max > 0 { spec.retries } else { LAYOUT_RETRIES };
    let put = OperationShare { kind: OperationKind::Put, share: 1.0 };
    let spec = Spec {
        operations: vec![put],
        put_keys: PutKeys::Overwrite,
        rate: None,
        runtime_s: LAYOUT_RUNTIME_S,
        retries,
        ..spec.clone()
    };
    let prepared = prepare(&spec, set, servers, Some(MissingObjects { numbers }))?;
    let clock = prepared.load.clock;
    let load = prepared.load;
    let start = clock.ticks();
    let deadline = start + clock.ticks_of((spec.runtime_s * SECOND_NS as f64) as u64);
    let workers = start_workers(prepared.workers, prepared.counters, start, deadline)?;
    let threads = &workers.counters;
    let mut ended = 0;
    while ended < threads.len() {
        if workers.ended.recv_timeout(PROGRESS_INTERVAL).is_ok() {
            ended += 1;
            continue;
        }
        let (objects, bytes) = put_sums(threads);
        print_line(&json!({ "progress": { "objects": objects, "bytes": bytes } }));
    }
    let (objects, bytes) = put_sums(threads);
    let count = |row: Row| {
        KindCounts::of(threads.iter().filter_map(|thread| thread.row(row)))
            .map_or(0, |counts| counts.count())
    };
    let mut failed = ErrorCounts::default();
    let mut repeats = ErrorCounts::default();
    for thread in threads {
        for attempts in &thread.attempts {
            attempts.failed.add_to(&mut failed);
        }
        thread.retried.add_to(&mut repeats);
    }
    layout["written_objects"] = objects.into();
    layout["written_bytes"] = bytes.into();
    layout["failed"] = failed.total().into();
    layout["retries"] = json!(repeats.named().collect::<HashMap<_, _>>());
    layout["examples"] = json!(load.examples().0);
    for (name, row) in [
        ("put", Row::PutAttempt),
        ("part", Row::Part),
        ("create", Row::UploadCreate),
        ("complete", Row::UploadComplete),
    ] {
        layout["requests"][name] = count(row).into();
    }
    layout["uploads_left"] = sum_of(threads, |thread| &thread.uploads_left).into();
    layout["interrupted"] = load.halt.is_requested().into();
    Ok(())
}

fn put_sums(threads: &[Arc<ThreadCounters>]) -> (u64, u64) {
    let mut sums = (0, 0);
    for operation in [Operation::Put, Operation::Multipart] {
        let counters = threads.iter().filter_map(|thread| thread.row(operation.row()));
        if let Some(counts) = KindCounts::of(counters) {
            sums.0 += counts.count();
            sums.1 += counts.bytes();
        }
    }
    sums
}
