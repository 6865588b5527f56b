//! The actions that iolab knows by name: each becomes steps with the steps that undo it, or is
//! refused where it would hit what is not the study's.

use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::bound::{IoRates, limit_writes};
use crate::device::kernel_name;
use crate::error::{Context, Error, Result};
use crate::facts::disks::{device_chain, visible_mounts, whole_disk};
use crate::facts::layers::nearest_devices;
use crate::probe::mountinfo::mount_of;
use crate::roots::{Roots, read_text, read_value};
use crate::sys::mount::loop_file;
use crate::sys::process::{Pid, own_pid, try_signal};
use crate::sys::socket::interface_addresses;
use crate::tree::process_info;
use crate::undo::{Execute, Step, StepSignal, process_in_file};

/// What is left of a loop device that is detached: its first block, as one that is mounted is kept.
const DETACHED_BYTES: u64 = 4096;
const PROGRAM_FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// Of the kernel's lists of routes: by way of a gateway.
const ROUTE_HAS_GATEWAY: u32 = 2;
/// Of its list for IPv6: announced by a router, which does so again.
const ROUTE_IS_ANNOUNCED: u32 = 0x0004_0000;

/// An action by its name.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Have a process stand still: by its pid file, or all of a systemd unit.
    Stop {
        /// An absolute path, or the name of a unit.
        process: String,
    },
    /// Kill it.
    Kill {
        /// An absolute path, or the name of a unit.
        process: String,
    },
    /// Have every I/O of a loop device fail that lies beyond its first block.
    Detach {
        /// The loop device.
        device: PathBuf,
    },
    /// Have the kernel refuse every I/O of a SCSI or SATA disk.
    Offline {
        /// The disk.
        device: PathBuf,
    },
    /// Set a network interface down.
    CutLink {
        /// Its name.
        interface: String,
        /// After how long this host undoes it by itself.
        #[serde(default)]
        undo_after_s: Option<f64>,
    },
    /// Limit what a control group may ask of a device.
    Limit {
        /// Its folder below /sys/fs/cgroup.
        group: PathBuf,
        /// The device.
        device: PathBuf,
        /// How much; what it leaves out stays as it is.
        rates: IoRates,
    },
}

/// What is the study's on this host.
#[derive(Debug, Default)]
pub struct StudyScope<'a> {
    /// Directories and devices that are measured.
    pub targets: &'a [PathBuf],
    /// Names of devices that the inventory gives to the host.
    pub members: &'a [String],
    /// For how long this agent bears the silence of its controller.
    pub lease_s: f64,
    /// For how long a program of an action may run, as its controller waits for it.
    pub timeout_s: f64,
}

/// What an action does to this host now, and what undoes it.
#[derive(Debug, PartialEq, Serialize)]
pub struct ResolvedAction {
    /// In their order.
    pub steps: Vec<Step>,
    /// In their order; empty where nothing does.
    pub undo: Vec<Step>,
}

impl Action {
    /// Its steps; an error where it cannot be done, or would hit what is not the study's.
    pub fn resolve(&self, scope: &StudyScope, execute: Execute) -> Result<ResolvedAction> {
        let roots = Roots::default();
        match self {
            Self::Stop { process } => stop_or_kill(process, StepSignal::Stop, scope, execute),
            Self::Kill { process } => stop_or_kill(process, StepSignal::Kill, scope, execute),
            Self::Detach { device } => detach(&roots, device, scope),
            Self::Offline { device } => offline(&roots, device, scope),
            Self::CutLink { interface, undo_after_s } => {
                cut_link(&roots, interface, *undo_after_s, scope)
            }
            Self::Limit { group, device, rates } => limit(&roots, group, device, rates, scope),
        }
    }
}

fn stop_or_kill(
    process: &str,
    signal: StepSignal,
    scope: &StudyScope,
    execute: Execute,
) -> Result<ResolvedAction> {
    if process.starts_with('/') {
        return signal_process_of_file(Path::new(process), signal);
    }
    stop_or_kill_unit(&program("systemctl")?, process, signal, scope, execute)
}

