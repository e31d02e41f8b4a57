//! The text of profiles, and their noise.

use super::super::noise::{apply, normal_of, parse_sigma, show_sigma};
use super::super::*;
use alloc::format;
use proptest::prelude::*;
use std::vec;

fn any_key() -> impl Strategy<Value = Key> {
    prop_oneof![any::<u32>().prop_map(Key::Created), any::<u32>().prop_map(Key::Own)]
}

fn any_profile() -> impl Strategy<Value = Profile> {
    let record = (any::<u64>(), any::<u64>());
    prop::collection::btree_map(any_key(), record, 0..20).prop_map(|records| {
        Profile::of(records.into_iter().map(|(key, (time, dispatches))| Record {
            key,
            time: Span(time),
            dispatches,
        }))
    })
}

proptest! {
    #[test]
    fn profiles_read_back_as_written(profile in any_profile()) {
        let text = profile.to_string();
        prop_assert_eq!(Profile::parse(&text), Ok(profile.clone()));
        let lines = format!("# of a run\n{}", text.replace(',', " # one\r\n\t"));
        prop_assert_eq!(Profile::parse(&lines), Ok(profile));
    }

    #[test]
    fn any_text_is_a_profile_or_not(text in "[0-9k=/.,# \nmsu]{0,40}|.*") {
        match Profile::parse(&text) {
            Ok(profile) => {
                prop_assert!(profile.records().is_sorted_by(|a, b| a.key < b.key));
                let text = profile.to_string();
                prop_assert_eq!(Profile::parse(&text), Ok(profile));
            }
            Err((record, _)) => prop_assert!(!record.is_empty() && text.contains(record)),
        }
    }

    #[test]
    fn noise_is_the_formula(
        time in any::<u64>(),
        sigma in 0..=10_000_000u32,
        seed in any::<u64>(),
        key in any_key(),
    ) {
        let noisy = apply(Span(time), sigma, seed, key).0;
        let factor = (f64::from(sigma) * 1e-6 * normal_of(seed, key)).exp();
        let float = (time as f64 * factor).min(u64::MAX as f64);
        prop_assert!((noisy as f64 - float).abs() <= 0.5 + float * 1e-12, "{noisy} {float}");
    }
}

#[test]
fn wrong_records_are_named() {
    let form = "a record is KEY=TIME/DISPATCHES without spaces, for example 0=12.5ms/100000";
    let key = "the key is how many tasks are created before, or k and a task's own key, below 2^32";
    let count = "the dispatches are a whole number below 2^64";
    for (text, record, why) in [
        ("0=1ms/1,7", "7", form),
        ("0 = 1ms/1", "0", form),
        ("0=1ms", "0=1ms", form),
        ("0=1ms/1 # fine\nx=1ms/1", "x=1ms/1", key),
        ("k=1ms/1", "k=1ms/1", key),
        ("=1ms/1", "=1ms/1", key),
        ("-1=1ms/1", "-1=1ms/1", key),
        ("4294967296=1ms/1", "4294967296=1ms/1", key),
        ("0=1/1", "0=1/1", "a time needs a unit, for example \"3ms\""),
        ("0=/1", "0=/1", "a time starts with a number, for example \"3ms\""),
        ("0=1ms/", "0=1ms/", count),
        ("0=1ms/+1", "0=1ms/+1", count),
        ("0=1ms/1.5", "0=1ms/1.5", count),
        (
            "1=1ms/1,0=2ms/1,01=3ms/1",
            "01=3ms/1",
            "there is another record with this key; keep one of them",
        ),
    ] {
        assert_eq!(Profile::parse(text), Err((record, why)), "{text}");
        let mut params = PbgParams::default();
        let error = anysched_core::Params::set(&mut params, "profile", text).unwrap_err();
        assert_eq!(error.to_string(), format!("`profile` = \"{record}\": {why}"));
    }
    assert_eq!(Profile::parse(" \n# nothing").unwrap().records(), []);
}

#[test]
fn sigmas_read_back_as_written() {
    for (text, sigma) in
        [("0", 0), ("0.1", 100_000), ("0.000001", 1), ("2", 2_000_000), ("10", 10_000_000)]
    {
        assert_eq!((parse_sigma(text), show_sigma(sigma).as_str()), (Ok(sigma), text));
    }
    assert_eq!((parse_sigma(".25"), parse_sigma("1.")), (Ok(250_000), Ok(1_000_000)));
    for text in ["", ".", "-1", "1e0", "10.000001", "0.0000001", "99999999999999999999", "σ"] {
        assert!(parse_sigma(text).is_err(), "{text}");
    }
    for text in ["noisy", "noisy()", "noisy(1", "loud(1)", "noisy(11)"] {
        assert!(Source::parse(text).is_err(), "{text}");
    }
    assert_eq!(Source::parse(" noisy( 0.5 ) "), Ok(Source::Noisy(500_000)));
    assert_eq!(Source::Noisy(500_000).show(), "noisy(0.5)");
}

/// Of 50 000 numbers: a mean of 0 and a variance of 1, within four standard errors.
#[test]
fn drawn_numbers_are_normal() {
    let draws: Vec<f64> =
        (0..50_000).map(|n| normal_of(n / 100, Key::Created((n % 100) as u32))).collect();
    let count = draws.len() as f64;
    let mean = draws.iter().sum::<f64>() / count;
    let variance = draws.iter().map(|z| z * z).sum::<f64>() / count;
    assert!(mean.abs() < 4.0 / count.sqrt(), "{mean}");
    assert!((variance - 1.0).abs() < 4.0 * (2.0 / count).sqrt(), "{variance}");
    let below = draws.iter().filter(|&&z| z < -1.0).count() as f64 / count;
    assert!((below - 0.158_655).abs() < 4.0 * (0.1335 / count).sqrt(), "{below}");
    let own = normal_of(3, Key::Own(5));
    assert!(own != normal_of(3, Key::Created(5)) && own != normal_of(4, Key::Own(5)));
}

/// The distribution of the sum of 48 uniform numbers, by convolution over 256 steps each, beside
/// the integral of the normal density.
#[test]
fn sums_of_48_are_normal_enough() {
    const STEPS: usize = 256;
    let mut density = vec![1.0f64];
    for _ in 0..48 {
        let mut next = vec![0.0; density.len() + STEPS - 1];
        let mut window = 0.0;
        for (place, value) in next.iter_mut().enumerate() {
            window += density.get(place).copied().unwrap_or(0.0);
            window -= place.checked_sub(STEPS).and_then(|old| density.get(old)).unwrap_or(&0.0);
            *value = window / STEPS as f64;
        }
        density = next;
    }
    let deviation = (48.0 * ((STEPS * STEPS) as f64 - 1.0) / 12.0).sqrt();
    let middle = (density.len() - 1) as f64 / 2.0;
    let (mut sum, mut normal, mut worst) = (0.0, 0.0, 0.0f64);
    for (place, value) in density.iter().enumerate() {
        let z = (place as f64 - middle) / deviation;
        sum += value;
        normal += (-z * z / 2.0).exp() / (deviation * core::f64::consts::TAU.sqrt());
        worst = worst.max((sum - normal).abs());
    }
    assert!((sum - 1.0).abs() < 1e-9 && (normal - 1.0).abs() < 1e-9);
    assert!(worst < 0.0007, "{worst}");
}
