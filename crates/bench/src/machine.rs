//! Describes the machine and the time of a measurement.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use stripewise_report::{Machine, units};

/// Describes this machine. Fields that cannot be determined are empty or 0.
pub fn describe() -> Machine {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let (cpuinfo, meminfo) = (text("/proc/cpuinfo"), text("/proc/meminfo"));
    Machine {
        host: text("/proc/sys/kernel/hostname").trim().to_string(),
        cpu: field(&cpuinfo, "model name").unwrap_or_default().to_string(),
        cores: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        memory_bytes: field(&meminfo, "MemTotal").and_then(kib).unwrap_or(0) * 1024,
        system: format!("Linux {}", text("/proc/sys/kernel/osrelease").trim()),
    }
}

/// Returns the value of the first `name : value` line.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim())
}

fn kib(value: &str) -> Option<u64> {
    value.strip_suffix("kB")?.trim().parse().ok()
}

/// Current time as RFC 3339 in UTC, in whole seconds.
pub fn utc_now() -> String {
    units::utc(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proc_files() {
        assert_eq!(field("a\t: b\nMemTotal:  12 kB\n", "MemTotal").and_then(kib), Some(12));
        assert_eq!(field("a: b", "c"), None);
    }
}