fn stop_or_kill_unit(
    systemctl: &str,
    unit: &str,
    signal: StepSignal,
    scope: &StudyScope,
    execute: Execute,
) -> Result<ResolvedAction> {
    let call = |words: &[&str]| command_step(systemctl, words, scope.timeout_s);
    let is_active = [systemctl, "is-active", "--", unit].map(str::to_owned);
    execute(&is_active, scope.timeout_s).map_err(|error| {
        let message = format!("no unit {unit:?} of systemd is known to run: {}", error.message);
        Error::errno(libc::ESRCH, message)
    })?;
    let kill = |name: &str| call(&["kill", &format!("--signal={name}"), "--", unit]);
    Ok(match signal {
        StepSignal::Stop => ResolvedAction { steps: vec![kill("STOP")], undo: vec![kill("CONT")] },
        _ => ResolvedAction { steps: vec![kill("KILL")], undo: vec![call(&["start", "--", unit])] },
    })
}

/// A step that runs a program with these words.
fn command_step(program: &str, words: &[&str], timeout_s: f64) -> Step {
    let argv = std::iter::once(program).chain(words.iter().copied());
    Step::Command { argv: argv.map(str::to_owned).collect(), timeout_s }
}

fn signal_process_of_file(path: &Path, signal: StepSignal) -> Result<ResolvedAction> {
    let process = process_in_file(path)?;
    if own_ancestors().contains(&process.pid) {
        let message =
            format!("process {} of {} is iolab's own way here", process.pid, path.display());
        return Err(Error::refused(message));
    }
    try_signal(process.pid).context(format_args!(
        "signal process {} of {}",
        process.pid,
        path.display()
    ))?;
    let (pid, start_ticks) = (process.pid, process.start_ticks);
    let step = |signal| Step::Signal { pid, start_ticks, signal };
    let undo = if signal == StepSignal::Stop { vec![step(StepSignal::Cont)] } else { vec![] };
    Ok(ResolvedAction { steps: vec![step(signal)], undo })
}

/// This process and all above it.
fn own_ancestors() -> BTreeSet<Pid> {
    let mut found = BTreeSet::new();
    let mut pid = own_pid();
    while pid > 0 && found.insert(pid) {
        pid = process_info(pid).map_or(0, |info| info.parent);
    }
    found
}

fn detach(roots: &Roots, device: &Path, scope: &StudyScope) -> Result<ResolvedAction> {
    let name = breakable_device(roots, device, scope)?;
    if !roots.block_folder(&name).join("loop").exists() {
        return Err(Error::bad_request(format!(
            "{} is no loop device with a file",
            device.display()
        )));
    }
    let file = loop_file(device).context(format_args!("ask {}", device.display()))?;
    let step = |bytes| Step::LoopLimit {
        device: device.to_owned(),
        file_device: file.device,
        file_inode: file.inode,
        bytes,
    };
    Ok(ResolvedAction { steps: vec![step(DETACHED_BYTES)], undo: vec![step(file.limit_bytes)] })
}

fn offline(roots: &Roots, device: &Path, scope: &StudyScope) -> Result<ResolvedAction> {
    let name = breakable_device(roots, device, scope)?;
    let path = roots.sys.join("block").join(&name).join("device/state");
    let state = read_value(&path);
    if state.as_deref() != Some("running") {
        let state = state.unwrap_or_else(|| "missing".into());
        let message = format!(
            "the state of {name} in {} is {state}, and must be 'running' (whole SCSI and SATA disks have one)",
            path.display()
        );
        return Err(Error::bad_request(message));
    }
    let write = |text: &str| Step::Write { path: path.clone(), text: text.to_owned() };
    Ok(ResolvedAction { steps: vec![write("offline")], undo: vec![write("running")] })
}

