use super::*;
use crate::rng::Rng;
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn dist(text: &str) -> Dist {
    Dist::parse(text, Path::new("")).unwrap_or_else(|error| panic!("{error}"))
}

fn close(found: f64, wanted: f64, relative: f64) {
    let bound = relative * wanted.abs();
    assert!((found - wanted).abs() <= bound, "{found}, not {wanted} within {bound}");
}

const CONTINUOUS: [&str; 10] = [
    "uniform(1ms, 5ms)",
    "exp(10ms)",
    "lognormal(10ms, 1.0)",
    "lognormal(median=2us, sigma=0.25)",
    "pareto(1.5, 1ms, 10s)",
    "pareto(1, 1ms, 10ms)",
    "pareto(2, 1ms, 2ms)",
    "hyperexp(0.9: 1ms, 0.1: 50ms)",
    "hyperexp(10ms, cv2=4)",
    "hyperexp(10ms, cv2=1)",
];

/// Mean and variance by hand, in ms and ms².
#[test]
fn moments_of_known_cases() {
    let e = std::f64::consts::E;
    let ln2 = std::f64::consts::LN_2;
    let (ln10, ln10_000) = (std::f64::consts::LN_10, 4.0 * std::f64::consts::LN_10);
    for (text, mean, variance) in [
        ("10ms", 10.0, 0.0),
        ("uniform(1ms, 5ms)", 3.0, 4.0 / 3.0),
        ("exp(10ms)", 10.0, 100.0),
        ("lognormal(10ms, 1)", 10.0, 100.0 * (e - 1.0)),
        ("lognormal(median=10ms, sigma=1)", 10.0 * e.sqrt(), 100.0 * e * (e - 1.0)),
        // With L = 1 and H = 2: F = (1 - x^-2) / (3/4), E[X] = 2 · 4/3 · (1 - 1/2).
        ("pareto(2, 1ms, 2ms)", 4.0 / 3.0, 8.0 / 3.0 * ln2 - 16.0 / 9.0),
        ("pareto(1, 1ms, 10ms)", 10.0 / 9.0 * ln10, 10.0 - (10.0 / 9.0 * ln10).powi(2)),
        // E[X] = 1.5 · (1 - 10^-2) / 0.5 / kept, E[X²] = 1.5 · (10^2 - 1) / 0.5 / kept.
        ("pareto(1.5, 1ms, 10s)", 2.97 / (1.0 - 1e-6), 297.0 / (1.0 - 1e-6) - 8.820_917_640_026_46),
        ("pareto(2, 1ms, 10s)", 2.0 * (1.0 - 1e-4) / (1.0 - 1e-8), {
            let mean: f64 = 2.0 * (1.0 - 1e-4) / (1.0 - 1e-8);
            2.0 * ln10_000 / (1.0 - 1e-8) - mean * mean
        }),
        ("hyperexp(0.9: 1ms, 0.1: 50ms)", 5.9, 466.99),
        ("hyperexp(10ms, cv2=4)", 10.0, 400.0),
    ] {
        let dist = dist(text);
        close(dist.mean(), mean * 1e6, 1e-12);
        close(dist.variance(), variance * 1e12, 1e-9);
    }
}

/// The formulas of the phases agree with the mean and variation they are made from.
#[test]
fn balanced_means_have_the_wanted_moments() {
    for cv2 in [1.0, 1.0001, 4.0, 250.0, 1e6, 1e9] {
        let [common, rare] = balanced(10.0, cv2);
        close(common.probability + rare.probability, 1.0, 1e-15);
        close(common.probability * common.mean, 5.0, 1e-12);
        close(rare.probability * rare.mean, 5.0, 1e-12);
        let square = [common, rare].map(|p| 2.0 * p.probability * p.mean * p.mean);
        close(square[0] + square[1] - 100.0, cv2 * 100.0, 1e-8);
    }
}

