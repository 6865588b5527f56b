//! The targets of all jobs: opened once each, and held against what the jobs want of them.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::spec::{FileSpec, JobSpec, Spec};
use crate::error::io_error_text;
use crate::probe::process::parse_process_stat;
use crate::sys::block::{
    IsDevice, TargetOpenOptions, allocate, device_bytes, device_sector_bytes, direct_alignment,
    open_target,
};
use crate::sys::thread::allow_open_files;

/// Descriptors of the engine itself beside those of its rings: pipes, the ledger, those of probes.
const RESERVED_FILES: u64 = 32;
/// Character devices that take everything or give zeros: what the generator itself can do.
const NULL_TARGETS: [&str; 2] = ["/dev/null", "/dev/zero"];

/// One open target.
#[derive(Debug)]
pub struct Target {
    /// As the spec names it.
    pub path: PathBuf,
    /// Open for all that its jobs do.
    pub file: File,
    /// Whether it is a block device.
    pub is_device: IsDevice,
    /// Whether the page cache is bypassed.
    pub is_direct: bool,
    /// What offsets and lengths must be multiples of.
    pub alignment: u64,
}

/// All targets, and which of them each file of each job is.
#[derive(Debug)]
pub struct Targets {
    /// Each once.
    pub all: Vec<Target>,
    /// By job and file: its place in `all`.
    pub by_job: Vec<Vec<u32>>,
}

/// What all jobs together want of a path.
struct TargetNeeds<'a> {
    path: &'a Path,
    bytes: u64,
    writes: bool,
    create: bool,
    jobs: Vec<usize>,
}

impl Targets {
    /// Open them all, for so many threads; or all that speaks against it.
    pub fn open(spec: &Spec, threads: usize, notes: &mut Vec<String>) -> Result<Self, Vec<String>> {
        let mut wants: Vec<TargetNeeds> = Vec::new();
        let mut of_jobs = Vec::with_capacity(spec.jobs.len());
        let mut known: HashMap<&Path, u32> = HashMap::new();
        for (nth, job) in spec.jobs.iter().enumerate() {
            let places = job.files.iter().map(|file| {
                let place = *known.entry(&file.path).or_insert_with(|| {
                    wants.push(TargetNeeds::of(file));
                    wants.len() as u32 - 1
                });
                wants[place as usize].add(nth, job, file);
                place
            });
            of_jobs.push(places.collect());
        }
        let rings = threads.min(spec.jobs.len()) as u64;
        let wanted = RESERVED_FILES + rings + wants.len() as u64;
        allow_open_files(wanted).map_err(|error| {
            vec![format!("{wanted} files cannot be open at a time: {}.", io_error_text(&error))]
        })?;
        let mut all = Vec::with_capacity(wants.len());
        let mut faults = Vec::new();
        for want in &wants {
            match want.open(spec, notes) {
                Ok(target) => {
                    faults.extend(want.mismatches(spec, &target));
                    all.push(target);
                }
                Err(fault) => faults.push(fault),
            }
        }
        if faults.is_empty() { Ok(Self { all, by_job: of_jobs }) } else { Err(faults) }
    }
}

impl<'a> TargetNeeds<'a> {
    fn of(file: &'a FileSpec) -> Self {
        Self { path: &file.path, bytes: 0, writes: false, create: false, jobs: Vec::new() }
    }

    fn add(&mut self, nth: usize, job: &JobSpec, file: &FileSpec) {
        self.bytes = self.bytes.max(file.bytes);
        self.writes |= job.changes_data();
        self.create |= file.create;
        if self.jobs.last() != Some(&nth) {
            self.jobs.push(nth);
        }
    }

