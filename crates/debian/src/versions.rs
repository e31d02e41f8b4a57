//! Which versions of packages there are, and their order.

use std::cmp::Ordering;

/// A package that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The packages in the output of `apt-cache madison`. Lines that are none are skipped.
pub fn offers(madison: &str) -> impl Iterator<Item = Offer> {
    madison.lines().filter_map(|line| {
        let mut fields = line.split('|').map(str::trim);
        let (name, version, source) = (fields.next()?, fields.next()?, fields.next()?);
        let is_package = !name.is_empty() && !version.is_empty() && source.ends_with(" Packages");
        is_package.then(|| Offer { name: name.into(), version: version.into() })
    })
}

/// Debian's order of versions (Debian Policy Manual, section 5.6.12): epoch, then version, then
/// revision.
pub fn compare(a: &str, b: &str) -> Ordering {
    let parts = |version: &str| {
        let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
        let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
        [epoch.to_string(), upstream.to_string(), revision.to_string()]
    };
    let mut order = Ordering::Equal;
    for (a, b) in parts(a).iter().zip(&parts(b)) {
        order = order.then_with(|| compare_part(a.as_bytes(), b.as_bytes()));
    }
    order
}

/// Characters and numbers in turns: characters by rank, numbers by value.
fn compare_part(mut a: &[u8], mut b: &[u8]) -> Ordering {
    while !(a.is_empty() && b.is_empty()) {
        let not_a_digit = |part: &&[u8]| part.first().is_some_and(|byte| !byte.is_ascii_digit());
        while not_a_digit(&a) || not_a_digit(&b) {
            let order = rank(a.first()).cmp(&rank(b.first()));
            if order.is_ne() {
                return order;
            }
            (a, b) = (a.get(1..).unwrap_or_default(), b.get(1..).unwrap_or_default());
        }
        let (number_a, rest_a) = leading_number(a);
        let (number_b, rest_b) = leading_number(b);
        let order = number_a.len().cmp(&number_b.len()).then_with(|| number_a.cmp(number_b));
        if order.is_ne() {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
    Ordering::Equal
}

/// The digits at the beginning, without leading zeros, and what follows them.
fn leading_number(part: &[u8]) -> (&[u8], &[u8]) {
    let end = part.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(part.len());
    let (digits, rest) = part.split_at(end);
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    (&digits[zeros..], rest)
}

/// `~` comes before the end, the end before letters, letters before all else.
fn rank(byte: Option<&u8>) -> i32 {
    match byte {
        Some(b'~') => -1,
        None => 0,
        Some(byte) if byte.is_ascii_digit() => 0,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(*byte),
        Some(byte) => i32::from(*byte) + 256,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_packages_are_skipped() {
        let text = "\
N: Unable to locate package linux-binary-6.1
linux | 7.2.13-1 | http://deb.debian.org/debian sid/main Sources
 | 1 | http://deb.debian.org/debian sid/main amd64 Packages
make |    4.4.1-3 | http://deb.debian.org/debian sid/main amd64 Packages
";
        assert_eq!(
            offers(text).collect::<Vec<_>>(),
            [Offer { name: "make".into(), version: "4.4.1-3".into() }]
        );
    }

    #[test]
    fn versions_are_ordered_as_dpkg_does() {
        let ascending = [
            "0.9",
            "1.0~rc1-1",
            "1.0-1~bpo13+1",
            "1.0-1",
            "1.0-1+b1",
            "1.0-2",
            "1.0a",
            "1.0+dfsg",
            "1.0.1",
            "1.9",
            "1.10",
            "7.2~rc4-1~exp1",
            "7.2",
            "7.2-1",
            "7.2.9-1",
            "7.2.10-1",
            "1:0.1",
        ];
        for pair in ascending.windows(2) {
            assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
            assert_eq!(compare(pair[1], pair[0]), Ordering::Greater, "{pair:?}");
        }
        assert_eq!(compare("1.01-1", "1.1-1"), Ordering::Equal);
        assert_eq!(compare("0:1", "1"), Ordering::Equal);
    }
}