/// E[X] = ∫ 1 − F and E[X²] = ∫ 2x (1 − F), and F = ∫ density, in steps of the logarithm.
#[test]
fn cdf_density_and_moments_agree() {
    for text in CONTINUOUS {
        let dist = dist(text);
        let (low, high) = (0.5f64, dist.quantile(1.0 - 1e-15));
        let steps = 400_000;
        let width = (high / low).ln() / f64::from(steps);
        let (mut mean, mut square, mut mass) = (low, low * low, 0.0);
        for step in 0..steps {
            let x = low * ((f64::from(step) + 0.5) * width).exp();
            let above = 1.0 - dist.cdf(x);
            mean += above * x * width;
            square += 2.0 * x * above * x * width;
            mass += dist.density(x).unwrap() * x * width;
        }
        close(mean, dist.mean(), 2e-5);
        close(square, dist.variance() + dist.mean() * dist.mean(), 5e-5);
        close(mass, 1.0, 5e-5);
    }
}

/// E\[min(S, x)\] = ∫ 1 − F from 0 to x.
#[test]
fn limited_means_are_the_area_above_the_cdf() {
    let uniform = dist("uniform(1ms, 5ms)");
    // Up to 3 ms: 1 ms in full, then 2 ms at 1 − F = 1 ..= 1/2.
    close(uniform.limited_mean(3e6), 2.5e6, 1e-15);
    close(dist("exp(10ms)").limited_mean(1e7), 1e7 * (1.0 - (-1.0f64).exp()), 1e-15);
    assert_eq!(dist("7us").limited_mean(5e3), 5e3);
    assert_eq!(dist("7us").limited_mean(9e3), 7e3);
    for text in CONTINUOUS {
        let dist = dist(text);
        for p in [0.01, 0.3, 0.7, 0.99] {
            let x = dist.quantile(p);
            let steps = 100_000;
            let width = x / f64::from(steps);
            let above = |step| 1.0 - dist.cdf((f64::from(step) + 0.5) * width);
            let area = (0..steps).map(above).sum::<f64>() * width;
            close(dist.limited_mean(x), area, 1e-6);
        }
        close(dist.limited_mean(dist.quantile(1.0 - 1e-15)), dist.mean(), 2e-4);
        assert_eq!(dist.limited_mean(f64::INFINITY), dist.mean());
        assert_eq!((dist.limited_mean(0.0), dist.limited_mean(-1.0)), (0.0, 0.0));
    }
}

#[test]
fn log_density_is_the_logarithm_of_the_density() {
    for text in CONTINUOUS {
        let dist = dist(text);
        for p in [0.001, 0.2, 0.5, 0.8, 0.999] {
            let x = dist.quantile(p);
            close(dist.log_density(x).unwrap(), dist.density(x).unwrap().ln(), 1e-12);
        }
        assert_eq!(dist.log_density(-1.0), Some(f64::NEG_INFINITY), "{text}");
    }
    // e^-1000 underflows.
    close(dist("exp(1ns)").log_density(1000.0).unwrap(), -1000.0, 1e-15);
    close(dist("hyperexp(0.5: 1ns, 0.5: 1ns)").log_density(1000.0).unwrap(), -1000.0, 1e-15);
    assert_eq!(dist("7us").log_density(7e3), None);
}

#[test]
fn formulas_have_the_parameters() {
    let formulas = dist("exp(10ms)").formulas();
    assert_eq!(formulas.density, "e^(−t / 10ms) / 10ms");
    assert_eq!(formulas.cdf, "1 − e^(−t / 10ms)");
    assert_eq!(formulas.inverse, "−10ms · ln(1 − u)");
    assert_eq!(dist("uniform(1ms, 5ms)").formulas().inverse, "1ms + u · 4ms");
    let lognormal = dist("lognormal(median=3ms, sigma=2)").formulas();
    assert_eq!(lognormal.cdf, "Φ(ln(t / 3ms) / 2)");
    let pareto = dist("pareto(2, 1ms, 2ms)").formulas();
    assert_eq!(pareto.cdf, "(1 − (1ms / t)^2) / K, K = 1 − (1ms / 2ms)^2");
}

#[test]
fn values_make_a_distribution() {
    let values = Dist::of_values([3, 1, 2].map(Span).to_vec(), "these").unwrap();
    assert_eq!((values.to_string().as_str(), values.mean()), ("empirical(these)", 2.0));
    assert_eq!((values.cdf(2.0), values.limited_mean(2.0)), (2.0 / 3.0, 5.0 / 3.0));
    assert_eq!(Dist::of_values(Vec::new(), "none"), None);
}

