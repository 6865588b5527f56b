//! What telemetry costs: samples of a large synthetic host, and of the one this runs on.
//!
//! `cargo bench` prints processor seconds a sample and the share of one core at one sample a
//! second; it fails when that share of the synthetic host is not under 0.2 %.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use iolab_agent::roots::Roots;
use iolab_agent::sampler::Sampler;
use iolab_agent::sys::time::own_cpu_ns;
use iolab_agent::wire::encode;

const CORES: u32 = 128;
const CORES_A_NODE: u32 = 64;
const DISKS: u32 = 64;
const PORTS: u32 = 8;
/// Interrupt lines of a host of that size; they make /proc/stat long.
const INTERRUPTS: usize = 4000;
const SAMPLES: u32 = 300;
/// Slow values are read this often when samples come once a second.
const SAMPLES_A_REFRESH: f64 = 10.0;
const MOST_SHARE: f64 = 0.002;

fn main() -> ExitCode {
    let folder = std::env::temp_dir().join(format!("iolab-bench-{}", std::process::id()));
    let built = build(&folder);
    let synthetic = Roots { proc: folder.join("proc"), sys: folder.join("sys") };
    let share = built.map(|()| measure("synthetic", &synthetic));
    let _ = fs::remove_dir_all(&folder);
    measure("this host", &Roots::default());
    match share {
        Ok(share) if share < MOST_SHARE => ExitCode::SUCCESS,
        Ok(share) => {
            eprintln!("telemetry takes {share:.4} of a core, {MOST_SHARE} is the most");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("cannot build a synthetic host in {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

/// Take samples, print what they cost, return the share of one core at one a second.
fn measure(name: &str, roots: &Roots) -> f64 {
    let mut sampler = Sampler::new(roots.clone(), None);
    let first_s = cost_s(&mut sampler, 1);
    let steady_s = cost_s(&mut sampler, SAMPLES) / f64::from(SAMPLES);
    let share = steady_s + first_s / SAMPLES_A_REFRESH;
    let sample = sampler.sample();
    println!(
        "{name}: {} cores, {} disks, {} ports: first sample {first_s:.6} CPU s, each {steady_s:.6} \
         CPU s, at 1 Hz {:.3}% of one core",
        sample.cpu.len(),
        sample.disks.len(),
        sample.nics.len(),
        share * 100.0
    );
    share
}

fn cost_s(sampler: &mut Sampler, times: u32) -> f64 {
    let begun_ns = own_cpu_ns();
    for _ in 0..times {
        let frame = encode(1, "sample", &sampler.sample(), &[]);
        assert!(frame.len() > 100, "a sample says something");
    }
    (own_cpu_ns() - begun_ns) as f64 / 1e9
}

fn build(folder: &Path) -> io::Result<()> {
    let put = |name: String, text: String| {
        let file: PathBuf = folder.join(name);
        fs::create_dir_all(file.parent().unwrap_or(folder))?;
        fs::write(file, text)
    };
    put("proc/stat".into(), stat())?;
    put("proc/diskstats".into(), diskstats())?;
    put("proc/self/net/dev".into(), net_dev())?;
    put("proc/self/statm".into(), "1000 500 300 200 0 100 0\n".into())?;
    let meminfo: String = (0..45).map(|n| format!("Line{n}:       24668984 kB\n")).collect();
    put("proc/meminfo".into(), format!("MemTotal: 1 kB\nCached: 1 kB\n{meminfo}"))?;
    let line = "avg10=0.00 avg60=0.12 avg300=0.10 total=123456789";
    for kind in ["cpu", "io", "memory"] {
        put(format!("proc/pressure/{kind}"), format!("some {line}\nfull {line}\n"))?;
    }
    for node in 0..CORES / CORES_A_NODE {
        let first = node * CORES_A_NODE;
        let list = format!("{first}-{}\n", first + CORES_A_NODE - 1);
        put(format!("sys/devices/system/node/node{node}/cpulist"), list)?;
    }
    for core in 0..CORES {
        let cpu = format!("sys/devices/system/cpu/cpu{core}");
        put(format!("{cpu}/topology/core_id"), format!("{core}\n"))?;
        put(format!("{cpu}/topology/physical_package_id"), format!("{}\n", core / 64))?;
        put(format!("{cpu}/thermal_throttle/core_throttle_count"), "12\n".into())?;
        put(format!("{cpu}/thermal_throttle/package_throttle_count"), "34\n".into())?;
    }
    for disk in 0..DISKS {
        let sensor = format!("sys/block/nvme{disk}n1/device/hwmon{disk}/temp1_input");
        put(sensor, "38850\n".into())?;
    }
    Ok(())
}

fn stat() -> String {
    let times = "1234567 2345 345678 98765432 4567 0 8901 234 0 0";
    let mut text = format!("cpu  {times}\n");
    for core in 0..CORES {
        let _ = writeln!(text, "cpu{core} {times}");
    }
    let _ = writeln!(text, "intr 123456789{}", " 0".repeat(INTERRUPTS));
    text + "ctxt 987654321\nbtime 1700000000\nprocesses 12345\nprocs_running 1\n"
}

fn diskstats() -> String {
    let counts = "3237141 28031 95263170 349583 2170297 19202 85454720 950624 12 810260 9100829 \
                  8305 20 732432 511 3668 110";
    (0..DISKS).map(|disk| format!(" 259 {disk} nvme{disk}n1 {counts}\n")).collect()
}

fn net_dev() -> String {
    let counts = "95132437000 98760000 1 2 0 0 0 3 84200001000 87650000 4 5 0 0 0 0";
    let ports: String = (0..PORTS).map(|port| format!("  eth{port}: {counts}\n")).collect();
    format!("Inter-| Receive | Transmit\n face |bytes\n{ports}")
}
