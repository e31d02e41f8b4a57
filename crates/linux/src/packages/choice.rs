//! Which of a suite's kernels is taken.

use std::cmp::Ordering;

/// A package that can be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Offer {
    /// Its name.
    pub(super) name: String,
    /// Its version.
    pub(super) version: String,
}

/// The packages in the output of `apt-cache madison`. Lines that are none are skipped.
pub(super) fn offers(madison: &str) -> impl Iterator<Item = Offer> {
    madison.lines().filter_map(|line| {
        let mut fields = line.split('|').map(str::trim);
        let (name, version, source) = (fields.next()?, fields.next()?, fields.next()?);
        let is_package = !name.is_empty() && !version.is_empty() && source.ends_with(" Packages");
        is_package.then(|| Offer { name: name.into(), version: version.into() })
    })
}

/// A kernel and its packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kernel {
    /// What `uname -r` says.
    pub(super) release: String,
    /// The package that has the image.
    pub(super) image: String,
}

impl Kernel {
    /// The package that has the headers.
    pub(super) fn headers(&self) -> String {
        format!("{HEADERS}{}", self.release)
    }
}

const HEADERS: &str = "linux-headers-";

/// What packages with an image begin with, the likeliest first.
pub(super) const IMAGES: [&str; 2] = ["linux-binary-", "linux-image-"];

/// Kernels by preference: those for virtual machines are smaller.
const FLAVOURS: [&str; 2] = ["-cloud-amd64", "-amd64"];

/// The newest kernel of at least `version` that has headers and an image.
///
/// Errors: what was looked for, and what was there.
pub(super) fn newest(offers: &[Offer], version: &str) -> Result<Kernel, String> {
    for flavour in FLAVOURS {
        let mut headers: Vec<&Offer> =
            offers.iter().filter(|offer| full(&offer.name, HEADERS, flavour)).collect();
        headers.retain(|offer| compare(&offer.version, version).is_ge());
        headers.sort_by(|a, b| compare(&b.version, &a.version));
        let found = headers.iter().find_map(|offer| {
            let release = offer.name.strip_prefix(HEADERS)?;
            let image = image(offers, release)?;
            Some(Kernel { release: release.into(), image })
        });
        if let Some(kernel) = found {
            return Ok(kernel);
        }
    }
    let all = || offers.iter().filter(|offer| full(&offer.name, HEADERS, FLAVOURS[1]));
    let clouds = offers.iter().filter(|offer| full(&offer.name, HEADERS, FLAVOURS[0]));
    let newest = clouds.chain(all()).max_by(|a, b| compare(&a.version, &b.version));
    let there = newest.map_or("there are no headers".into(), |Offer { name, version }| {
        format!("the newest headers are {name} {version}")
    });
    Err(format!(
        "no {HEADERS}VERSION-cloud-amd64 or -amd64 of {version} or later that has a {}VERSION or {}\
         VERSION beside it; {there}",
        IMAGES[0], IMAGES[1]
    ))
}

/// The package with the image of `release`.
fn image(offers: &[Offer], release: &str) -> Option<String> {
    let names = IMAGES.map(|prefix| format!("{prefix}{release}"));
    names.into_iter().find(|name| offers.iter().any(|offer| offer.name == *name))
}

/// The newest cloud kernel of the series `series`, like `6.1`.
///
/// Errors: what was looked for.
pub(super) fn newest_of_series(offers: &[Offer], series: &str) -> Result<Kernel, String> {
    let flavour = FLAVOURS[0];
    let of_series = |offer: &&Offer| {
        let rest = offer.name.strip_prefix(IMAGES[1]).and_then(|rest| rest.strip_prefix(series));
        rest.is_some_and(|rest| rest.starts_with(['.', '+', '-']))
            && full(&offer.name, IMAGES[1], flavour)
    };
    let newest = offers.iter().filter(of_series).max_by(|a, b| compare(&a.version, &b.version));
    let kernel = newest.and_then(|Offer { name, .. }| {
        Some(Kernel { release: name.strip_prefix(IMAGES[1])?.into(), image: name.clone() })
    });
    kernel.ok_or_else(|| format!("there is no {}{series}.*{flavour}", IMAGES[1]))
}

