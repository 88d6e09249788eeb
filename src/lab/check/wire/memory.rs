//! Memory of a process group, where the operating system shows it (Linux).

use std::fs;

/// Resident memory of all processes in the group of this leader, in bytes; `None` where it is not known.
pub(in crate::check) fn resident(leader: u32) -> Option<u64> {
    let mut sum = 0;
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let Some(group) = group_of(pid) else { continue };
        if group == leader {
            sum += resident_of(pid).unwrap_or_default();
        }
    }
    (sum > 0).then_some(sum)
}

/// The process group of a process. Its name, which may have spaces, ends at the last parenthesis.
fn group_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(2)?.parse().ok()
}

fn resident_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}
