use serde_json::{Value, json};

use super::*;
use crate::trial::TestFolder;

/// A host of two nodes, an nvme disk with a sensor, and one port.
fn host() -> (TestFolder, Sampler) {
    let tree = TestFolder::new();
    tree.put("proc/stat", "cpu  1 1\ncpu0 1 2 3 4 5 6 7 8\ncpu3 1 0 0 0 0 0 0 0\nintr 5\n");
    tree.put("proc/diskstats", "259 0 nvme0n1 1 0 8 2 3 0 16 4 5 6 7 1 0 8 0 9 0\n");
    tree.put("proc/self/net/dev", "eth0: 1 2 0 3 0 0 0 0 4 5 0 6 0 0 0 0\n");
    tree.put("proc/meminfo", "MemTotal: 4 kB\nDirty: 1 kB\n");
    tree.put("proc/pressure/io", "some total=1\nfull total=2\n");
    tree.put("proc/self/statm", "9 3 0 0 0 0 0\n");
    tree.put("sys/devices/system/node/node0/cpulist", "0-1\n");
    tree.put("sys/devices/system/node/node1/cpulist", "2-3\n");
    tree.put("sys/block/nvme0n1/device/hwmon2/temp1_input", "38850\n");
    tree.put("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "7\n");
    tree.put("sys/class/hwmon/hwmon3/name", "power_meter\n");
    tree.put("sys/class/hwmon/hwmon3/power1_average", "213456789\n");
    let roots = Roots { proc: tree.path().join("proc"), sys: tree.path().join("sys") };
    (tree, Sampler::new(roots, None))
}

fn told(sampler: &mut Sampler) -> Value {
    serde_json::to_value(sampler.sample()).expect("a sample is JSON")
}

fn names(sample: &Value, kind: &str) -> Vec<String> {
    let rows = sample[kind].as_array().expect("rows");
    rows.iter().map(|row| row[0].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn a_sample_has_everything_in_its_place() {
    let (_tree, mut sampler) = host();
    sampler.ticks_per_second = 100;
    let sample = told(&mut sampler);
    let ms = |ms: u64| ms * 1_000_000;
    assert_eq!(sample["seq"], 0);
    assert_eq!(
        sample["cpu"][0],
        json!([0, 0, ms(10), ms(20), ms(30), ms(40), ms(50), ms(60), ms(70), ms(80)])
    );
    assert_eq!(sample["cpu"][1][1], 1, "core 3 is on node 1");
    let disk =
        json!(["nvme0n1", 1, 4096, ms(2), 3, 8192, ms(4), 5, ms(6), ms(7), 1, 4096, 9, 38850]);
    assert_eq!(sample["disks"], json!([disk]));
    assert_eq!(sample["nics"], json!([["eth0", 1, 2, 3, 4, 5, 6]]));
    assert_eq!(sample["memory"]["total_bytes"], 4096);
    assert_eq!(sample["memory"]["available_bytes"], Value::Null);
    assert_eq!(sample["pressure"]["io_full_ns"], 2000);
    assert_eq!(sample["pressure"]["cpu_some_ns"], Value::Null);
    assert_eq!(sample["thermal"]["throttle_events"], 7);
    assert_eq!(sample["power"], json!([["node:hwmon3-1", 213_456, null, null]]));
    assert_eq!(sample["agent"]["rss_bytes"], 3 * page_bytes());
    assert_eq!(sample["merges"], Value::Null, "a watch does not repeat them");
    let snapshot = serde_json::to_value(sampler.snapshot()).expect("a sample is JSON");
    assert_eq!((&snapshot["seq"], &snapshot["merges"]), (&json!(1), &json!([["nvme0n1", 0, 0]])));
}

#[test]
fn a_host_that_shows_nothing_gives_an_empty_sample() {
    let tree = TestFolder::new();
    let roots = Roots { proc: tree.path().to_owned(), sys: tree.path().to_owned() };
    let sample = told(&mut Sampler::new(roots, None));
    for kind in ["cpu", "disks", "nics"] {
        assert_eq!(sample[kind], json!([]), "{kind}");
    }
    assert_eq!(sample["memory"]["total_bytes"], Value::Null);
    assert_eq!(sample["thermal"]["throttle_events"], Value::Null);
    assert_eq!(sample["agent"]["rss_bytes"], Value::Null);
}

#[test]
fn devices_come_and_go() {
    let (tree, mut sampler) = host();
    assert_eq!(names(&told(&mut sampler), "disks"), ["nvme0n1"]);
    tree.put("proc/diskstats", "8 0 sdb 1 0 8 2 3 0 16 4 5 6 7\n8 16 sdc 0 0 0 0 0 0 0 0 0 0 0\n");
    tree.put("proc/self/net/dev", "");
    let sample = told(&mut sampler);
    assert_eq!(names(&sample, "disks"), ["sdb"], "one left, one came, one was never used");
    assert_eq!(sample["disks"][0][13], Value::Null);
    assert!(names(&sample, "nics").is_empty());
}

#[test]
fn a_core_that_comes_online_finds_its_node() {
    let (tree, mut sampler) = host();
    told(&mut sampler);
    tree.put("proc/stat", "cpu0 1\ncpu9 1\n");
    tree.put("sys/devices/system/node/node2/cpulist", "9\n");
    assert_eq!(told(&mut sampler)["cpu"][1][1], 2);
}

#[test]
fn a_loop_device_counts_while_it_stands_for_something() {
    let (tree, mut sampler) = host();
    let used = "1 0 8 2 3 0 16 4 5 6 7";
    tree.put("proc/diskstats", &format!("7 0 loop0 {used}\n7 1 loop1 {used}\n7 2 loop2 {used}\n"));
    tree.put("sys/class/block/loop0/size", "2048\n");
    tree.put("sys/class/block/loop1/size", "0\n");
    assert_eq!(names(&told(&mut sampler), "disks"), ["loop0"]);
}

#[test]
fn a_file_that_grows_is_read_whole() {
    let (tree, mut sampler) = host();
    told(&mut sampler);
    let lines: String =
        (0..300).map(|n| format!("8 {n} sd{n} 1 0 8 2 3 0 16 4 5 6 7 1 0 8 0 9 0 {n}\n")).collect();
    assert!(lines.len() < 16 << 10);
    tree.put("proc/diskstats", &lines.repeat(4));
    assert_eq!(names(&told(&mut sampler), "disks").len(), 1200);
}

#[test]
fn a_file_that_appears_later_is_found() {
    let (tree, mut sampler) = host();
    told(&mut sampler);
    tree.put("proc/pressure/cpu", "some total=5\n");
    assert_eq!(told(&mut sampler)["pressure"]["cpu_some_ns"], 5000);
}
