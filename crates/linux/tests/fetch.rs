//! What needs Debian's packages, and so a network, some minutes and a gigabyte.

use anysched_linux::{Image, Purpose, StockKernel, Suite};
use std::path::PathBuf;
use std::time::Instant;

/// Kept in the directory of builds, so that only the first run fetches.
fn cache() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("packages")
}

#[test]
#[ignore = "fetches 200 MB of packages"]
fn a_suite_is_fetched_once_and_its_programs_run() {
    let mut said = Vec::new();
    let suite =
        Suite::find_in(&cache(), Purpose::Build, &mut |line| said.push(line.to_string())).unwrap();
    println!("{suite:#?}\n{said:#?}");
    assert!(suite.vmlinuz.is_file());
    let again = Suite::find_in(&cache(), Purpose::Build, &mut |line| panic!("{line}")).unwrap();
    assert_eq!(again, suite);
    for (program, argument) in
        [("gcc", "--version"), ("clang", "--version"), ("bpftool", "version")]
    {
        let output = suite.root.command(program, &[]).unwrap().arg(argument).output().unwrap();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let mut list = suite.root.command("ls", &[]).unwrap();
    let output = list.arg(suite.headers.unwrap()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("Makefile"), "{output:?}");
}

#[test]
#[ignore = "fetches 40 MB of packages"]
fn a_stock_kernel_is_fetched_once() {
    let kernel = StockKernel::find_in(&cache(), "6.1", &mut |line| println!("{line}")).unwrap();
    println!("{kernel:#?}");
    assert!(kernel.kernel.starts_with("6.1.") && kernel.vmlinuz.is_file());
    assert!(kernel.modules.join("kernel").is_dir());
    let again = StockKernel::find_in(&cache(), "6.1", &mut |line| panic!("{line}")).unwrap();
    assert_eq!(again, kernel);
    let error = StockKernel::find_in(&cache(), "2.4", &mut |_| ()).unwrap_err().to_string();
    assert!(error.ends_with("take one of 6.1, 6.12"), "{error}");
}

#[test]
#[ignore = "fetches 200 MB of packages, and compiles for minutes"]
fn an_image_is_built_once() {
    let suite = Suite::find_in(&cache(), Purpose::Build, &mut |_| ()).unwrap();
    let started = Instant::now();
    let mut say = |line: &str| println!("{:6.1} s {line}", started.elapsed().as_secs_f64());
    let image = Image::build(&suite, &mut say).unwrap();
    let changed = |path: &std::path::Path| path.metadata().unwrap().modified().unwrap();
    image.loaders(&mut say).unwrap();
    let before = changed(image.initramfs());
    say("done");
    let again = Image::build(&suite, &mut say).unwrap();
    say("done again");
    assert_eq!(again.initramfs(), image.initramfs());
    assert_eq!(changed(image.initramfs()), before, "it was built again");
    for program in ["cyclictest", "hackbench", "rt-app", "stress-ng", "sysbench"] {
        let archive = image.program(program, &mut say).unwrap();
        say(&format!("{program}: {} bytes", archive.metadata().unwrap().len()));
    }
    let error = image.program("nonesuch", &mut say).unwrap_err().to_string();
    assert!(error.contains("has no /usr/bin/nonesuch; take another program"), "{error}");
}

/// Under its own scheduler a kernel needs neither headers nor compilers, and a program is fetched
/// when it is asked for.
#[test]
#[ignore = "fetches 50 MB of packages"]
fn what_a_boot_does_not_need_is_not_fetched() {
    let cache = tempfile::tempdir().unwrap();
    let mut said = Vec::new();
    let mut say = |line: &str| said.push(line.to_string());
    let suite = Suite::find_in(cache.path(), Purpose::Boot, &mut say).unwrap();
    assert!(suite.vmlinuz.is_file() && suite.headers.is_none(), "{suite:?}");
    assert!(suite.fetched < 60 << 20, "{} bytes", suite.fetched);
    let sources = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../hosts/linux");
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("target");
    let image = Image::build_in(&sources, &target, &suite, &mut say).unwrap();
    let error = image.loaders(&mut say).unwrap_err().to_string();
    assert!(error.contains("was fetched without what builds"), "{error}");
    for program in ["hackbench", "cyclictest"] {
        image.program(program, &mut say).unwrap();
    }
    let fetches = said.iter().filter(|line| *line == "fetching rt-tests").count();
    assert_eq!(fetches, 1, "{said:?}");
    let added = cache.path().join(&suite.name).join("added/rt-tests/found");
    let added = std::fs::read_to_string(added).unwrap();
    let bytes = added.lines().find_map(|line| line.strip_prefix("fetched "));
    let bytes: u64 = bytes.unwrap().parse().unwrap();
    println!("{} bytes, and {bytes} for rt-tests", suite.fetched);
    assert!((1..30 << 20).contains(&bytes), "lists that are the same are not fetched again");
}
