use super::*;
use crate::trial::TestFolder;

const HYBRID: &str = "\
22 1 254:0 / / rw - ext4 /dev/vda rw
30 22 0:26 / /CG/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
31 22 0:27 / /CG/unified rw,relatime - cgroup2 cgroup2 rw
";

/// A tree of /proc and of control groups; `/CG` stands for its folder of groups.
struct Host {
    tree: TestFolder,
}

impl Host {
    fn new(mountinfo: &str) -> Self {
        let tree = TestFolder::new();
        let top = tree.path().join("cg").display().to_string();
        tree.put("proc/thread-self/mountinfo", &mountinfo.replace("/CG", &top));
        Self { tree }
    }

    fn roots(&self) -> Roots {
        Roots { proc: self.tree.path().join("proc"), sys: self.tree.path().join("sys") }
    }

    fn thread(&self, pid: Pid, thread: Pid, times: &str, cores: &str) {
        let folder = format!("proc/{pid}/task/{thread}");
        self.tree.put(&format!("{folder}/schedstat"), &format!("{times} 9\n"));
        self.tree.put(
            &format!("{folder}/status"),
            &format!("Name:\tfio\nCpus_allowed:\tff\nCpus_allowed_list:\t{cores}\n"),
        );
    }

    fn children(&self, pid: Pid, children: &str) {
        self.tree.put(&format!("proc/{pid}/task/{pid}/children"), children);
    }

    fn one(&self, group: &str, quota_us: i64, counts: [u64; 3]) {
        let [periods, throttled, throttled_ns] = counts;
        self.tree.put(
            &format!("cg/cpu{group}/cpu.stat"),
            &format!(
                "nr_periods {periods}\nnr_throttled {throttled}\nthrottled_time {throttled_ns}\n"
            ),
        );
        self.tree.put(&format!("cg/cpu{group}/cpu.cfs_quota_us"), &format!("{quota_us}\n"));
        self.tree.put(&format!("cg/cpu{group}/cpu.cfs_period_us"), "100000\n");
    }
}

#[test]
fn threads_of_all_processes_are_summed_up_also_those_that_ended() {
    let host = Host::new("");
    host.children(7, "8 9 \n");
    host.children(8, "");
    host.children(9, "");
    host.thread(7, 7, "1000 1000", "0-3");
    host.thread(8, 8, "0 0", "1");
    host.thread(9, 9, "500 0", "3");
    let mut watcher = ProcessorWatcher::for_process(host.roots(), 7, 0);
    watcher.look_at_processes();
    host.thread(7, 7, "1100 1010", "0-3");
    host.thread(8, 8, "250000 750000", "1");
    host.thread(9, 9, "400500 600000", "3");
    watcher.look_at_processes();
    std::fs::remove_dir_all(host.tree.path().join("proc/9")).expect("it ends");
    host.thread(8, 8, "250000 1750000", "1");
    watcher.look_at_processes();
    let got = watcher.result().expect("it was seen");
    assert_eq!((got.threads, got.run_ns, got.wait_ns), (2, 650_000, 2_350_000));
    assert_eq!(got.cores, [1, 3]); // The leader, which only waits for the others, is none of them.
    assert!(got.wall_ns > 0 && got.wall_ns <= 2 * got.watched_ns);
    assert!(got.groups.is_empty());
}

#[test]
fn what_cannot_be_read_is_not_told() {
    let host = Host::new("");
    let mut watcher = ProcessorWatcher::for_process(host.roots(), i32::MAX, 0);
    assert_eq!(watcher.result(), None);
    watcher.look_at_processes();
    watcher.look_at_processes();
    assert_eq!(watcher.result(), None);
}

#[test]
fn nothing_counts_before_the_load_begins() {
    let host = Host::new("");
    host.children(7, "");
    host.thread(7, 7, "5 5", "0");
    let mut watcher = ProcessorWatcher::for_process(host.roots(), 7, u64::MAX);
    watcher.look_if_due();
    assert_eq!(watcher.first_look_ns, None);
    assert!(watcher.time_until_look() > Duration::ZERO);
}

#[test]
fn groups_of_version_1_are_read_up_to_the_root() {
    let host = Host::new(HYBRID);
    host.tree.put("proc/7/cgroup", "1:cpu,cpuacct:/pods/x\n0::/\n");
    host.children(7, "");
    host.thread(7, 7, "5 5", "0");
    host.one("/pods/x", 10_000, [100, 90, 8_000]);
    host.one("/pods", -1, [0, 0, 0]);
    host.one("", -1, [0, 0, 0]);
    let mut watcher = ProcessorWatcher::for_process(host.roots(), 7, 0);
    watcher.look_at_processes();
    host.one("/pods/x", 10_000, [120, 109, 9_000]);
    let groups = watcher.result().expect("it was seen").groups;
    let paths: Vec<&str> = groups.iter().map(|group| group.path.as_str()).collect();
    assert_eq!(paths, ["/pods/x", "/pods", "/"]);
    assert_eq!(groups[0].quota_cores, Some(0.1));
    assert_eq!(groups[0].period_ns, 100_000_000);
    assert_eq!((groups[0].periods, groups[0].throttled, groups[0].throttled_ns), (20, 19, 1000));
    assert_eq!((groups[1].quota_cores, groups[1].pressure_ns), (None, None));
}

