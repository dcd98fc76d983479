//! Formats sizes and numbers.

/// Formats a size in the unit that leaves up to three digits before the point: "999 B", "1.4 MB", "12 GB".
///
/// Units are powers of a thousand, as disks and file managers use them.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    // In tenths of the unit, rounded half up; integers, so that rounding carries exactly.
    let mut divisor: u128 = 1000;
    let mut unit = 0;
    let tenths = |divisor: u128| (u128::from(bytes) * 10 + divisor / 2) / divisor;
    while tenths(divisor) >= 10_000 {
        divisor *= 1000;
        unit += 1;
    }
    let unit = UNITS[unit];
    match tenths(divisor) {
        tenths @ 0..100 => format!("{}.{} {unit}", tenths / 10, tenths % 10),
        tenths => format!("{} {unit}", (tenths + 5).min(9_999) / 10),
    }
}

/// Formats a number with thousands separators: "12,345".
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a number with its noun: "1 entry", "1,200 entries".
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_readable_units() {
        for (bytes, wanted) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (1_449, "1.4 kB"),
            (9_949, "9.9 kB"),
            (9_950, "10 kB"),
            (12_345, "12 kB"),
            (999_499, "999 kB"),
            (999_950, "1.0 MB"),
            (1_400_000, "1.4 MB"),
            (1_500_000_000, "1.5 GB"),
            (u64::MAX, "18 EB"),
        ] {
            assert_eq!(size(bytes), wanted, "{bytes}");
        }
    }

    #[test]
    fn numbers_have_separators() {
        for (number, wanted) in
            [(0, "0"), (999, "999"), (1000, "1,000"), (12_345, "12,345"), (1_234_567, "1,234,567")]
        {
            assert_eq!(count(number), wanted);
        }
        assert_eq!(counted(1, "entry", "entries"), "1 entry");
        assert_eq!(counted(0, "entry", "entries"), "0 entries");
    }
}
