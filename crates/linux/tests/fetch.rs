//! What needs Debian's packages, and so a network, some minutes and a gigabyte.

use anysched_linux::{Image, StockKernel, Suite};
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
    let suite = Suite::find_in(&cache(), &mut |line| said.push(line.to_string())).unwrap();
    println!("{suite:#?}\n{said:#?}");
    assert!(suite.vmlinuz.is_file());
    let again = Suite::find_in(&cache(), &mut |line| panic!("{line}")).unwrap();
    assert_eq!(again, suite);
    for (program, argument) in
        [("gcc", "--version"), ("clang", "--version"), ("bpftool", "version")]
    {
        let output = suite.root.command(program, &[]).unwrap().arg(argument).output().unwrap();
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let mut list = suite.root.command("ls", &[]).unwrap();
    let output = list.arg(&suite.headers).output().unwrap();
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
    let suite = Suite::find_in(&cache(), &mut |_| ()).unwrap();
    let started = Instant::now();
    let mut say = |line: &str| println!("{:6.1} s {line}", started.elapsed().as_secs_f64());
    let image = Image::build(&suite, &mut say).unwrap();
    let changed = |path: &std::path::Path| path.metadata().unwrap().modified().unwrap();
    let before = changed(image.initramfs());
    say("done");
    let again = Image::build(&suite, &mut say).unwrap();
    say("done again");
    assert_eq!(again.initramfs(), image.initramfs());
    assert_eq!(changed(image.initramfs()), before, "it was built again");
    for program in ["cyclictest", "hackbench", "rt-app", "stress-ng", "sysbench"] {
        let archive = image.program(program).unwrap();
        say(&format!("{program}: {} bytes", archive.metadata().unwrap().len()));
    }
    let error = image.program("nonesuch").unwrap_err().to_string();
    assert!(error.contains("has no program nonesuch for guests"), "{error}");
}
