//! The agent as the first process of a guest: it makes a system of what the machine was given, and
//! serves from a child over the guest's port. When that ends, so does the machine.
//!
//! The first file system holds this program as `/init` and the kernel's modules in `/modules`. The
//! disk `tools` becomes the root, for reading only; what is written lies in memory.

mod parts;
mod settings;

use std::ffi::CStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::roots::Roots;
use crate::sys::boot::{self, Access};
use crate::sys::file::sync_all;
use crate::sys::process::{self, Pid};
use crate::sys::signal::{self, Seen};
use crate::sys::time::{mono_ns, real_ns};
use settings::{Settings, parse_order, parse_settings};

/// As what the kernel starts the first process of a first file system.
const INIT: &str = "/init";
const MODULES: &str = "/modules";
/// Names that the machine's parts bear.
const PORT: &str = "agent";
const TOOLS: &str = "tools";
const DATA: &str = "data";
/// By which the controller calls the disk that load is put on.
pub const DATA_LINK: &str = "/dev/guest-data";
/// Where the tools are until they become the root.
const NEW_ROOT: &str = "/tools";
/// Whoever boots a guest speaks to it within seconds; after this long nobody will.
const CALL_PATIENCE: Duration = Duration::from_secs(600);
/// Between two looks whether somebody is at the other side.
const PAUSE: Duration = Duration::from_millis(10);
/// A disk that takes longer to write what is left is stuck, and nothing of it is wanted.
const SYNC_PATIENCE: Duration = Duration::from_secs(5);
/// Only signals wake the first process.
const SIGNAL_PATIENCE: Duration = Duration::from_secs(3600);

/// Whether this is a guest that was booted for a session.
static IS_GUEST: AtomicBool = AtomicBool::new(false);

/// Whether the kernel started this process as the first of a guest.
///
/// The first process of a container is another matter: it is started by its own name.
#[must_use]
pub fn is_first_process(name: &std::ffi::OsStr) -> bool {
    process::own_pid() == 1 && name == INIT && Path::new(MODULES).is_dir()
}

/// Whether this is a guest that was booted for a session.
#[must_use]
pub fn is_ours() -> bool {
    IS_GUEST.load(Ordering::Relaxed)
}

/// Whether `path` is the data disk of a guest that was booted for a session: it was made for that
/// session, and what it holds was written by it.
#[must_use]
pub fn is_data(path: &Path) -> bool {
    is_ours() && path == Path::new(DATA_LINK)
}

/// Make the guest's system; returns in the child that is to serve over standard input and output.
///
/// To be called first of all, while the process has one thread.
pub fn stand_under() {
    let begun = catch_unwind(begin)
        .unwrap_or_else(|_| Err(Error::bug("the agent failed; see the lines above")));
    match begun {
        Ok(Some(child)) => attend(child),
        Ok(None) => {}
        Err(error) => {
            eprintln!("iolab-agent: the guest cannot start: {}", error.says);
            end_machine()
        }
    }
}

/// The child in the first process, None in the child.
fn begin() -> Result<Option<Pid>> {
    mount_kernel(Path::new("/"))?;
    speak_on_console();
    settle(&settings()?)?;
    load_modules(Path::new(MODULES))?;
    let roots = Roots::default();
    let port = parts::awaited("port named agent", || parts::port(&roots, PORT))?;
    let tools = parts::awaited("disk with the serial tools", || parts::disk(&roots, TOOLS))?;
    if let Some(data) = parts::disk(&roots, DATA) {
        symlink(&data, DATA_LINK).map_err(|error| failed("name the data disk", &error))?;
    }
    let port = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&port)
        .map_err(|error| failed(&format!("open {}", port.display()), &error))?;
    enter(&tools)?;
    await_call(&port)?;
    signal::block(); // What ends the child is heard from the first moment on.
    let child = process::fork().map_err(|error| failed("start a process", &error))?;
    if child.is_none() {
        IS_GUEST.store(true, Ordering::Relaxed);
        for standard in [0, 1] {
            process::replace_standard(standard, port.as_fd())
                .map_err(|error| failed("speak over the port", &error))?;
        }
    }
    Ok(child)
}

fn failed(doing: &str, error: &io::Error) -> Error {
    Error::io(doing, error)
}

/// Mount what the kernel tells of itself, in folders below `root`.
fn mount_kernel(root: &Path) -> Result<()> {
    mount(c"proc", &root.join("proc"))?;
    mount(c"sysfs", &root.join("sys"))?;
    mount(c"devtmpfs", &root.join("dev"))
}

