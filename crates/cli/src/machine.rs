//! Describes the machine and the time of a measurement.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use stripewise_report::Machine;

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
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    utc(seconds)
}

/// Formats a number of seconds since 1970 as a civil date and time (Howard Hinnant's days-to-civil
/// algorithm).
fn utc(seconds: u64) -> String {
    let (days, rest) = (seconds / 86400 + 719_468, seconds % 86400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(utc(1_795_222_799), "2026-11-21T00:59:59Z");
        assert_eq!(utc(4_107_542_399), "2100-02-28T23:59:59Z");
        assert_eq!(utc(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn fields_of_proc_files() {
        assert_eq!(field("a\t: b\nMemTotal:  12 kB\n", "MemTotal").and_then(kib), Some(12));
        assert_eq!(field("a: b", "c"), None);
    }
}
