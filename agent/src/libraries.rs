//! Which libraries a load's processes have that may stand between them and the kernel: those that
//! their environment or `/etc/ld.so.preload` names, and mapped files that export functions of the C
//! library. Read from `/proc` while the load runs; nothing is executed, and all is bounded.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use crate::elf::DynamicSymbols;
use crate::probe::process::environ_rest_after;
use crate::roots::Roots;
use crate::sys::process::Pid;

/// The looks of a watcher at which libraries are read: when the load has begun, when what it loads
/// at its begin is there, and a second later.
const LOOKS: [u32; 3] = [1, 2, 6];
/// Processes that are read; of a load with more, the others are copies of these.
const MAX_PROCESSES: usize = 64;
/// Of `/proc/PID/maps`: a database in Java has some 2,000 lines.
const MAX_MAPS_BYTES: u64 = 4 << 20;
/// Different files whose symbols are read.
const MAX_FILES: usize = 2048;
/// Libraries that are told.
const MAX_TOLD: usize = 32;
/// Of `environ` and of `/etc/ld.so.preload`.
const MAX_TEXT_BYTES: u64 = 1 << 20;
/// What is told of a path.
const MAX_PATH_CHARS: usize = 1024;

/// Functions of the C library, libaio and liburing through which a load reaches its storage and
/// its clocks.
const REPLACEABLE: [&str; 76] = [
    "fsync",
    "fdatasync",
    "sync",
    "syncfs",
    "msync",
    "sync_file_range",
    "aio_fsync",
    "aio_fsync64",
    "posix_fadvise",
    "posix_fadvise64",
    "readahead",
    "madvise",
    "posix_madvise",
    "open",
    "open64",
    "openat",
    "openat64",
    "__open_2",
    "__open64_2",
    "__openat_2",
    "__openat64_2",
    "creat",
    "creat64",
    "fopen",
    "fopen64",
    "fcntl",
    "fcntl64",
    "read",
    "read64",
    "pread",
    "pread64",
    "readv",
    "preadv",
    "preadv64",
    "preadv2",
    "preadv64v2",
    "__read_chk",
    "__pread_chk",
    "__pread64_chk",
    "write",
    "pwrite",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev64",
    "pwritev2",
    "pwritev64v2",
    "aio_read",
    "aio_read64",
    "aio_write",
    "aio_write64",
    "lio_listio",
    "lio_listio64",
    "io_submit",
    "io_getevents",
    "io_pgetevents",
    "io_uring_enter",
    "io_uring_submit",
    "io_uring_submit_and_wait",
    "syscall",
    "fallocate",
    "fallocate64",
    "posix_fallocate",
    "posix_fallocate64",
    "ftruncate",
    "ftruncate64",
    "clock_gettime",
    "gettimeofday",
    "time",
    "nanosleep",
    "clock_nanosleep",
    "__clock_gettime64",
    "__fdatasync",
    "__fsync",
    "__open",
    "__open64",
];
/// What tells an allocator or a sanitizer from other libraries.
const MARKS: [&str; 15] = [
    "malloc",
    "free",
    "calloc",
    "posix_memalign",
    "mallctl",
    "tc_malloc",
    "mi_malloc",
    "rpmalloc",
    "__asan_init",
    "__tsan_init",
    "__msan_init",
    "__hwasan_init",
    "__lsan_init",
    "__ubsan_handle_add_overflow",
    "__sanitizer_set_death_callback",
];
/// The environment variables that name libraries to be loaded before all others.
const VARIABLES: [(&str, Source); 2] =
    [("LD_PRELOAD=", Source::Preload), ("LD_AUDIT=", Source::Audit)];
/// Where the loader reads more of them.
const PRELOAD_FILE: &str = "etc/ld.so.preload";
/// Where a system has its libraries.
const SYSTEM_FOLDERS: [&str; 9] = [
    "/lib/",
    "/lib64/",
    "/lib32/",
    "/usr/lib/",
    "/usr/lib64/",
    "/usr/lib32/",
    "/nix/store/",
    "/gnu/store/",
    "/snap/",
];
/// The libraries that have these functions by right: beginnings of their file's names.
const PROVIDERS: [&str; 14] = [
    "libc.so",
    "libc-",
    "libpthread",
    "librt.",
    "librt-",
    "libdl.",
    "libdl-",
    "ld-linux",
    "ld-2",
    "ld64",
    "ld-musl",
    "libc.musl",
    "libaio.so",
    "liburing",
];

/// How a library came into a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Source {
    /// Named in the environment variable of that name.
    #[serde(rename = "LD_PRELOAD")]
    Preload,
    /// The same.
    #[serde(rename = "LD_AUDIT")]
    Audit,
    /// Named in that file.
    #[serde(rename = "/etc/ld.so.preload")]
    File,
    /// Mapped, whatever named it.
    #[serde(rename = "mapped")]
    Mapped,
    /// The program itself.
    #[serde(rename = "program")]
    Program,
}