#[test]
fn samples_have_the_mean_and_variance() {
    for (number, text) in CONTINUOUS.into_iter().chain(["7us"]).enumerate() {
        let dist = dist(text);
        let mut rng = Rng::numbered(2, "moments", number as u64);
        let n = 200_000;
        let samples: Vec<f64> = (0..n).map(|_| dist.sample(&mut rng).0 as f64).collect();
        let n = f64::from(n);
        let mean = samples.iter().sum::<f64>() / n;
        let power = |k| samples.iter().map(|x| (x - dist.mean()).powi(k)).sum::<f64>() / n;
        // Five standard errors, and the ns to which samples are rounded.
        let bound = 5.0 * (dist.variance() / n).sqrt() + 0.5;
        assert!((mean - dist.mean()).abs() <= bound, "{text}: mean {mean}");
        let bound = 5.0 * ((power(4) - dist.variance().powi(2)).max(0.0) / n).sqrt() + 1.0;
        let variance = power(2);
        assert!((variance - dist.variance()).abs() <= bound, "{text}: variance {variance}");
    }
}

/// Kolmogorov-Smirnov: sqrt(n)·D exceeds 2.5 with probability 7·10^-6.
#[test]
fn samples_follow_the_cdf() {
    let file = write("ks", "5us\n1us\n1us\n20us\n");
    let empirical = Dist::parse("empirical(ks)", file.parent().unwrap()).unwrap();
    let dists = CONTINUOUS.iter().map(|text| dist(text)).chain([dist("7us"), empirical]);
    for (number, dist) in dists.enumerate() {
        let mut rng = Rng::numbered(3, "ks", number as u64);
        let n = 100_000;
        let mut samples: Vec<u64> = (0..n).map(|_| dist.sample(&mut rng).0).collect();
        samples.sort_unstable();
        let mut distance = 0.0f64;
        for (rank, value) in samples.iter().enumerate() {
            // A sample v stands for the values v − ½ .. v + ½.
            let (below, upto) = (dist.cdf(*value as f64 - 0.5), dist.cdf(*value as f64 + 0.5));
            let first = rank == 0 || samples[rank - 1] != *value;
            let last = rank + 1 == samples.len() || samples[rank + 1] != *value;
            if first {
                distance = distance.max((below - rank as f64 / f64::from(n)).abs());
            }
            if last {
                distance = distance.max((upto - (rank + 1) as f64 / f64::from(n)).abs());
            }
        }
        assert!(distance * f64::from(n).sqrt() < 2.5, "{dist}: {distance}");
    }
    std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
}

#[test]
fn quantile_and_cdf_are_inverses() {
    for text in CONTINUOUS {
        let dist = dist(text);
        for step in 1..1000 {
            let p = f64::from(step) / 1000.0;
            let x = dist.quantile(p);
            close(dist.cdf(x), p, 1e-12);
            close(dist.quantile(dist.cdf(x)), x, 1e-11);
        }
        assert_eq!(dist.quantile(-1.0), dist.quantile(0.0), "{text}");
        assert_eq!(dist.cdf(dist.quantile(1.0)), 1.0, "{text}");
        assert_eq!((dist.cdf(0.0), dist.cdf(-5.0)), (0.0, 0.0), "{text}");
    }
    assert_eq!(dist("exp(1ms)").quantile(1.0), f64::INFINITY);
    close(dist("exp(1ms)").quantile(0.5), 1e6 * std::f64::consts::LN_2, 1e-15);
    close(dist("lognormal(median=3ms, sigma=2)").quantile(0.5), 3e6, 1e-14);
    assert_eq!(dist("uniform(5ms, 5ms)").sample(&mut Rng::from_seed(1)), Span::from_ms(5));
}