/// A kernel may have done it by itself (EBUSY).
fn mount(kind: &CStr, at: &Path) -> Result<()> {
    let _ = DirBuilder::new().recursive(true).mode(0o755).create(at); // The mount tells why not.
    let source = Path::new(kind.to_str().unwrap_or("none"));
    match boot::mount(source, at, kind, Access::Full) {
        Err(error) if error.raw_os_error() != Some(libc::EBUSY) => {
            Err(failed(&format!("mount {} on {}", source.display(), at.display()), &error))
        }
        _ => Ok(()),
    }
}

/// The kernel gives its first process a console only if the first file system has one.
fn speak_on_console() {
    if let Ok(console) = OpenOptions::new().read(true).write(true).open("/dev/console") {
        for standard in [0, 1, 2] {
            let _ = process::replace_standard(standard, console.as_fd()); // Else it is mute.
        }
    }
}

fn settings() -> Result<Settings> {
    let line = fs::read_to_string("/proc/cmdline")
        .map_err(|error| failed("read the kernel's parameters", &error))?;
    parse_settings(&line)
}

/// The time told is that of the start. A clock that is ahead is left alone: something that knows
/// better has set it.
fn settle(settings: &Settings) -> Result<()> {
    let now = settings.real_ns.map(|start| start.saturating_add(mono_ns()));
    if let Some(now) = now.filter(|&now| now > real_ns()) {
        boot::set_real_ns(now).map_err(|error| failed("set the clock", &error))?;
    }
    if let Some(name) = &settings.name {
        boot::set_host_name(name).map_err(|error| failed("take its name", &error))?;
    }
    Ok(())
}

/// Their memory is given back: they are in the kernel now.
fn load_modules(folder: &Path) -> Result<()> {
    let order = folder.join("order");
    let text = fs::read_to_string(&order)
        .map_err(|error| failed(&format!("read {}", order.display()), &error))?;
    for name in parse_order(&text)? {
        let loaded = File::open(folder.join(&name)).and_then(|file| boot::load_module(&file));
        loaded.map_err(|error| failed(&format!("load the module {name}"), &error))?;
    }
    let _ = fs::remove_dir_all(folder);
    Ok(())
}

/// Make the disk of tools the root, with memory where programs write.
fn enter(tools: &Path) -> Result<()> {
    let root = PathBuf::from(NEW_ROOT);
    fs::create_dir(&root).map_err(|error| failed("make a folder", &error))?;
    boot::mount(tools, &root, c"ext4", Access::ReadOnly)
        .map_err(|error| failed("mount the disk of tools", &error))?;
    mount_kernel(&root)?;
    for folder in ["tmp", "run", "dev/shm"] {
        mount(c"tmpfs", &root.join(folder))?;
    }
    boot::become_root(&root).map_err(|error| failed("take the disk of tools as root", &error))
}

/// A port at which nobody is yet reads as if it had ended.
fn await_call(port: &File) -> Result<()> {
    let deadline = Instant::now() + CALL_PATIENCE;
    while !boot::is_listened_to(port.as_fd()).map_err(|error| failed("hear the port", &error))? {
        if Instant::now() >= deadline {
            let seconds = CALL_PATIENCE.as_secs();
            let says = format!("nobody called within {seconds} s");
            return Err(Error::errno(libc::ETIMEDOUT, says));
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Reap every process until the child is one of them; then the machine has no more purpose.
fn attend(child: Pid) -> ! {
    loop {
        while let Some(ended) = process::reap() {
            if ended.pid != child {
                continue;
            }
            if let Some(code) = ended.code.filter(|&code| code != 0) {
                eprintln!("iolab-agent: the guest ends: its agent ended with code {code}");
            }
            if let Some(signal) = ended.signal {
                eprintln!("iolab-agent: the guest ends: its agent was ended by signal {signal}");
            }
            end_machine();
        }
        if let Seen::End(signal) = signal::wait(SIGNAL_PATIENCE) {
            process::kill(child, signal);
        }
    }
}

/// Write what is left, for a while, and reboot: a machine that may not reboot ends.
fn end_machine() -> ! {
    let (done, all) = channel();
    let writer = thread::Builder::new().spawn(move || {
        sync_all();
        let _ = done.send(()); // Nobody may wait any more.
    });
    if writer.is_ok() {
        let _ = all.recv_timeout(SYNC_PATIENCE);
    }
    boot::reboot();
    // Where even that fails, the kernel panics at the end of its first process, and that reboots.
    process::exit_now(1)
}
