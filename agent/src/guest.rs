//! The agent as the first process of a guest: it makes a system of what the machine was given, and
//! serves from a child over the guest's port. When that ends, so does the machine.
//!
//! The first file system holds this program as `/init` and the kernel's modules in `/modules`. The
//! disk `tools` becomes the root, for reading only; what is written lies in memory.

use std::ffi::CStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use std::{io, thread};

use crate::error::{Error, Result};
use crate::roots::Roots;
use crate::sys::boot::{self, Access};
use crate::sys::file::sync_all;
use crate::sys::process::{self, Pid};
use crate::sys::signal::{self, SignalEvent};
use crate::sys::time::{mono_ns, real_ns};

/// As what the kernel starts the first process of a first file system.
const INIT_PATH: &str = "/init";
const MODULES_FOLDER: &str = "/modules";
/// Names that the machine's parts bear.
const AGENT_PORT: &str = "agent";
const TOOLS_DISK: &str = "tools";
const DATA_DISK: &str = "data";
/// By which the controller calls the disk that load is put on.
const DATA_LINK: &str = "/dev/guest-data";
/// Where the tools are until they become the root.
const NEW_ROOT: &str = "/tools";
/// Whoever boots a guest speaks to it within seconds; after this long nobody will.
const CONTROLLER_PATIENCE: Duration = Duration::from_secs(600);
/// Between two looks whether somebody is at the other side.
const CONTROLLER_PAUSE: Duration = Duration::from_millis(10);
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
    process::own_pid() == 1 && name == INIT_PATH && Path::new(MODULES_FOLDER).is_dir()
}

/// Whether this is a guest that was booted for a session.
#[must_use]
pub fn is_session_guest() -> bool {
    IS_GUEST.load(Ordering::Relaxed)
}

/// Whether `path` is the data disk of a guest that was booted for a session: it was made for that
/// session, and what it holds was written by it.
#[must_use]
pub fn is_data_disk(path: &Path) -> bool {
    is_session_guest() && path == Path::new(DATA_LINK)
}

/// Make the guest's system; returns in the child that is to serve over standard input and output.
///
/// To be called first of all, while the process has one thread.
pub fn become_init() {
    let begun = catch_unwind(boot_guest)
        .unwrap_or_else(|_| Err(Error::bug("the agent failed; see the lines above")));
    match begun {
        Ok(Some(child)) => reap_until_child_ends(child),
        Ok(None) => {}
        Err(error) => {
            eprintln!("iolab-agent: the guest cannot start: {}", error.message);
            sync_and_reboot()
        }
    }
}

/// The child in the first process, None in the child.
fn boot_guest() -> Result<Option<Pid>> {
    mount_kernel_file_systems(Path::new("/"))?;
    redirect_to_console();
    apply_settings(&read_settings()?)?;
    load_modules(Path::new(MODULES_FOLDER))?;
    let roots = Roots::default();
    let port = wait_for_part("port named agent", || find_port(&roots, AGENT_PORT))?;
    let tools = wait_for_part("disk with the serial tools", || find_disk(&roots, TOOLS_DISK))?;
    if let Some(data) = find_disk(&roots, DATA_DISK) {
        symlink(&data, DATA_LINK).map_err(|error| boot_error("name the data disk", &error))?;
    }
    let port = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&port)
        .map_err(|error| boot_error(&format!("open {}", port.display()), &error))?;
    switch_root(&tools)?;
    wait_for_controller(&port)?;
    signal::block_handled(); // What ends the child is heard from the first moment on.
    let child = process::fork().map_err(|error| boot_error("start a process", &error))?;
    if child.is_none() {
        IS_GUEST.store(true, Ordering::Relaxed);
        for standard in [0, 1] {
            process::replace_standard(standard, port.as_fd())
                .map_err(|error| boot_error("speak over the port", &error))?;
        }
    }
    Ok(child)
}

fn boot_error(doing: &str, error: &io::Error) -> Error {
    Error::io(doing, error)
}

/// Mount what the kernel tells of itself, in folders below `root`.
fn mount_kernel_file_systems(root: &Path) -> Result<()> {
    mount_kernel_file_system(c"proc", &root.join("proc"))?;
    mount_kernel_file_system(c"sysfs", &root.join("sys"))?;
    mount_kernel_file_system(c"devtmpfs", &root.join("dev"))
}

/// A kernel may have done it by itself (EBUSY).
fn mount_kernel_file_system(kind: &CStr, at: &Path) -> Result<()> {
    let _ = DirBuilder::new().recursive(true).mode(0o755).create(at); // The mount tells why not.
    let source = Path::new(kind.to_str().unwrap_or("none"));
    match boot::mount(source, at, kind, Access::Full) {
        Err(error) if error.raw_os_error() != Some(libc::EBUSY) => {
            Err(boot_error(&format!("mount {} on {}", source.display(), at.display()), &error))
        }
        _ => Ok(()),
    }
}