    fn open(&self, spec: &Spec, notes: &mut Vec<String>) -> Result<Target, String> {
        let name = self.path.display();
        let cannot =
            |error: &io::Error| format!("{name} cannot be opened: {}.", io_error_text(error));
        let meta = match fs::metadata(self.path) {
            Err(error) if self.create && error.kind() == io::ErrorKind::NotFound => None,
            meta => Some(meta.map_err(|error| cannot(&error))?),
        };
        if meta.as_ref().is_some_and(|meta| meta.file_type().is_char_device()) {
            return self.open_null(spec, notes);
        }
        let is_device = is_device(meta.as_ref());
        if meta.as_ref().is_some_and(|meta| !meta.is_file() && is_device == IsDevice::No) {
            return Err(format!("{name} is neither a file nor a block device; give one of these."));
        }
        let alone = self.writes && is_device == IsDevice::Yes;
        let writes = self.writes || self.create;
        let links = is_device == IsDevice::Yes;
        let how = TargetOpenOptions {
            writes,
            direct: spec.direct,
            exclusive: alone,
            follow_links: links,
            create: self.create,
        };
        let file = match open_target(self.path, how) {
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY) && is_held_by_parent(self.path) =>
            {
                open_target(self.path, TargetOpenOptions { exclusive: false, ..how })
            }
            opened => opened,
        };
        let file = file.map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) if spec.direct => format!(
                "{name} takes no direct I/O; give direct = false, which measures the page cache."
            ),
            Some(libc::EBUSY) => {
                format!("{name} is mounted or held by somebody else; writes would destroy that.")
            }
            _ => cannot(&error),
        })?;
        if self.create && is_device == IsDevice::No {
            allocate(&file, self.bytes).map_err(|error| {
                format!(
                    "{name} cannot be made {} bytes long: {}.",
                    self.bytes,
                    io_error_text(&error)
                )
            })?;
        }
        let alignment = required_alignment(self.path, &file, is_device, spec.direct);
        Ok(Target {
            path: self.path.to_owned(),
            file,
            is_device,
            is_direct: spec.direct,
            alignment,
        })
    }

    fn open_null(&self, spec: &Spec, notes: &mut Vec<String>) -> Result<Target, String> {
        let name = self.path.display();
        if !NULL_TARGETS.iter().any(|known| Path::new(known) == self.path) {
            return Err(format!("{name} is a character device; give a file or a block device."));
        }
        if name.to_string() == "/dev/null" && self.jobs.iter().any(|&job| spec.jobs[job].reads()) {
            return Err("/dev/null has nothing to read; give /dev/zero.".into());
        }
        let how = TargetOpenOptions {
            writes: self.writes,
            direct: false,
            exclusive: false,
            follow_links: true,
            create: false,
        };
        let file = open_target(self.path, how)
            .map_err(|error| format!("{name} cannot be opened: {}.", io_error_text(&error)))?;
        notes.push(format!("{name} is no storage: this measures what the generator can do."));
        let path = self.path.to_owned();
        Ok(Target { path, file, is_device: IsDevice::No, is_direct: false, alignment: 1 })
    }

    /// What the jobs want that the target does not have.
    fn mismatches(&self, spec: &Spec, target: &Target) -> Vec<String> {
        let mut faults = Vec::new();
        let name = self.path.display();
        let size = match target.is_device {
            IsDevice::Yes => device_bytes(&target.file),
            IsDevice::No => target.file.metadata().map(|meta| meta.len()),
        };
        let is_null = NULL_TARGETS.iter().any(|known| Path::new(known) == self.path);
        match size {
            Ok(size) if size < self.bytes && !is_null => faults.push(format!(
                "{name} has {size} bytes, and a job wants {}; give it less or lay it out anew.",
                self.bytes
            )),
            Err(error) => faults.push(format!("{name} has no size: {}.", io_error_text(&error))),
            Ok(_) => {}
        }
        if spec.poll && !can_poll(target) {
            faults.push(format!(
                "poll, and the device of {name} has no queue to poll (io_poll is 0); leave it out."
            ));
        }
        let unit = target.alignment;
        for &nth in &self.jobs {
            let job = &spec.jobs[nth];
            for block in job.blocks.iter().filter(|block| u64::from(block.bytes) % unit != 0) {
                faults.push(format!(
                    "jobs[{nth}]: blocks of {} bytes, where direct I/O on {name} needs \
                     multiples of {unit}; give one.",
                    block.bytes
                ));
            }
            if job.offset_bytes % unit != 0 {
                faults.push(format!(
                    "jobs[{nth}]: offset_bytes is {}, where direct I/O on {name} needs a multiple \
                     of {unit}; give one.",
                    job.offset_bytes
                ));
            }
        }
        faults
    }
}

fn is_device(meta: Option<&Metadata>) -> IsDevice {
    let is = meta.is_some_and(|meta| meta.file_type().is_block_device());
    if is { IsDevice::Yes } else { IsDevice::No }
}

/// What direct I/O on a target wants; where the kernel cannot say, a sector is tried.
fn required_alignment(path: &Path, file: &File, is_device: IsDevice, direct: bool) -> u64 {
    if !direct {
        return 1;
    }
    let sector = (is_device == IsDevice::Yes).then(|| device_sector_bytes(file).ok()).flatten();
    sector.or_else(|| direct_alignment(path)).unwrap_or(512).max(1)
}

/// Whether the device below a target has queues that are polled.
fn can_poll(target: &Target) -> bool {
    let Ok(meta) = target.file.metadata() else { return false };
    let device = if target.is_device == IsDevice::Yes { meta.rdev() } else { meta.dev() };
    let (major, minor) = (libc::major(device), libc::minor(device));
    // A partition has its queue where its disk is.
    ["queue", "../queue"].iter().any(|queue| {
        fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/{queue}/io_poll"))
            .is_ok_and(|polled| polled.trim() == "1")
    })
}

/// Whether the process that started this one has the device open: an agent holds a device that
/// the engine may write to, so that nobody else can.
fn is_held_by_parent(path: &Path) -> bool {
    let Ok(device) = fs::metadata(path).map(|meta| meta.rdev()) else { return false };
    // The agent is out of sight of getppid where runs have a PID namespace.
    let own = fs::read_to_string("/proc/self/stat").ok().and_then(|text| parse_process_stat(&text));
    let Some(parent) = own.map(|place| place.parent) else { return false };
    let Ok(open) = fs::read_dir(format!("/proc/{parent}/fd")) else { return false };
    open.flatten().any(|entry| {
        fs::metadata(entry.path())
            .is_ok_and(|meta| meta.file_type().is_block_device() && meta.rdev() == device)
    })
}
