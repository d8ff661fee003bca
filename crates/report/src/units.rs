//! Formats numbers for people: at most four significant digits, with a no-break space before the
//! unit.

use chrono::{DateTime, SecondsFormat};

/// No-break space.
const SPACE: char = '\u{a0}';

/// Units of time, and how many of them are a second.
pub(crate) const SECONDS: [(&str, f64); 4] = [("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9)];

/// Formats bytes with a binary unit: `64 KiB`, `1.5 GiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    // 1023.96 of a unit would be printed as 1024, so it becomes 1 of the next unit.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{}{SPACE}{}", digits(value, 4), UNITS[unit])
}

/// Formats bytes per second: `85 MiB/s`.
pub fn bytes_per_s(rate: f64) -> String {
    format!("{}/s", bytes(rate.round() as u64))
}

/// Formats seconds with a decimal unit: `12.3 µs`, `850 ms`, `1.523 s`. Hours and more stay in
/// seconds.
pub fn seconds(seconds: f64) -> String {
    seconds_in(seconds, 4)
}

/// As [`seconds`] with three digits, for narrow places: `1.52 s`.
pub fn short_seconds(seconds: f64) -> String {
    seconds_in(seconds, 3)
}

fn seconds_in(seconds: f64, count: usize) -> String {
    // Values that round up to 1 of a unit are printed in that unit.
    let fits = SECONDS.into_iter().find(|(_, per_s)| seconds.abs() * per_s >= 0.99995);
    let (unit, per_s) = fits.unwrap_or(if seconds == 0.0 { SECONDS[0] } else { SECONDS[3] });
    format!("{}{SPACE}{unit}", digits(seconds * per_s, count))
}

/// Formats times that are shown together: all in one unit, with the same number of decimals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    unit: &'static str,
    per_s: f64,
    decimals: usize,
}

impl Clock {
    /// For times up to `largest_s`, which gets four digits.
    pub fn up_to(largest_s: f64) -> Self {
        let fits = SECONDS[..3].iter().find(|(_, per_s)| largest_s * per_s >= 0.1);
        let (unit, per_s) = *fits.unwrap_or(&SECONDS[if largest_s > 0.0 { 3 } else { 0 }]);
        let largest = largest_s * per_s;
        let before_point = if largest < 1.0 { 1 } else { largest.log10().floor() as usize + 1 };
        Self { unit, per_s, decimals: 4usize.saturating_sub(before_point) }
    }

    /// Formats a time given in seconds.
    pub fn print(&self, seconds: f64) -> String {
        format!("{:.*}{SPACE}{}", self.decimals, seconds * self.per_s, self.unit)
    }
}

/// Formats a whole number with groups of thousands: `10 000 000` (with narrow no-break spaces).
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// Formats a fraction or an error as a percentage without sign: `12.5 %`.
pub fn percent(share: f64) -> String {
    format!("{}{SPACE}%", fixed(share * 100.0))
}

/// Formats a deviation as a percentage with sign: `+12.5 %`, `−3 %`.
pub fn signed_percent(share: f64) -> String {
    let text = percent(share.abs());
    match share < 0.0 {
        _ if text == percent(0.0) => text,
        true => format!("\u{2212}{text}"),
        false => format!("+{text}"),
    }
}

/// Formats a number without a unit.
pub fn number(value: f64) -> String {
    digits(value, 4)
}

/// Formats a factor: `1.73×`.
pub fn factor(factor: f64) -> String {
    format!("{}×", digits(factor, 3))
}

/// Formats a count with its noun: `1 file`, `20 files`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{}{SPACE}{}", count(number), if number == 1 { one } else { many })
}

/// Formats seconds since 1970 as RFC 3339 in UTC: `2026-11-21T01:00:00Z`.
pub fn utc(unix_s: u64) -> String {
    let date = DateTime::from_timestamp(unix_s as i64, 0).unwrap_or_default();
    date.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// One decimal below 100, none from there on, no trailing zero.
fn fixed(value: f64) -> String {
    let text = if value.abs() < 99.95 { format!("{value:.1}") } else { format!("{value:.0}") };
    trimmed(text)
}

/// Formats `value` with at most `digits` significant digits (more if they are before the point),
/// without trailing zeros.
fn digits(value: f64, digits: usize) -> String {
    let before_point = if value.abs() < 1.0 { 1 } else { value.abs().log10().floor() as usize + 1 };
    let decimals = digits.saturating_sub(before_point);
    trimmed(format!("{value:.decimals$}"))
}

/// Removes trailing zeros behind a decimal point.
pub(crate) fn trimmed(text: String) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: String) -> String {
        text.replace(SPACE, " ")
    }

    #[test]
    fn bytes_take_the_unit_that_fits() {
        for (value, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (65536, "64 KiB"),
            ((1 << 20) - 1, "1 MiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(plain(bytes(value)), text);
        }
        assert_eq!(plain(bytes_per_s(85.0 * 1048576.0)), "85 MiB/s");
    }

    #[test]
    fn seconds_take_the_unit_that_fits() {
        for (value, text) in [
            (0.0, "0 s"),
            (1338.573, "1339 s"),
            (1.5234, "1.523 s"),
            (0.85, "850 ms"),
            (3.0e-4, "300 µs"),
            (7.95e-9, "7.95 ns"),
            (0.99999, "1 s"),
            (123456.7, "123457 s"),
        ] {
            assert_eq!(plain(seconds(value)), text);
        }
    }

    #[test]
    fn narrow_places_get_fewer_digits() {
        assert_eq!(plain(short_seconds(1.2021e-3)), "1.2 ms");
        assert_eq!(plain(short_seconds(0.033366)), "33.4 ms");
    }

    #[test]
    fn times_beside_one_another_have_one_unit() {
        let print = |largest: f64| [largest, largest / 3.0].map(|s| plain(Clock::up_to(largest).print(s)));
        assert_eq!(print(1338.573), ["1339 s", "446 s"]);
        assert_eq!(print(2.61), ["2.610 s", "0.870 s"]);
        assert_eq!(print(0.15), ["0.150 s", "0.050 s"]);
        assert_eq!(print(0.015), ["15.00 ms", "5.00 ms"]);
        assert_eq!(print(0.0), ["0.000 s", "0.000 s"]);
    }

    #[test]
    fn dates() {
        for (unix_s, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_795_222_800, "2026-11-21T01:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(unix_s), text);
        }
    }

    #[test]
    fn other_numbers() {
        assert_eq!(count(10_000_000), "10\u{202f}000\u{202f}000");
        assert_eq!(count(999), "999");
        assert_eq!(plain(percent(0.125)), "12.5 %");
        assert_eq!(plain(signed_percent(-0.03)), "\u{2212}3 %");
        assert_eq!(plain(signed_percent(0.00001)), "0 %");
        assert_eq!(factor(1.734), "1.73×");
        assert_eq!(plain(counted(1, "file", "files")), "1 file");
    }
}
