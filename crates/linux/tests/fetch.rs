//! What needs Debian's packages, and so a network, minutes and a gigabyte.

use anysched_linux::{StockKernel, Suite};
use std::path::PathBuf;

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