#[test]
fn groups_of_version_2_in_a_container_end_where_its_own_tree_does() {
    // A container whose mount shows its own group as the root, though its name space is the host's.
    let mountinfo = "31 22 0:27 /pods/x /CG/all rw - cgroup2 cgroup2 rw\n";
    let host = Host::new(mountinfo);
    host.tree.put("proc/7/cgroup", "0::/pods/x/load\n");
    host.children(7, "");
    host.thread(7, 7, "5 5", "0");
    let stat = |periods: u64| {
        format!("usage_usec 1\nnr_periods {periods}\nnr_throttled 1\nthrottled_usec 2\n")
    };
    for (group, max) in [("/load", "max 100000"), ("", "50000 100000")] {
        host.tree.put(&format!("cg/all{group}/cpu.stat"), &stat(3));
        host.tree.put(&format!("cg/all{group}/cpu.max"), max);
        let pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n";
        host.tree.put(&format!("cg/all{group}/cpu.pressure"), pressure);
    }
    let mut watcher = ProcessorWatcher::for_process(host.roots(), 7, 0);
    watcher.look_at_processes();
    host.tree.put("cg/all/cpu.stat", &stat(13));
    let groups = watcher.result().expect("it was seen").groups;
    assert_eq!(groups.iter().map(|one| one.periods).collect::<Vec<_>>(), [0, 10]);
    assert_eq!(groups.iter().map(|one| one.quota_cores).collect::<Vec<_>>(), [None, Some(0.5)]);
    assert_eq!(groups[0].pressure_ns, Some(0));
}

#[test]
fn the_least_quota_above_a_process_is_its_own() {
    let host = Host::new(HYBRID);
    host.tree.put(&format!("proc/{}/cgroup", pid_in_proc()), "1:cpu:/a/b\n");
    host.one("/a/b", 150_000, [0; 3]);
    host.one("/a", 10_000, [0; 3]);
    host.one("", -1, [0; 3]);
    assert_eq!(own_quota_cores(&host.roots()), Some(0.1));
    assert_eq!(own_quota_cores(&Host::new("").roots()), None);
}

#[test]
fn this_process_is_seen_by_the_real_kernel() {
    let mut watcher = ProcessorWatcher::for_own_process(0);
    watcher.look_at_processes();
    let until = Instant::now() + Duration::from_millis(30);
    while Instant::now() < until {
        std::hint::spin_loop();
    }
    watcher.look_at_processes();
    let got = watcher.result();
    // A kernel without such counts tells nothing; one with them tells of this thread.
    assert!(got.is_none_or(|got| got.threads == 0 || got.run_ns + got.wait_ns > 0));
}

#[test]
fn a_stopped_worker_is_told_and_a_stopped_leader_that_only_waits_is_not() {
    let host = Host::new("");
    host.children(7, "8 9\n");
    host.children(8, "");
    host.children(9, "");
    let state = |thread: Pid, state: char| {
        let place = if thread == 7 {
            "proc/7/task/7".into()
        } else {
            format!("proc/{thread}/task/{thread}")
        };
        host.tree
            .put(&format!("{place}/stat"), &format!("{thread} (fio) {state} 1 1 1 0 -1 0 0\n"));
    };
    for thread in [7, 8, 9] {
        host.thread(thread, thread, "0 0", "0");
        state(thread, 'S');
    }
    let mut watcher = ProcessorWatcher::for_process(host.roots(), 7, 0);
    watcher.look_at_processes();
    state(7, 'T');
    state(8, 'T');
    state(9, 'D');
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(20));
        watcher.look_at_processes();
    }
    state(8, 'R');
    host.thread(8, 8, "400000 0", "0");
    host.thread(9, 9, "500000 0", "0");
    std::thread::sleep(Duration::from_millis(20));
    watcher.look_at_processes();
    let got = watcher.result().expect("it was seen");
    assert_eq!(got.threads, 2);
    let [told] = got.load_halts[..] else { panic!("{:?}", got.load_halts) };
    assert_eq!(told.cause, Cause::Stopped);
    assert!(told.thread_ns > 0 && told.thread_ns <= got.wall_ns / 2);
    assert_eq!(told.thread_ns, told.to_real_ns - told.from_real_ns);
}