/// A library that may stand between a load and the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoadedLibrary {
    /// Its path, or its name where it is not loaded.
    pub path: String,
    /// How it came in.
    pub source: Source,
    /// Whether it is mapped: the loader leaves out what it cannot load.
    pub is_loaded: bool,
    /// Functions that it exports, of those which reach storage and clocks, and marks.
    pub exports: Vec<&'static str>,
    /// Why its symbols could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// What was looked at, and what was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LibraryUse {
    /// Processes that were read.
    pub processes: usize,
    /// Different files that were mapped.
    pub files: usize,
    /// How long all looks took.
    pub spent_ns: u64,
    /// In the order of their paths.
    pub libraries: Vec<LoadedLibrary>,
}

/// A mapped file: its device as the maps tell it, and its inode.
type FileIdentity = (u64, u64);

/// What is known of a file that was read.
#[derive(Clone, Default)]
struct FileSymbols {
    exports: Vec<&'static str>,
    fault: Option<String>,
}

/// Reads the libraries of a load's processes at a few of the looks of its watcher.
#[derive(Default)]
pub struct LibraryWatcher {
    looks: u32,
    processes: HashSet<Pid>,
    symbols: HashMap<FileIdentity, FileSymbols>,
    told: BTreeMap<(String, Source), LoadedLibrary>,
    spent_ns: u64,
}

/// A file of `/proc/PID/maps`, with an address range that it is mapped at.
struct MappedFile {
    identity: FileIdentity,
    range: String,
    path: String,
}

impl LibraryWatcher {
    /// Count a look, and read the processes if it is one of those at which that is due.
    pub fn look_if_due(&mut self, roots: &Roots, processes: &[Pid]) {
        self.looks += 1;
        if !LOOKS.contains(&self.looks) {
            return;
        }
        let begun = Instant::now();
        for &pid in processes {
            if self.processes.contains(&pid) || self.processes.len() < MAX_PROCESSES {
                self.look_at(&roots.proc.join(pid.to_string()), pid);
            }
        }
        self.spent_ns += begun.elapsed().as_nanos() as u64;
    }

    /// What was found; None where no process could be read.
    #[must_use]
    pub fn result(&self) -> Option<LibraryUse> {
        (!self.processes.is_empty()).then(|| LibraryUse {
            processes: self.processes.len(),
            files: self.symbols.len(),
            spent_ns: self.spent_ns,
            libraries: self.told.values().take(MAX_TOLD).cloned().collect(),
        })
    }

    fn look_at(&mut self, folder: &Path, pid: Pid) {
        let Some(maps) = read_bounded(&folder.join("maps"), MAX_MAPS_BYTES) else { return };
        let Ok(program) = fs::read_link(folder.join("exe")) else { return };
        self.processes.insert(pid);
        let files = mapped_files(&String::from_utf8_lossy(&maps));
        let named = named_libraries(folder);
        let mut named_and_mapped = vec![false; named.len()];
        for file in files {
            let found = self.symbols_of(folder, &file).clone();
            if found.fault.is_some() && fs::read_link(folder.join("exe")).is_err() {
                // The process has ended meanwhile, and its files with it: they may be as ever.
                self.symbols.remove(&file.identity);
                return;
            }
            let place = named.iter().position(|(name, _)| is_named(&file.path, name));
            let source = match place {
                Some(place) => {
                    named_and_mapped[place] = true;
                    named[place].1
                }
                None if Path::new(&file.path) == program => Source::Program,
                None => Source::Mapped,
            };
            if place.is_some() || is_suspect(&file.path, &program, source, &found) {
                let FileSymbols { exports, fault } = found;
                let path = shortened_path(&file.path);
                self.tell(LoadedLibrary { path, source, is_loaded: true, exports, fault });
            }
        }
        for ((name, source), _) in
            named.iter().zip(named_and_mapped).filter(|(_, is_mapped)| !is_mapped)
        {
            self.tell(LoadedLibrary {
                path: shortened_path(name),
                source: *source,
                is_loaded: false,
                exports: Vec::new(),
                fault: None,
            });
        }
    }

    /// A library that is loaded anywhere stays told so.
    fn tell(&mut self, library: LoadedLibrary) {
        let key = (library.path.clone(), library.source);
        let is_better = self.told.get(&key).is_none_or(|old| !old.is_loaded);
        if is_better && (self.told.len() < MAX_TOLD || self.told.contains_key(&key)) {
            self.told.insert(key, library);
        }
    }

