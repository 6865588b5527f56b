use super::*;
use crate::trial::Folder;

/// A machine whose mounts are folders of a trial; `{}` stands for its path.
fn machine(mounts: &str, groups: &str) -> (Folder, Roots) {
    let tree = Folder::new();
    let at = tree.path().display().to_string();
    tree.put("proc/thread-self/mountinfo", &mounts.replace("{}", &at));
    tree.put("proc/self/cgroup", groups);
    let roots = Roots { proc: tree.path().join("proc"), sys: tree.path().join("sys") };
    (tree, roots)
}

const ONE: &str = "31 23 0:28 / {}/cg rw - tmpfs tmpfs rw\n\
                   32 31 0:29 / {}/cg/cpu rw - cgroup cgroup rw,cpu\n\
                   35 31 0:32 / {}/cg/memory rw - cgroup cgroup rw,memory\n\
                   41 31 0:38 / {}/cg/unified rw - cgroup2 cgroup2 rw\n";
const TWO: &str = "31 23 0:28 / {}/cg rw - cgroup2 cgroup2 rw,nsdelegate\n";

#[test]
fn of_version_one_a_group_is_made_in_the_own() {
    let (tree, roots) = machine(ONE, "4:memory:/app/7\n1:cpu:/\n0::/\n");
    let own = tree.path().join("cg/memory/app/7");
    assert_eq!(parent_of_groups(&roots), Some((Version::One, own)));
}

#[test]
fn what_a_container_sees_of_its_group_is_the_top() {
    let mounts = "35 31 0:32 /docker/7 {}/cg/memory rw - cgroup cgroup rw,memory\n";
    let (tree, roots) = machine(mounts, "4:memory:/docker/7\n");
    assert_eq!(parent_of_groups(&roots), Some((Version::One, tree.path().join("cg/memory/"))));
    let (tree, roots) = machine(mounts, "4:memory:/elsewhere\n");
    assert_eq!(parent_of_groups(&roots), Some((Version::One, tree.path().join("cg/memory"))));
}

#[test]
fn of_version_two_the_nearest_group_that_hands_memory_on() {
    let (tree, roots) = machine(TWO, "0::/user.slice/user-0.slice/session-5.scope\n");
    tree.put("cg/cgroup.subtree_control", "cpu memory pids\n");
    tree.put("cg/user.slice/cgroup.subtree_control", "memory pids\n");
    tree.put("cg/user.slice/user-0.slice/cgroup.subtree_control", "pids\n");
    tree.put("cg/user.slice/user-0.slice/session-5.scope/cgroup.subtree_control", "\n");
    let slice = tree.path().join("cg/user.slice");
    assert_eq!(parent_of_groups(&roots), Some((Version::Two, slice)));
}

#[test]
fn a_host_without_the_controller_says_so() {
    let (tree, roots) = machine(TWO, "0::/\n");
    tree.put("cg/cgroup.subtree_control", "cpu hugetlb\n");
    let error = Bound::make(&roots, "iolab-x.1", 1 << 30).map(|_| ()).unwrap_err();
    assert_eq!(error.code, "ENOTSUP");
    assert!(error.says.starts_with("cannot bound memory"), "{}", error.says);
    let (_tree, roots) = machine("", "");
    assert_eq!(Bound::make(&roots, "x", 1 << 30).map(|_| ()).unwrap_err().code, "ENOTSUP");
}

#[test]
fn a_bound_that_nothing_fits_in_is_a_bad_request() {
    let (_tree, roots) = machine(ONE, "4:memory:/\n");
    assert_eq!(Bound::make(&roots, "x", 4096).map(|_| ()).unwrap_err().code, "bad-request");
}

#[test]
fn a_group_that_cannot_be_made_names_itself() {
    let (_tree, roots) = machine(ONE, "4:memory:/nowhere\n");
    let error = Bound::make(&roots, "iolab-x.1", 1 << 30).map(|_| ()).unwrap_err();
    assert_eq!(error.code, "ENOENT");
    assert!(error.says.contains("/nowhere/iolab-x.1"), "{}", error.says);
}

#[test]
fn the_limits_of_each_version_are_set_and_what_is_not_there_is_not() {
    let tree = Folder::new();
    let files = ["memory.limit_in_bytes", "memory.swappiness", "memory.max", "memory.swap.max"];
    for file in files.into_iter().chain(["cgroup.procs"]) {
        tree.put(file, "");
    }
    furnish(tree.path(), Version::One, 1 << 26).unwrap();
    furnish(tree.path(), Version::Two, 1 << 27).unwrap();
    let told: Vec<String> =
        files.iter().map(|file| text(&tree.path().join(file)).unwrap()).collect();
    assert_eq!(told, ["67108864", "0", "134217728", "0"]);
    assert!(!tree.path().join("memory.memsw.limit_in_bytes").exists());
    fs::remove_file(tree.path().join("memory.max")).unwrap();
    assert!(furnish(tree.path(), Version::Two, 1 << 27).is_err());
}

#[test]
fn what_was_used_is_read_and_summed_as_each_version_counts() {
    let tree = Folder::new();
    tree.put("memory.max_usage_in_bytes", "1000\n");
    tree.put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    tree.put("inner/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    tree.put("memory.peak", "2000\n");
    tree.put("memory.events", "low 0\noom 7\noom_kill 5\noom_group_kill 0\n");
    let told = |peak, kills| MemoryUse { memory_peak_bytes: peak, oom_kills: kills };
    assert_eq!(used(tree.path(), Version::One), told(Some(1000), Some(3)));
    assert_eq!(used(tree.path(), Version::Two), told(Some(2000), Some(5)));
    assert_eq!(used(Path::new("/nowhere"), Version::Two), told(None, None));
    assert_eq!(used(Path::new("/nowhere"), Version::One), told(None, None));
}

#[test]
fn the_groups_of_a_dead_agent_go_and_those_of_others_stay() {
    let (tree, roots) = machine(ONE, "4:memory:/\n");
    for group in [
        "memory/a/iolab-1-00000000deadbeef.7/inner",
        "memory/iolab-1-00000000deadbee0.1",
        "unified/iolab-1-00000000deadbeef.9",
    ] {
        fs::create_dir_all(tree.path().join("cg").join(group)).unwrap();
    }
    remove_of(&roots, "1-00000000deadbeef");
    assert_eq!(names(&tree.path().join("cg/memory")), ["a", "iolab-1-00000000deadbee0.1"]);
    assert!(names(&tree.path().join("cg/memory/a")).is_empty());
    assert!(names(&tree.path().join("cg/unified")).is_empty());
}

#[test]
fn a_controller_that_is_hidden_is_known_by_the_own_group() {
    let of_one = "4:memory:/app\n0::/\n";
    let (_tree, roots) = machine("", of_one);
    assert_eq!(hidden_groups(&roots), Some((c"cgroup", c"memory")));
    let (_tree, roots) = machine(ONE, of_one);
    assert_eq!(hidden_groups(&roots), None);
    let (_tree, roots) = machine("", "0::/app\n");
    assert_eq!(hidden_groups(&roots), Some((c"cgroup2", c"")));
    let (_tree, roots) = machine(TWO, "0::/app\n");
    assert_eq!(hidden_groups(&roots), None);
    let (_tree, roots) = machine("", "");
    assert_eq!(hidden_groups(&roots), None);
}
