//! Which of a suite's kernels is taken.

use anysched_debian::{Offer, compare};

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

#[cfg(test)]
mod tests {
    use super::*;
    use anysched_debian::offers;

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
}