    fn symbols_of(&mut self, folder: &Path, file: &MappedFile) -> &FileSymbols {
        let is_full = self.symbols.len() >= MAX_FILES;
        self.symbols.entry(file.identity).or_insert_with(|| {
            if is_full {
                return FileSymbols::default();
            }
            match open_mapped(folder, file).and_then(|open| exported_names(&open)) {
                Ok(exports) => FileSymbols { exports, fault: None },
                Err(error) => FileSymbols { exports: Vec::new(), fault: Some(error.to_string()) },
            }
        })
    }
}

/// Whether a mapped file that nothing names is told: one that exports functions of the C library
/// without being it, or a sanitizer; a program only if it is one with a sanitizer.
fn is_suspect(path: &str, program: &Path, source: Source, found: &FileSymbols) -> bool {
    let is_sanitizer =
        found.exports.iter().any(|name| name.starts_with("__") && MARKS.contains(name));
    if source == Source::Program || is_sanitizer {
        return is_sanitizer;
    }
    let replaces = found.exports.iter().any(|name| REPLACEABLE.contains(name));
    let is_library = Path::new(path).extension().is_some() || path.contains(".so");
    if found.fault.is_some() {
        // What is mapped and cannot be read is told where it calls itself a library.
        return path.contains(".so");
    }
    is_library && replaces && !is_provider(path, program)
}

/// The C library itself, where a system or the program has it.
fn is_provider(path: &str, program: &Path) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_own = program
        .parent()
        .and_then(Path::parent)
        .filter(|folder| folder.components().count() > 1)
        .is_some_and(|folder| Path::new(path).starts_with(folder));
    PROVIDERS.iter().any(|start| name.starts_with(start))
        && (is_own || SYSTEM_FOLDERS.iter().any(|folder| path.starts_with(folder)))
}

/// The files of executable mappings, each once, the vdso and such left out.
fn mapped_files(maps: &str) -> Vec<MappedFile> {
    let mut files: Vec<MappedFile> = Vec::new();
    for line in maps.lines() {
        let Some(file) = mapped_file(line) else { continue };
        if files.iter().all(|other| other.identity != file.identity) {
            files.push(file);
        }
    }
    files
}

/// `7f00-7f01 r-xp 00001000 fe:00 4711    /usr/lib/libx.so`
fn mapped_file(line: &str) -> Option<MappedFile> {
    let mut rest = line;
    let mut field = || {
        let (word, after) = rest.trim_start().split_once(' ')?;
        rest = after;
        Some(word)
    };
    let (range, rights, _, device, inode) = (field()?, field()?, field()?, field()?, field()?);
    let path = rest.trim_start();
    if !rights.contains('x') || !path.starts_with('/') {
        return None;
    }
    let (major, minor) = device.split_once(':')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let identity = (number(major)? << 32 | number(minor)?, inode.parse().ok()?);
    Some(MappedFile { identity, range: range.to_owned(), path: path.to_owned() })
}

/// The mapped file itself: by the kernel's own link where that may be followed, else by its path as
/// the process sees it, if that still leads to the same file.
fn open_mapped(folder: &Path, file: &MappedFile) -> io::Result<File> {
    let open = |path: &Path, flags: i32| {
        OpenOptions::new()
            .read(true)
            .custom_flags(flags | libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)
    };
    let by_path = folder.join("root").join(file.path.trim_start_matches('/'));
    let found = open(&by_path, libc::O_NOFOLLOW)
        .ok()
        .filter(|open| open.metadata().is_ok_and(|meta| meta.ino() == file.identity.1));
    let open = match found {
        Some(open) => open,
        None => open(&folder.join("map_files").join(&file.range), 0)?,
    };
    if !open.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no regular file"));
    }
    Ok(open)
}

/// Which of the names that matter a file exports.
fn exported_names(file: &File) -> io::Result<Vec<&'static str>> {
    let Some(mut symbols) = DynamicSymbols::open(file)? else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    for name in REPLACEABLE.into_iter().chain(MARKS) {
        if symbols.exports(name)? {
            names.push(name);
        }
    }
    Ok(names)
}

/// The libraries that the loader was told to load first, as they are written.
fn named_libraries(folder: &Path) -> Vec<(String, Source)> {
    let environ = read_bounded(&folder.join("environ"), MAX_TEXT_BYTES).unwrap_or_default();
    let mut named = Vec::new();
    for (beginning, source) in VARIABLES {
        let value = environ_rest_after(&environ, beginning).unwrap_or_default();
        named.extend(split_names(value).map(|name| (name, source)));
    }
    let listed = read_bounded(&folder.join("root").join(PRELOAD_FILE), MAX_TEXT_BYTES);
    for line in listed.unwrap_or_default().split(|&byte| byte == b'\n') {
        let line = line.split(|&byte| byte == b'#').next().unwrap_or_default();
        named.extend(split_names(line).map(|name| (name, Source::File)));
    }
    named.truncate(MAX_TOLD);
    named
}

