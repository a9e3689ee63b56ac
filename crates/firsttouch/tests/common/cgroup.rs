//! A cgroup, of version 1 or 2, for the process of one test.

use std::fs::{create_dir, read_to_string, remove_dir, write};
use std::path::PathBuf;
use std::process;

/// The group leaves nothing behind: its process goes back to where it was.
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// Moves this process into a new group below its own, for one controller; `None` where it may not.
    pub fn enter_new(controller: &str) -> Option<Self> {
        let groups = read_to_string("/proc/self/cgroup").ok()?;
        let parts = groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
        let of_two = || {
            let own = parts.clone().find(|(names, _)| names.is_empty())?.1;
            let folder = PathBuf::from(format!("/sys/fs/cgroup{own}"));
            let controllers = read_to_string(folder.join("cgroup.subtree_control")).ok()?;
            controllers.split_ascii_whitespace().any(|name| name == controller).then_some(folder)
        };
        let of_one = parts.clone().find(|(names, _)| names.split(',').any(|name| name == controller));
        let parent = match of_one {
            Some((_, own)) => PathBuf::from(format!("/sys/fs/cgroup/{controller}{own}")),
            None => of_two()?,
        };
        let folder = parent.join(format!("firsttouch-test-{}", process::id()));
        create_dir(&folder).ok()?;
        let group = Self(folder);
        write(group.0.join("cgroup.procs"), process::id().to_string()).ok()?;
        Some(group)
    }

    /// Limits the group to the time of so many processors.
    pub fn set_quota(&self, processors: f64) {
        let quota = (processors * 100_000.0) as u64;
        if self.0.join("cpu.max").exists() {
            return write(self.0.join("cpu.max"), format!("{quota} 100000")).unwrap();
        }
        write(self.0.join("cpu.cfs_period_us"), "100000").unwrap();
        write(self.0.join("cpu.cfs_quota_us"), quota.to_string()).unwrap();
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if let Some(parent) = self.0.parent() {
            let _ = write(parent.join("cgroup.procs"), process::id().to_string());
        }
        let _ = remove_dir(&self.0);
    }
}