/// Whether a name is that of a kernel of this flavour: metapackages have no version in their name,
/// or only that of a series (`6.12`); those of other flavours have a word after it.
fn full(name: &str, prefix: &str, flavour: &str) -> bool {
    let version = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(flavour));
    version.is_some_and(|version| {
        let upstream = version.split(['+', '-']).next().unwrap_or_default();
        upstream.split('.').count() >= 3
            && version.split('-').all(|part| part.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// Debian's order of versions (Debian Policy Manual, section 5.6.12): epoch, then version, then
/// revision.
pub(super) fn compare(a: &str, b: &str) -> Ordering {
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

    const FORKY: &str = include_str!("fixtures/forky.madison");
    const SID: &str = include_str!("fixtures/sid.madison");
    const BACKPORTS: &str = include_str!("fixtures/trixie-backports.madison");
    const BOOKWORM: &str = include_str!("fixtures/bookworm.madison");

    fn all(madison: &str) -> Vec<Offer> {
        offers(madison).collect()
    }

    #[test]
    fn the_newest_cloud_kernel_is_taken() {
        let expected = [
            (FORKY, "7.2.12+deb14-cloud-amd64"),
            (SID, "7.2.13+deb14-cloud-amd64"),
            (BACKPORTS, "7.3.4+deb13-cloud-amd64"),
        ];
        for (madison, release) in expected {
            let kernel = newest(&all(madison), "7.2").unwrap();
            assert_eq!(kernel.release, release);
            assert_eq!(kernel.image, format!("linux-binary-{release}"));
            assert_eq!(kernel.headers(), format!("linux-headers-{release}"));
        }
    }

    #[test]
    fn a_kernel_without_an_image_is_passed_over() {
        let mut offers = all(BACKPORTS);
        offers.retain(|offer| {
            !IMAGES.iter().any(|image| offer.name == format!("{image}7.3.4+deb13-cloud-amd64"))
        });
        assert_eq!(newest(&offers, "7.2").unwrap().release, "7.2.12+deb13-cloud-amd64");
        offers.retain(|offer| !offer.name.starts_with(IMAGES[0]));
        let kernel = newest(&offers, "7.2").unwrap();
        assert_eq!(kernel.image, "linux-image-7.2.12+deb13-cloud-amd64");
    }

    #[test]
    fn without_cloud_kernels_a_plain_one_is_taken() {
        let mut offers = all(SID);
        offers.retain(|offer| !offer.name.contains("-cloud-"));
        assert_eq!(newest(&offers, "7.2").unwrap().release, "7.2.13+deb14-amd64");
    }

    #[test]
    fn an_old_suite_says_what_it_has() {
        assert_eq!(
            newest(&all(BOOKWORM), "7.2").unwrap_err(),
            "no linux-headers-VERSION-cloud-amd64 or -amd64 of 7.2 or later that has a \
             linux-binary-VERSION or linux-image-VERSION beside it; the newest headers are \
             linux-headers-6.1.0-50-amd64 6.1.176-1"
        );
        assert!(newest(&[], "7.2").unwrap_err().ends_with("; there are no headers"));
    }

    #[test]
    fn a_series_is_not_its_prefix() {
        let kernel = newest_of_series(&all(BOOKWORM), "6.1").unwrap();
        assert_eq!(kernel.image, format!("linux-image-{}", kernel.release));
        assert!(kernel.release.starts_with("6.1.0-"), "{kernel:?}");
        let error = newest_of_series(&all(BACKPORTS), "6.1").unwrap_err();
        assert_eq!(error, "there is no linux-image-6.1.*-cloud-amd64");
    }

    #[test]
    fn names_that_do_not_fit() {
        let fits = |name: &str| full(name, HEADERS, "-amd64");
        assert!(fits("linux-headers-7.2.13+deb14-amd64"));
        assert!(fits("linux-headers-6.1.0-38-amd64"));
        for name in [
            "linux-headers-amd64",
            "linux-headers-cloud-amd64",
            "linux-headers-6.12-amd64",
            "linux-headers-7.2.13+deb14-cloud-amd64",
            "linux-headers-7.2.13+deb14-rt-amd64",
            "linux-headers-7.2.13+deb14-common",
            "linux-headers-7.2.13+deb14-arm64",
            "linux-image-7.2.13+deb14-amd64",
        ] {
            assert!(!fits(name), "{name}");
        }
    }

    #[test]
    fn lines_that_are_no_packages_are_skipped() {
        let text = "\
N: Unable to locate package linux-binary-6.1
linux | 7.2.13-1 | http://deb.debian.org/debian sid/main Sources
 | 1 | http://deb.debian.org/debian sid/main amd64 Packages
make |    4.4.1-3 | http://deb.debian.org/debian sid/main amd64 Packages
";
        assert_eq!(all(text), [Offer { name: "make".into(), version: "4.4.1-3".into() }]);
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