fn split_names(text: &[u8]) -> impl Iterator<Item = String> {
    text.split(|byte| b": \t".contains(byte))
        .filter(|name| !name.is_empty())
        .map(|name| String::from_utf8_lossy(name).into_owned())
}

/// Whether a mapped file is the one that a name means: its path, or a link to it beside other
/// versions (`libx.so` is `libx.so.1.2`).
fn is_named(path: &str, name: &str) -> bool {
    if path == name {
        return true;
    }
    let stem = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        name.split_once(".so").map_or(name, |(stem, _)| stem).to_owned()
    };
    let is_same_file = || {
        let target = fs::canonicalize(OsStr::from_bytes(name.as_bytes()));
        target.is_ok_and(|target| target == Path::new(path))
    };
    (name.contains('/') && is_same_file()) || stem(path) == stem(name)
}

fn read_bounded(path: &Path, max_bytes: u64) -> Option<Vec<u8>> {
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn shortened_path(path: &str) -> String {
    path.chars().take(MAX_PATH_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;

    /// A process with these mappings and this environment, in a tree of its own.
    fn process(maps: &str, environ: &str) -> (TestFolder, Roots) {
        let tree = TestFolder::new();
        tree.put("proc/7/maps", maps);
        tree.put("proc/7/environ", &environ.replace(' ', "\0"));
        std::os::unix::fs::symlink("/usr/bin/fio", tree.path().join("proc/7/exe")).unwrap();
        let roots = Roots { proc: tree.path().join("proc"), sys: tree.path().join("sys") };
        (tree, roots)
    }

    fn look(roots: &Roots) -> LibraryUse {
        let mut watcher = LibraryWatcher::default();
        watcher.look_if_due(roots, &[7]);
        watcher.result().unwrap()
    }

    #[test]
    fn the_loaders_own_file_is_read_as_the_process_sees_it() {
        let (tree, roots) = process("", "HOME=/ LD_PRELOAD=a.so:/b.so");
        let root = "proc/7/root"; // what the process has as its root
        let file = "# comment /no.so\n/c.so  /d.so # /e.so\n";
        tree.put(&format!("{root}/etc/ld.so.preload"), file);
        let told: Vec<(String, Source)> =
            look(&roots).libraries.into_iter().map(|one| (one.path, one.source)).collect();
        let (variable, file) = (Source::Preload, Source::File);
        let expected = [("/b.so", variable), ("/c.so", file), ("/d.so", file), ("a.so", variable)];
        assert_eq!(told, expected.map(|(path, source)| (path.to_owned(), source)));
    }

    #[test]
    fn mapped_files_are_told_once_and_data_not_at_all() {
        let maps = "\
            1000-2000 r-xp 00000000 fe:01 11 /x/libone.so\n\
            2000-3000 r--p 00000000 fe:01 12 /x/data.so\n\
            3000-4000 r-xp 00001000 fe:01 11 /x/libone.so\n\
            4000-5000 r-xp 00000000 00:00 0 [vdso]\n\
            odd line\n";
        let files = mapped_files(maps);
        assert_eq!(files.len(), 1);
        assert_eq!(
            (files[0].path.as_str(), files[0].identity),
            ("/x/libone.so", (0xfe << 32 | 1, 11))
        );
    }

    #[test]
    fn a_library_that_cannot_be_read_is_told_with_the_reason() {
        let (tree, roots) =
            process("1000-2000 r-xp 00000000 fe:01 11 /x/libone.so (deleted)\n", "");
        let told = look(&roots).libraries;
        assert_eq!(told.len(), 1);
        assert!(told[0].fault.is_some() && told[0].is_loaded);
        drop(tree);
    }

    #[test]
    fn only_the_systems_and_the_programs_own_libraries_may_have_these_functions() {
        let program = Path::new("/opt/tool/bin/fio");
        for path in [
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "/lib/ld-musl-x86_64.so.1",
            "/opt/tool/lib/libaio.so.1",
        ] {
            assert!(is_provider(path, program), "{path}");
        }
        for path in ["/tmp/libc.so.6", "/usr/lib/libeatmydata.so", "/opt/tool/lib/libshim.so"] {
            assert!(!is_provider(path, program), "{path}");
        }
    }

    #[test]
    fn a_name_means_the_file_that_it_links_to() {
        assert!(is_named("/usr/lib/libx.so.1.2", "libx.so.1"));
        assert!(is_named("/a/b.so", "/a/b.so"));
        assert!(!is_named("/usr/lib/liby.so.1", "libx.so.1"));
    }

    #[test]
    fn thousands_of_processes_and_names_are_bounded() {
        let names = (0..1000).map(|nth| format!("/l{nth}.so")).collect::<Vec<_>>().join(":");
        let (_tree, roots) = process("", &format!("LD_PRELOAD={names}"));
        assert_eq!(look(&roots).libraries.len(), MAX_TOLD);
    }
}