/// The kernel gives its first process a console only if the first file system has one.
fn redirect_to_console() {
    if let Ok(console) = OpenOptions::new().read(true).write(true).open("/dev/console") {
        for standard in [0, 1, 2] {
            let _ = process::replace_standard(standard, console.as_fd()); // Else it is mute.
        }
    }
}

fn read_settings() -> Result<BootSettings> {
    let line = fs::read_to_string("/proc/cmdline")
        .map_err(|error| boot_error("read the kernel's parameters", &error))?;
    parse_settings(&line)
}

/// The time told is that of the start. A clock that is ahead is left alone: something that knows
/// better has set it.
fn apply_settings(settings: &BootSettings) -> Result<()> {
    let now = settings.real_ns.map(|start| start.saturating_add(mono_ns()));
    if let Some(now) = now.filter(|&now| now > real_ns()) {
        boot::set_real_ns(now).map_err(|error| boot_error("set the clock", &error))?;
    }
    if let Some(name) = &settings.name {
        boot::set_host_name(name).map_err(|error| boot_error("take its name", &error))?;
    }
    Ok(())
}

/// Their memory is given back: they are in the kernel now.
fn load_modules(folder: &Path) -> Result<()> {
    let order = folder.join("order");
    let text = fs::read_to_string(&order)
        .map_err(|error| boot_error(&format!("read {}", order.display()), &error))?;
    for name in parse_module_order(&text)? {
        let loaded = File::open(folder.join(&name)).and_then(|file| boot::load_module(&file));
        loaded.map_err(|error| boot_error(&format!("load the module {name}"), &error))?;
    }
    let _ = fs::remove_dir_all(folder);
    Ok(())
}

/// Make the disk of tools the root, with memory where programs write.
fn switch_root(tools: &Path) -> Result<()> {
    let root = PathBuf::from(NEW_ROOT);
    fs::create_dir(&root).map_err(|error| boot_error("make a folder", &error))?;
    boot::mount(tools, &root, c"ext4", Access::ReadOnly)
        .map_err(|error| boot_error("mount the disk of tools", &error))?;
    mount_kernel_file_systems(&root)?;
    for folder in ["tmp", "run", "dev/shm"] {
        mount_kernel_file_system(c"tmpfs", &root.join(folder))?;
    }
    boot::switch_root(&root).map_err(|error| boot_error("take the disk of tools as root", &error))
}

/// A port at which nobody is yet reads as if it had ended.
fn wait_for_controller(port: &File) -> Result<()> {
    let deadline = Instant::now() + CONTROLLER_PATIENCE;
    while !boot::has_listener(port.as_fd()).map_err(|error| boot_error("hear the port", &error))? {
        if Instant::now() >= deadline {
            let seconds = CONTROLLER_PATIENCE.as_secs();
            let message = format!("nobody called within {seconds} s");
            return Err(Error::errno(libc::ETIMEDOUT, message));
        }
        thread::sleep(CONTROLLER_PAUSE);
    }
    Ok(())
}

/// Reap every process until the child is one of them; then the machine has no more purpose.
fn reap_until_child_ends(child: Pid) -> ! {
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
            sync_and_reboot();
        }
        if let SignalEvent::End(signal) = signal::wait_for_signal(SIGNAL_PATIENCE) {
            process::kill(child, signal);
        }
    }
}