fn cut_link(
    roots: &Roots,
    interface: &str,
    undo_after_s: Option<f64>,
    scope: &StudyScope,
) -> Result<ResolvedAction> {
    let lease_s = scope.lease_s;
    let net = roots.proc.join("thread-self/net");
    let addresses = interface_addresses().context("list the addresses of this host")?;
    let Some(own) = addresses.get(interface) else {
        let links = read_text(&net.join("dev")).unwrap_or_default();
        if links.lines().any(|line| line.trim_start().starts_with(&format!("{interface}:"))) {
            let message = format!("the link {interface:?} is down");
            return Err(Error::errno(libc::ENETDOWN, message));
        }
        let names: Vec<&str> = addresses.keys().map(String::as_str).collect();
        let message = format!("there is no link {interface:?}; up are {}", names.join(", "));
        return Err(Error::bad_request(message));
    };
    if own.iter().any(IpAddr::is_loopback) {
        return Err(Error::refused(format!("{interface} is the loopback")));
    }
    let is_controllers = controller_side_address().is_some_and(|address| own.contains(&address));
    if is_controllers && undo_after_s.is_none_or(|seconds| seconds >= lease_s) {
        let message = format!(
            "{interface} is the link to the controller: give undo_after below link_timeout, {lease_s} s here"
        );
        return Err(Error::refused(message));
    }
    let ip = program("ip")?;
    let call = |words: &[&str]| command_step(&ip, words, scope.timeout_s);
    let mut steps = Vec::new();
    let mut undo = vec![call(&["link", "set", "dev", interface, "up"])];
    // Else its IPv6 addresses, which a host may have by hand, are gone.
    let keep = roots.proc.join("sys/net/ipv6/conf").join(interface).join("keep_addr_on_down");
    if let Some(before) = read_value(&keep) {
        let write = |text: &str| Step::Write { path: keep.clone(), text: text.to_owned() };
        steps.push(write("1"));
        undo.push(write(&before));
    }
    steps.push(call(&["link", "set", "dev", interface, "down"]));
    let routes = ipv4_routes(&read_text(&net.join("route")).unwrap_or_default(), interface);
    let more = ipv6_routes(&read_text(&net.join("ipv6_route")).unwrap_or_default(), interface);
    for route in routes.iter().chain(&more) {
        undo.push(call(&route.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    Ok(ResolvedAction { steps, undo })
}

/// The words after `ip` that set the routes by a link again, which go with it. Those without a
/// gateway come first: they may lead to one.
fn ipv4_routes(text: &str, interface: &str) -> Vec<Vec<String>> {
    let address = |word: &str| {
        u32::from_str_radix(word, 16).ok().map(|number| Ipv4Addr::from(number.to_ne_bytes()))
    };
    let parse = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.first() != Some(&interface) || words.len() < 8 {
            return None;
        }
        let length = u32::from_be_bytes(address(words[7])?.octets()).count_ones();
        let flags = u32::from_str_radix(words[3], 16).ok()?;
        let gateway = (flags & ROUTE_HAS_GATEWAY != 0).then_some(address(words[2])?.into());
        let place = format!("{}/{length}", address(words[1])?);
        Some(route_words("-4", &place, gateway, interface, words[6]))
    };
    sorted_routes(text.lines().filter_map(parse))
}

fn ipv6_routes(text: &str, interface: &str) -> Vec<Vec<String>> {
    let address = |word: &str| u128::from_str_radix(word, 16).ok().map(Ipv6Addr::from);
    let number = |word: &str| u32::from_str_radix(word, 16).ok();
    let parse = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() != 10 || words[9] != interface {
            return None;
        }
        let flags = number(words[8])?;
        if flags & ROUTE_HAS_GATEWAY == 0 || flags & ROUTE_IS_ANNOUNCED != 0 {
            return None; // The kernel makes the others with the addresses, which stay.
        }
        let place = format!("{}/{}", address(words[0])?, number(words[1])?);
        let metric = number(words[5])?.to_string();
        Some(route_words("-6", &place, Some(address(words[4])?.into()), interface, &metric))
    };
    sorted_routes(text.lines().filter_map(parse))
}

fn route_words(
    family: &str,
    place: &str,
    gateway: Option<IpAddr>,
    interface: &str,
    metric: &str,
) -> Vec<String> {
    let mut words: Vec<String> = [family, "route", "replace", place].map(str::to_owned).into();
    if let Some(gateway) = gateway {
        words.extend(["via".into(), gateway.to_string()]);
    }
    words.extend(["dev", interface, "metric", metric].map(str::to_owned));
    if gateway.is_some() {
        words.push("onlink".into());
    }
    words
}

fn sorted_routes(routes: impl Iterator<Item = Vec<String>>) -> Vec<Vec<String>> {
    let mut routes: Vec<Vec<String>> = routes.collect();
    routes.sort_by_key(|words| words.contains(&"via".to_owned()));
    routes
}

/// The address of this host at which the controller speaks to it, as sshd says.
fn controller_side_address() -> Option<IpAddr> {
    let of_process = |pid: Pid| {
        let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let text = String::from_utf8_lossy(&environ).into_owned();
        let value = text.split('\0').find_map(|entry| entry.strip_prefix("SSH_CONNECTION="))?;
        let address = value.split(' ').nth(2)?.split('%').next()?;
        address.parse().ok()
    };
    own_ancestors().into_iter().rev().find_map(of_process)
}

fn limit(
    roots: &Roots,
    group: &Path,
    device: &Path,
    rates: &IoRates,
    scope: &StudyScope,
) -> Result<ResolvedAction> {
    let name = studied_device(roots, device, scope)?;
    // Limits are of whole disks.
    let whole = whole_disk(roots, &name);
    let number = read_value(&roots.block_folder(&whole).join("dev"))
        .ok_or_else(|| Error::errno(libc::ENODEV, format!("{whole} has no number")))?;
    limit_steps(group, &number, rates)
}

/// Limits of a control group for the disk of that `major:minor`, undone by what stands there now.
fn limit_steps(group: &Path, number: &str, rates: &IoRates) -> Result<ResolvedAction> {
    let wanted: Vec<_> = rates.by_kind().into_iter().filter(|(_, rate)| rate.is_some()).collect();
    let unlimited: Vec<_> = wanted.iter().map(|(kind, _)| (*kind, None)).collect();
    let mut resolved = ResolvedAction { steps: vec![], undo: vec![] };
    let writes = limit_writes(group, number, &wanted).into_iter();
    for ((path, text), (_, none)) in writes.zip(limit_writes(group, number, &unlimited)) {
        let now = read_text(&path).ok_or_else(|| {
            let message = format!(
                "{} is no control group with io.max or blkio.throttle.*: make it, and enable its io controller",
                group.display()
            );
            Error::bad_request(message)
        })?;
        let before = now.lines().find(|line| line.starts_with(&format!("{number} ")));
        let undo = before.map_or(none, str::to_owned);
        resolved.steps.push(Step::Write { path: path.clone(), text });
        resolved.undo.push(Step::Write { path, text: undo });
    }
    Ok(resolved)
}

/// The kernel's name of a device that may be broken.
fn breakable_device(roots: &Roots, device: &Path, scope: &StudyScope) -> Result<String> {
    let name = studied_device(roots, device, scope)?;
    if devices_below(roots, Path::new("/")).contains(&name) {
        return Err(Error::refused(format!("{} is the host's root disk", device.display())));
    }
    Ok(name)
}

/// The kernel's name of a device that the study's targets stand on, or that the inventory names.
fn studied_device(roots: &Roots, device: &Path, scope: &StudyScope) -> Result<String> {
    let name = name_of_device(roots, device)?;
    let is_member = || scope.members.contains(&name);
    if is_member() || scope.targets.iter().any(|path| devices_below(roots, path).contains(&name)) {
        return Ok(name);
    }
    let message = format!(
        "{} is not the study's: no target stands on it, and the inventory's devices of this host do not name {name}",
        device.display()
    );
    Err(Error::refused(message))
}

fn name_of_device(roots: &Roots, device: &Path) -> Result<String> {
    let meta = fs::metadata(device).context(format_args!("see {}", device.display()))?;
    if !meta.file_type().is_block_device() {
        return Err(Error::bad_request(format!("{} is no block device", device.display())));
    }
    kernel_name(roots, device).ok_or_else(|| {
        Error::errno(libc::ENODEV, format!("{} is unknown to /sys", device.display()))
    })
}

/// All devices below a directory, or a device and those below it.
fn devices_below(roots: &Roots, path: &Path) -> BTreeSet<String> {
    let mounts = visible_mounts(roots);
    let nearest = match name_of_device(roots, path) {
        Ok(name) => vec![name],
        Err(_) => fs::canonicalize(path)
            .ok()
            .and_then(|real| Some((mount_of(&mounts, &real)?, real)))
            .map_or_else(Vec::new, |(mount, real)| nearest_devices(roots, &mounts, mount, &real)),
    };
    nearest.iter().flat_map(|name| device_chain(roots, &mounts, name)).collect()
}

fn program(name: &str) -> Result<String> {
    let paths = PROGRAM_FOLDERS.iter().map(|folder| Path::new(folder).join(name));
    let mut found = paths.filter(|path| path.is_file());
    let missing = || Error::errno(libc::ENOENT, format!("there is no program {name} here"));
    found.next().map(|path| path.display().to_string()).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;
    use crate::undo::run_alone;

    fn refusal(action: &Action) -> String {
        action.resolve(&StudyScope::default(), &run_alone).unwrap_err().message
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_its_name() {
        for (action, part) in [
            (Action::Detach { device: "/dev/null".into() }, "no block device"),
            (Action::Offline { device: "/nowhere".into() }, "/nowhere"),
            (Action::CutLink { interface: "lo".into(), undo_after_s: None }, "lo"),
            (Action::CutLink { interface: "no0".into(), undo_after_s: None }, "no0"),
        ] {
            let message = refusal(&action);
            assert!(message.contains(part), "{message} lacks {part}");
        }
    }

    #[test]
    fn programs_of_an_action_have_its_limit_and_say_why_they_failed() {
        let scope = StudyScope { timeout_s: 7.0, ..StudyScope::default() };
        let resolve = |execute: Execute| {
            stop_or_kill_unit("/bin/systemctl", "osd.service", StepSignal::Kill, &scope, execute)
        };
        let hangs = |_: &[String], limit_s: f64| {
            Err(Error::errno(libc::ETIME, format!("it took longer than {limit_s} s")))
        };
        let message = resolve(&hangs).unwrap_err().message;
        for part in ["osd.service", "it took longer than 7 s"] {
            assert!(message.contains(part), "{message} lacks {part}");
        }
        let words = ["start", "--", "osd.service"];
        let undo = vec![command_step("/bin/systemctl", &words, 7.0)];
        assert_eq!(resolve(&|_, _| Ok(())).unwrap().undo, undo);
    }

    #[test]
    fn iolabs_own_processes_are_never_signalled() {
        let folder = TestFolder::new();
        let path = folder.path().join("pid");
        fs::write(&path, format!("{}\n", crate::sys::process::parent_pid())).unwrap();
        let message = refusal(&Action::Stop { process: path.display().to_string() });
        assert!(message.contains("iolab's own"), "{message}");
    }

    #[test]
    fn a_limit_is_undone_by_what_stood_there() {
        let folder = TestFolder::new();
        let group = folder.path();
        let number = "7:3";
        let rates =
            IoRates { read_iops: Some(200), write_bytes_per_s: Some(5), ..IoRates::default() };
        let resolve = || limit_steps(group, number, &rates);
        assert!(resolve().unwrap_err().message.contains("no control group"));
        let texts =
            |steps: &[Step]| steps.iter().map(Step::description).collect::<Vec<_>>().join("; ");
        fs::write(group.join("blkio.throttle.read_iops_device"), format!("{number} 7\n")).unwrap();
        fs::write(group.join("blkio.throttle.write_bps_device"), "").unwrap();
        let old = resolve().unwrap();
        assert!(texts(&old.steps).contains(&format!("{number} 200")));
        assert!(texts(&old.undo).contains(&format!("{number} 7")));
        assert!(texts(&old.undo).contains(&format!("{number} 0")));
        fs::write(group.join("io.max"), "").unwrap();
        let new = resolve().unwrap();
        assert!(texts(&new.steps).contains(&format!("{number} riops=200 wbps=5")));
        assert!(texts(&new.undo).contains(&format!("{number} riops=max wbps=max")));
        fs::write(group.join("io.max"), format!("{number} rbps=max riops=9\n")).unwrap();
        assert!(texts(&resolve().unwrap().undo).contains(&format!("{number} rbps=max riops=9")));
    }

    #[test]
    fn the_routes_of_a_link_are_set_again_those_to_gateways_last() {
        let text = "\
Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
eth1\t00000000\t010200C0\t0003\t0\t0\t200\t00000000\t0\t0\t0
";
        let text = if cfg!(target_endian = "little") { text } else { return };
        let words: Vec<String> =
            ipv4_routes(text, "eth0").iter().map(|words| words.join(" ")).collect();
        assert_eq!(
            words,
            [
                "-4 route replace 192.0.2.0/24 dev eth0 metric 0",
                "-4 route replace 0.0.0.0/0 via 192.0.2.1 dev eth0 metric 100 onlink",
            ]
        );
        let zeros = "0".repeat(32);
        let gateway = "20010db8000000000000000000000001";
        let route = |flags: &str| {
            format!("{zeros} 00 {zeros} 00 {gateway} 00000400 00000000 00000000 {flags} eth0\n")
        };
        let found = ipv6_routes(&(route("00000003") + &route("00450003")), "eth0");
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].join(" "),
            "-6 route replace ::/0 via 2001:db8::1 dev eth0 metric 1024 onlink"
        );
    }
}
