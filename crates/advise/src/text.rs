//! Numbers and names for people.

/// A number of bytes with its largest unit: `1.5 GiB` is `1.5G`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [(&str, u32); 5] = [("P", 50), ("T", 40), ("G", 30), ("M", 20), ("K", 10)];
    let Some((unit, shift)) = UNITS.into_iter().find(|(_, shift)| bytes >> shift > 0) else {
        return format!("{bytes} bytes");
    };
    let value = bytes as f64 / (1u64 << shift) as f64;
    if value < 9.95 && value.fract() >= 0.05 {
        format!("{value:.1}{unit}")
    } else {
        format!("{value:.0}{unit}")
    }
}

/// A time: `0.3 ms`, `49 s`, `11 h`.
pub fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 0.0005 => format!("{:.2} ms", s * 1e3),
        s if s < 0.95 => format!("{:.0} ms", s * 1e3),
        s if s < 9.95 => format!("{s:.1} s"),
        s if s < 10_000.0 => format!("{s:.0} s"),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// A share of the whole: `42 %`.
pub fn percent(share: f64) -> String {
    match 100.0 * share {
        p if p < 0.1 => "under 0.1 %".to_owned(),
        p if p < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// An upper bound: `at most 42 %`.
pub fn at_most(share: f64) -> String {
    if share < 0.001 { "at most 0.1 %".to_owned() } else { format!("at most {}", percent(share)) }
}

/// A number with separators of thousands: `131,072`.
pub fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1 file`, `48 files`.
pub fn count(many: u64, noun: &str) -> String {
    if many == 1 { format!("1 {noun}") } else { format!("{} {noun}s", number(many)) }
}

/// The last part of a path, at most `width` characters.
pub fn base_name(path: &str, width: usize) -> String {
    shortened(path.rsplit('/').next().unwrap_or(path), width)
}

/// At most `width` characters of a text, with dots in the middle for those that are missing.
pub fn shortened(text: &str, width: usize) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= width || width < 8 {
        return letters.into_iter().take(width).collect();
    }
    let front = (width - 3) / 2;
    let back = width - 3 - front;
    let (front, back) = (&letters[..front], &letters[letters.len() - back..]);
    front.iter().chain(&['.', '.', '.']).chain(back).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn for_people() {
        assert_eq!(
            [0, 1023, 1024, 1536, 2_199_023_259_968].map(bytes),
            ["0 bytes", "1023 bytes", "1K", "1.5K", "2T"]
        );
        assert_eq!(
            [0.000_21, 0.049, 7.24, 49.2, 39_213.0].map(seconds),
            ["0.21 ms", "49 ms", "7.2 s", "49 s", "10.9 h"]
        );
        assert_eq!([0.0002, 0.042, 0.42].map(percent), ["under 0.1 %", "4.2 %", "42 %"]);
        assert_eq!([7, 1000, 131_072].map(number), ["7", "1,000", "131,072"]);
        assert_eq!(base_name("/a/b/c.h5", 20), "c.h5");
    }

    proptest! {
        #[test]
        fn a_shortened_text_is_short(text in "\\PC{0,60}", width in 8usize..50) {
            prop_assert!(shortened(&text, width).chars().count() <= width);
        }
    }
}
