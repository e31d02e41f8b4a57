//! The kernel's file systems.

use rustix::mount::{MountFlags, mount};

/// Type and place of each. Where one is in another's, the other comes first.
const ALL: [(&str, &str); 10] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("tmpfs", "/dev/shm"),
    ("tmpfs", "/tmp"),
    ("tmpfs", "/run"),
    ("bpf", "/sys/fs/bpf"),
    ("debugfs", "/sys/kernel/debug"),
    ("tracefs", "/sys/kernel/tracing"),
    ("cgroup2", "/sys/fs/cgroup"),
];

/// Mounts what the kernel has. Who needs a file that is not there says so.
pub fn mount_all() {
    for (kind, place) in ALL {
        let _ = std::fs::create_dir_all(place);
        let _ = mount(kind, place, kind, MountFlags::empty(), None);
    }
}
