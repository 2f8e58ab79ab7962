//! Sizes in bytes, as they are typed and as they are shown.
//!
//! A unit is a power of 1024 however it is spelt: `8k`, `8kB` and `8KiB` are 8192, as messages of
//! "8 kB" have always been.

/// The letters of the units, each 1024 times the one before.
const UNITS: [char; 4] = ['k', 'M', 'G', 'T'];

/// Reads a size such as `8192`, `8k`, `8KiB`, `8kB`, `1M` or `4MiB`.
///
/// # Errors
/// A sentence that says what would be right.
pub(crate) fn parse(text: &str) -> Result<usize, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim_start();
    let letter = unit.chars().next().filter(|letter| !matches!(letter, 'b' | 'B'));
    let rest = letter.map_or(unit, |letter| &unit[letter.len_utf8()..]);
    let power = match letter {
        None => Some(0),
        Some(letter) => {
            let place = UNITS.iter().position(|unit| unit.eq_ignore_ascii_case(&letter));
            place.map(|place| place + 1)
        }
    };
    let spelt = match rest {
        "" | "B" | "b" => true,
        "iB" | "ib" => letter.is_some(),
        _ => false,
    };
    let (Some(power), true, false) = (power, spelt, number.is_empty()) else {
        return Err(format!("`{text}` is no size: write bytes, as in 8192, 8k, 8KiB, 1M or 4MiB"));
    };
    let factor = 1_usize.checked_shl(10 * u32::try_from(power).unwrap_or(u32::MAX));
    let bytes = number.parse::<usize>().ok().zip(factor);
    bytes
        .and_then(|(number, factor)| number.checked_mul(factor))
        .ok_or_else(|| format!("`{text}` is more than this machine can count: use at most 1T"))
}

/// Reads a size that is divided into doubles, for measuring.
///
/// # Errors
/// A sentence that says what would be right.
pub(crate) fn parse_doubles(text: &str) -> Result<u64, String> {
    const MOST_BYTES: usize = 1 << 30;
    let bytes = parse(text)?;
    if bytes == 0 || bytes % 8 != 0 {
        return Err(format!("{bytes} bytes are no whole doubles: use a multiple of 8"));
    }
    if bytes > MOST_BYTES {
        return Err(format!("{} is too large to measure: use at most 1 GiB", shown(bytes as u64)));
    }
    Ok(bytes as u64)
}

/// A size with the largest unit that divides it: `8 B`, `4 KiB`, `1536 B`.
pub(crate) fn shown(bytes: u64) -> String {
    let power = (bytes.trailing_zeros() / 10).min(3);
    match power {
        _ if bytes == 0 => "0 B".to_owned(),
        0 => format!("{bytes} B"),
        power => format!("{} {}iB", bytes >> (10 * power), ["K", "M", "G"][power as usize - 1]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_1024() {
        let sizes = ["8192", "8k", "8K", "8KiB", "8kB", "8kb", "8 KiB", "8192B", "0", "1M", "4MiB"];
        let bytes = sizes.map(|size| parse(size).unwrap());
        let mib = 1 << 20;
        assert_eq!(bytes, [8192, 8192, 8192, 8192, 8192, 8192, 8192, 8192, 0, mib, 4 * mib]);
        assert_eq!(parse("3G"), Ok(3 << 30));
    }

    #[test]
    fn what_is_no_size_is_told_what_would_be() {
        for bad in ["banana", "", "k", "-8", "8.5k", "8x", "8iB", "8kBB", "8kilo", "0x10", "∞"] {
            let error = parse(bad).unwrap_err();
            assert!(error.contains(bad) && error.contains("8KiB"), "{error}");
        }
        assert!(parse("99999999999999999999").unwrap_err().contains("at most"));
        assert!(parse("99999999T").unwrap_err().contains("at most"));
    }

    #[test]
    fn doubles_are_whole() {
        assert_eq!(parse_doubles("8k"), Ok(8192));
        for bad in ["0", "10", "2G", "banana"] {
            assert!(parse_doubles(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_unit_divides_what_is_shown() {
        let sizes = [0, 8, 1536, 4096, 3 << 20, 1 << 30, 1 << 45].map(shown);
        assert_eq!(sizes, ["0 B", "8 B", "1536 B", "4 KiB", "3 MiB", "1 GiB", "32768 GiB"]);
    }
}