/// Write what is left, for a while, and reboot: a machine that may not reboot ends.
fn sync_and_reboot() -> ! {
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

/// Parts show within milliseconds of their driver; under emulation on a loaded node within seconds.
const PART_PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
const PART_PAUSE: Duration = Duration::from_millis(5);

/// The device file of the port of that name.
///
/// A port is there before its name is: it is looked for until both are.
fn find_port(roots: &Roots, name: &str) -> Option<PathBuf> {
    let folder = "class/virtio-ports";
    roots.sys_names(folder).into_iter().find_map(|port| {
        let own = roots.sys_value(format!("{folder}/{port}/name"))?;
        (own.trim_end() == name).then(|| PathBuf::from("/dev").join(port))
    })
}

/// The device file of the virtual disk with that serial.
fn find_disk(roots: &Roots, serial: &str) -> Option<PathBuf> {
    let disks = roots.sys_names("block").into_iter().filter(|disk| disk.starts_with("vd"));
    disks.into_iter().find_map(|disk| {
        let own = roots.sys_value(format!("block/{disk}/serial"))?;
        (own.trim_end() == serial).then(|| PathBuf::from("/dev").join(disk))
    })
}

/// Look for a part until it is there; `what` names it in the error.
fn wait_for_part(what: &str, look: impl Fn() -> Option<PathBuf>) -> Result<PathBuf> {
    let deadline = Instant::now() + PART_PATIENCE;
    loop {
        if let Some(part) = look().filter(|part| part.exists()) {
            return Ok(part);
        }
        if Instant::now() >= deadline {
            let seconds = PART_PATIENCE.as_secs();
            let message = format!("the machine showed no {what} within {seconds} s");
            return Err(Error::errno(libc::ENODEV, message));
        }
        thread::sleep(PART_PAUSE);
    }
}

/// The kernel takes no longer name of a machine.
const MAX_NAME_BYTES: usize = 64;

/// The words of the command line that are ours.
#[derive(Debug, Default, PartialEq, Eq)]
struct BootSettings {
    /// `iolab.real_ns`: the time of the node when it started the guest.
    pub real_ns: Option<u64>,
    /// `iolab.name`: what the guest is called.
    pub name: Option<String>,
}

/// Read `/proc/cmdline`. Words of others are theirs; the last of a kind counts, as for the kernel.
fn parse_settings(command_line: &str) -> Result<BootSettings> {
    let mut settings = BootSettings::default();
    for word in command_line.split_ascii_whitespace() {
        let Some((key, value)) = word.strip_prefix("iolab.").and_then(|own| own.split_once('='))
        else {
            continue;
        };
        let odd = || Error::bad_request(format!("the kernel's parameter {word:?} is no setting"));
        match key {
            "real_ns" => settings.real_ns = Some(value.parse().map_err(|_| odd())?),
            "name" if (1..=MAX_NAME_BYTES).contains(&value.len()) => {
                settings.name = Some(value.to_owned());
            }
            _ => return Err(odd()),
        }
    }
    Ok(settings)
}

/// The files of modules in the order in which they are loaded: one a line, with or without `.ko`.
fn parse_module_order(order: &str) -> Result<Vec<String>> {
    let lines = order.lines().map(str::trim).filter(|line| !line.is_empty());
    let file = |line: &str| {
        let name = line.strip_suffix(".ko").unwrap_or(line);
        if name.is_empty() || name.contains(['/', '\0']) {
            return Err(Error::bad_request(format!("{line:?} is not the name of a module")));
        }
        Ok(format!("{name}.ko"))
    };
    lines.map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;

    fn roots(tree: &TestFolder) -> Roots {
        Roots { proc: "/nowhere".into(), sys: tree.path().to_owned() }
    }

    #[test]
    fn disks_are_known_by_their_serial_and_not_by_their_place() {
        let tree = TestFolder::new();
        tree.put("block/vda/serial", "tools\n");
        tree.put("block/vdb/serial", "data");
        tree.put("block/sda/serial", "other\n");
        tree.put("block/vdc/size", "1\n");
        let found = |serial: &str| find_disk(&roots(&tree), serial);
        assert_eq!(found("tools"), Some("/dev/vda".into()));
        assert_eq!(found("data"), Some("/dev/vdb".into()));
        assert_eq!((found("other"), found("dat"), found("")), (None, None, None));
    }

    #[test]
    fn a_port_is_known_by_its_name_once_it_has_one() {
        let tree = TestFolder::new();
        tree.put("class/virtio-ports/vport0p0/dev", "1:1\n");
        assert_eq!(find_port(&roots(&tree), "agent"), None);
        tree.put("class/virtio-ports/vport0p1/name", "agent\n");
        assert_eq!(find_port(&roots(&tree), "agent"), Some("/dev/vport0p1".into()));
    }

    #[test]
    fn a_part_that_comes_late_is_waited_for() {
        let tree = TestFolder::new();
        let late = tree.path().join("part");
        thread::scope(|scope| {
            scope.spawn(|| tree.put("part", ""));
            assert_eq!(wait_for_part("part", || Some(late.clone())).unwrap(), late);
        });
    }

    #[test]
    fn our_words_are_found_among_others() {
        let line = "quiet console=ttyS0 iolab.real_ns=1700000000000000001 panic=-1 \
                    iolab.name=node1-vm03 lpj=4\n";
        let settings = parse_settings(line).unwrap();
        assert_eq!(settings.real_ns, Some(1_700_000_000_000_000_001));
        assert_eq!(settings.name.as_deref(), Some("node1-vm03"));
        assert_eq!(parse_settings("quiet").unwrap(), BootSettings::default());
    }

    #[test]
    fn a_word_of_ours_that_means_nothing_is_told() {
        let long = format!("iolab.name={}", "x".repeat(65));
        for word in ["iolab.real_ns=soon", "iolab.real_ns=-1", "iolab.name=", "iolab.x=1", &long] {
            let error = parse_settings(&format!("quiet {word}")).unwrap_err();
            assert!(error.message.contains(word), "{}", error.message);
        }
    }

    #[test]
    fn modules_keep_their_order() {
        let order = parse_module_order("virtio_ring.ko\nvirtio\n\n virtio_blk.ko \n").unwrap();
        assert_eq!(order, ["virtio_ring.ko", "virtio.ko", "virtio_blk.ko"]);
        for line in ["../x.ko", "/lib/x.ko", ".ko"] {
            assert!(parse_module_order(line).unwrap_err().message.contains(line), "{line}");
        }
    }
}