/// A file in a directory of its own.
fn write(name: &str, text: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("anysched-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn empirical_samples_come_from_the_file() {
    let file = write("empirical.csv", "\u{feff}service_ns\n# three of them\n3us\n\n1000\n 2us \n");
    let dir = file.parent().unwrap();
    let dist = Dist::parse("empirical( empirical.csv )", dir).unwrap();
    assert_eq!(dist.to_string(), "empirical(empirical.csv)");
    assert_eq!(dist, Dist::parse(&dist.to_string(), dir).unwrap());
    close(dist.mean(), 2000.0, 1e-15);
    close(dist.variance(), 2e6 / 3.0, 1e-15);
    assert_eq!([0.0, 0.3, 0.34, 0.67, 1.0].map(|p| dist.quantile(p)), [1e3, 1e3, 2e3, 3e3, 3e3]);
    assert_eq!(
        [999.0, 1000.0, 2999.0, 3000.0].map(|x| dist.cdf(x)),
        [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0]
    );
    for k in 1..=3 {
        let p = f64::from(k) / 3.0;
        assert_eq!(dist.cdf(dist.quantile(p)), p);
    }
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn quantiles_of_large_samples_hit_their_ranks() {
    // For some n, k/n·n is above or below k in floating point.
    let text: String = (1..=200u32).map(|n| format!("{n}\n")).collect();
    let file = write("ranks.csv", &text);
    for n in 1..=200u32 {
        let short: String = text.lines().take(n as usize).map(|line| format!("{line}\n")).collect();
        std::fs::write(&file, short).unwrap();
        let dist = Dist::parse("empirical(ranks.csv)", file.parent().unwrap()).unwrap();
        for k in 1..=n {
            assert_eq!(dist.quantile(f64::from(k) / f64::from(n)), f64::from(k), "{k} of {n}");
        }
    }
    std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
}

#[test]
fn unreadable_files_are_named_with_the_line() {
    let file = write("bad.csv", "1ms\nsoon\n");
    let dir = file.parent().unwrap();
    let why = |text: &str| Dist::parse(text, dir).unwrap_err().why;
    let shown = file.display();
    assert_eq!(
        why("empirical(bad.csv)"),
        format!(
            "{shown}:2: the value is \"soon\": a time starts with a number, for example \"3ms\""
        )
    );
    std::fs::write(&file, b"1ms\n2ms\n\xff\n").unwrap();
    assert_eq!(
        why("empirical(bad.csv)"),
        format!("{shown}:3: not UTF-8; it holds one time per line")
    );
    std::fs::write(&file, "# nothing\n").unwrap();
    assert_eq!(
        why("empirical(bad.csv)"),
        format!("{shown} has no values; it needs one time per line")
    );
    let missing = why("empirical(no.csv)");
    let start = format!("cannot read {}: ", dir.join("no.csv").display());
    assert!(missing.starts_with(&start), "{missing}");
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn malformed_distributions_say_what_is_wrong() {
    const KNOWN: &str =
        "there are a plain time, uniform, exp, lognormal, pareto, hyperexp, empirical";
    for (text, why) in [
        ("3", "the time is \"3\": a time needs a unit, for example \"3ms\""),
        ("", "the time is \"\": a time starts with a number, for example \"3ms\""),
        ("exp", "exp needs its arguments in parentheses, for example \"exp(10ms)\""),
        (
            "empirical",
            "empirical needs its arguments in parentheses, for example \"empirical(times.csv)\"",
        ),
        ("exp(1ms", "does not end with \")\""),
        ("exp()", "mean is missing; the arguments are mean"),
        ("exp(0)", "the mean is 0; it has to be above 0, for example \"3ms\""),
        ("exp(-1ms)", "the mean is \"-1ms\": a time is not negative"),
        ("exp(none)", "the mean is \"none\"; it needs a limit, for example \"3ms\""),
        ("exp(1ms, 2ms)", "too many arguments; there are mean"),
        ("exp(rate=1ms)", "no argument is called \"rate\"; there are mean"),
        ("exp(1ms, mean=1ms)", "mean is given twice"),
        ("uniform(5ms, 1ms)", "low is 5ms, above high, which is 1ms; exchange them"),
        ("uniform(5ms)", "high is missing; the arguments are low, high"),
        ("lognormal(1ms, -1)", "sigma is -1; it has to be above 0 (a plain time never varies)"),
        ("lognormal(1ms, nan)", "sigma is \"nan\", which is not a number such as 1.5"),
        ("lognormal(median=1ms, sigma=50)", "its mean or variance is infinite"),
        ("pareto(0, 1ms, 2ms)", "alpha is 0; it has to be above 0, for example 1.5"),
        ("pareto(1.5, 2ms, 2ms)", "low is 2ms, which has to be below high, 2ms"),
        ("pareto(1.5, 0, 2ms)", "low is 0; it has to be above 0, for example \"3ms\""),
        ("hyperexp(0.9: 1ms, 0.2: 50ms)", "the probabilities sum to 1.1; they have to sum to 1"),
        ("hyperexp(1.5: 1ms, -0.5: 50ms)", "a probability is 1.5; it has to be above 0, at most 1"),
        ("hyperexp(1: 1ms, 5ms)", "\"5ms\" is not of the form probability: mean"),
        (
            "hyperexp(1ms, cv2=0.5)",
            "cv2 is 0.5; it has to be in 1 ..= 1e9 (an exponential has 1; for less use uniform or \
             lognormal)",
        ),
        ("empirical()", "the name of the file is missing"),
    ] {
        let error = Dist::parse(text, Path::new("")).expect_err(text);
        assert_eq!(error.to_string(), format!("\"{text}\": {why}"));
    }
    for (text, hint) in [("expo(1ms)", "did you mean exp? "), ("gauss(1ms)", "")] {
        let name = text.split('(').next().unwrap();
        let error = Dist::parse(text, Path::new("")).expect_err(text);
        assert_eq!(error.why, format!("no distribution is called \"{name}\"; {hint}{KNOWN}"));
    }
}

#[test]
fn other_spellings() {
    for (text, same) in [
        (" 10 ms ", "10ms"),
        ("exp( mean = 10ms )", "exp(10ms)"),
        ("uniform(high=5ms, low=1ms)", "uniform(1ms, 5ms)"),
        ("lognormal(10ms, 1.0)", "lognormal(mean=10ms, sigma=1)"),
        ("hyperexp(10ms, 4)", "hyperexp(10ms, cv2=4)"),
        ("0", "0"),
    ] {
        assert_eq!(dist(text).to_string(), same);
        assert_eq!(dist(text), dist(same));
    }
}

/// Texts of distributions with parameters of any size.
fn any_text() -> impl Strategy<Value = String> {
    let ns = || 1u64..1_000_000_000_000;
    let real = || 0.01f64..9.0;
    prop_oneof![
        ns().prop_map(|a| format!("{a}ns")),
        ns().prop_map(|a| format!("exp({a}ns)")),
        (ns(), ns()).prop_map(|(a, b)| format!("uniform({}ns, {}ns)", a.min(b), a.max(b))),
        (ns(), real()).prop_map(|(a, s)| format!("lognormal({a}ns, {s})")),
        (ns(), real()).prop_map(|(a, s)| format!("lognormal(median={a}ns, sigma={s})")),
        (real(), ns(), ns()).prop_map(|(a, l, w)| format!("pareto({a}, {l}ns, {}ns)", l + w)),
        (ns(), 1.0f64..1e6).prop_map(|(a, c)| format!("hyperexp({a}ns, cv2={c})")),
        (0.01f64..0.99, ns(), ns())
            .prop_map(|(p, a, b)| { format!("hyperexp({p}: {a}ns, {}: {b}ns)", 1.0 - p) }),
    ]
}

proptest! {
    #[test]
    fn distributions_read_back_as_written(text in any_text()) {
        let first = dist(&text);
        prop_assert_eq!(&dist(&first.to_string()), &first);
    }

    #[test]
    fn every_distribution_is_consistent(text in any_text(), p in 0.001f64..0.999) {
        let dist = dist(&text);
        prop_assert!(dist.mean() > 0.0 && dist.variance() >= 0.0);
        let x = dist.quantile(p);
        prop_assert!(x >= 0.0 && x.is_finite());
        if dist.density(x).is_some() {
            prop_assert!((dist.cdf(x) - p).abs() < 1e-7, "{} at {}", dist.cdf(x), p);
        }
        prop_assert!(dist.cdf(x * 0.9) <= dist.cdf(x) && dist.cdf(x) <= dist.cdf(x * 1.1));
    }

    #[test]
    fn no_text_makes_it_panic(text in "[a-z]{0,9}\\(?[a-z0-9(),:=. -]{0,30}\\)?") {
        let _ = Dist::parse(&text, Path::new("/nonexistent"));
    }
}
