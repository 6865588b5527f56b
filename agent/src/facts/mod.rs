//! The facts of a host: what stands in a report's test configuration tables.
//!
//! Nothing unreadable fails the whole: it becomes null (or the nearest plain value where null has
//! no sense) and one sentence in `faults`.

pub mod disks;
pub mod host;
pub mod nics;
pub mod target;
pub mod tools;

use std::path::Path;

use serde::Serialize;

use crate::roots::Roots;
use crate::runs::Runs;

/// Everything that is known of a host.
#[derive(Debug, Serialize)]
#[expect(missing_docs, reason = "the fields are described in schema/wire.json")]
pub struct HostFacts {
    pub cpu: host::CpuFacts,
    pub memory: host::MemoryFacts,
    pub disks: Vec<disks::DiskFacts>,
    pub nics: Vec<nics::NicFacts>,
    pub kernel: host::KernelFacts,
    pub target: Option<target::TargetFacts>,
    pub tools: Vec<tools::ToolFacts>,
    pub faults: Vec<String>,
}

/// Gather all facts; `path` is the target, if any, and `tools` are run to tell their version.
#[must_use]
pub fn gather(roots: &Roots, path: Option<&Path>, tools: &tools::Asked, runs: &Runs) -> HostFacts {
    let mut faults = Vec::new();
    let cpu = host::cpu(roots, &mut faults);
    let memory = host::memory(roots, &mut faults);
    let kernel = host::kernel(roots, &mut faults);
    let target = path.and_then(|path| target::target(roots, path, &mut faults));
    let beneath = target.as_ref().map_or(&[][..], |target| &target.devices);
    let disks = disks::disks(roots, beneath, &mut faults);
    let nics = nics::nics(roots);
    let tools = tools::tools(tools, runs, &mut faults);
    HostFacts { cpu, memory, disks, nics, kernel, target, tools, faults }
}
