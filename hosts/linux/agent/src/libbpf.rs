//! As much of libbpf as the agent needs. It finds out which of the kernel's structures look how,
//! and makes of `struct_ops` what the kernel wants; nothing in Rust does that.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io::Error;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr::{NonNull, null};

use crate::options::Options;

#[repr(C)]
struct RawObject([u8; 0]);
#[repr(C)]
struct RawMap([u8; 0]);
#[repr(C)]
struct RawProgram([u8; 0]);
#[repr(C)]
struct RawLink([u8; 0]);

/// `struct bpf_test_run_opts`, as far as libbpf is told that there is.
#[repr(C)]
struct RunOptions {
    size: usize,
    unused: [u64; 10],
}

unsafe extern "C" {
    fn bpf_object__open_file(path: *const c_char, options: *const c_void) -> *mut RawObject;
    fn bpf_object__load(object: *mut RawObject) -> c_int;
    fn bpf_object__find_map_by_name(object: *mut RawObject, name: *const c_char) -> *mut RawMap;
    fn bpf_object__find_program_by_name(
        object: *mut RawObject,
        name: *const c_char,
    ) -> *mut RawProgram;
    fn bpf_map__fd(map: *const RawMap) -> c_int;
    fn bpf_map__max_entries(map: *const RawMap) -> u32;
    fn bpf_map__set_max_entries(map: *mut RawMap, entries: u32) -> c_int;
    fn bpf_map__initial_value(map: *const RawMap, size: *mut usize) -> *mut c_void;
    fn bpf_map__attach_struct_ops(map: *const RawMap) -> *mut RawLink;
    fn bpf_link__destroy(link: *mut RawLink) -> c_int;
    fn bpf_program__fd(program: *const RawProgram) -> c_int;
    fn bpf_prog_test_run_opts(program: c_int, options: *mut RunOptions) -> c_int;
}

/// Maps and programs in the kernel, as long as the process lives.
pub struct Object {
    raw: NonNull<RawObject>,
    path: PathBuf,
}

/// The scheduler, while it schedules.
pub struct Link(NonNull<RawLink>);

/// A program that can be run.
pub struct Program(RawFd);

impl Object {
    /// Loads the programs, with room for as many tasks as `options` say.
    ///
    /// Errors: the file is missing, or the kernel refuses it; libbpf has then said why.
    pub fn load(options: &Options) -> Result<Object, String> {
        let path = options.object.clone();
        let fault = |error: Error| format!("{}: {error}", path.display());
        let name =
            CString::new(path.as_os_str().as_bytes()).map_err(|error| fault(error.into()))?;
        // SAFETY: the path is a string; without options it reads nothing else.
        let raw = unsafe { bpf_object__open_file(name.as_ptr(), null()) };
        let raw = NonNull::new(raw).ok_or_else(|| fault(Error::last_os_error()))?;
        let object = Object { raw, path };
        for map in [c"tasks", c"numbers"] {
            // SAFETY: the map is the object's.
            unsafe { bpf_map__set_max_entries(object.map(map)?.as_ptr(), options.tasks) };
        }
        // SAFETY: the object is open.
        match unsafe { bpf_object__load(raw.as_ptr()) } {
            0 => Ok(object),
            error => Err(object.fault(Error::from_raw_os_error(-error))),
        }
    }

    fn fault(&self, error: Error) -> String {
        format!("{}: {error}", self.path.display())
    }

    fn map(&self, name: &CStr) -> Result<NonNull<RawMap>, String> {
        // SAFETY: the object is open.
        let map = unsafe { bpf_object__find_map_by_name(self.raw.as_ptr(), name.as_ptr()) };
        NonNull::new(map).ok_or_else(|| {
            let (path, name) = (self.path.display(), name.to_string_lossy());
            format!("{path}: there is no map {name}; build it from the agent's sources")
        })
    }

    /// The descriptor of a map, and how many entries it has.
    ///
    /// Errors: there is no such map.
    pub fn map_fd(&self, name: &CStr) -> Result<(RawFd, u32), String> {
        let map = self.map(name)?;
        // SAFETY: the map is the object's.
        Ok(unsafe { (bpf_map__fd(map.as_ptr()), bpf_map__max_entries(map.as_ptr())) })
    }

    /// The memory of a section that the programs use, too, and its length in bytes.
    ///
    /// Errors: there is no such section.
    pub fn section(&self, name: &CStr) -> Result<(NonNull<u8>, usize), String> {
        let map = self.map(name)?;
        let mut size = 0;
        // SAFETY: the map is the object's.
        let memory = unsafe { bpf_map__initial_value(map.as_ptr(), &mut size) };
        let memory = NonNull::new(memory.cast()).ok_or_else(|| self.fault(Error::last_os_error()));
        Ok((memory?, size))
    }

    /// A program that can be run.
    ///
    /// Errors: there is no such program.
    pub fn program(&self, name: &CStr) -> Result<Program, String> {
        // SAFETY: the object is open.
        let program = unsafe { bpf_object__find_program_by_name(self.raw.as_ptr(), name.as_ptr()) };
        let program = NonNull::new(program).ok_or_else(|| {
            let (path, name) = (self.path.display(), name.to_string_lossy());
            format!("{path}: there is no program {name}; build it from the agent's sources")
        })?;
        // SAFETY: the program is the object's.
        Ok(Program(unsafe { bpf_program__fd(program.as_ptr()) }))
    }

    /// Has the kernel schedule by the programs.
    ///
    /// Errors: it does not, for example because another scheduler is there.
    pub fn attach(&self) -> Result<Link, String> {
        let map = self.map(c"agent")?;
        // SAFETY: the map is the object's.
        let link = unsafe { bpf_map__attach_struct_ops(map.as_ptr()) };
        NonNull::new(link).map(Link).ok_or_else(|| {
            let error = Error::last_os_error();
            format!("the kernel does not take the scheduler: {error}; is another one there?")
        })
    }
}

impl Drop for Link {
    /// Gives the CPUs back to the kernel's own scheduler.
    fn drop(&mut self) {
        // SAFETY: nobody uses it from here on.
        unsafe { bpf_link__destroy(self.0.as_ptr()) };
    }
}

impl Program {
    /// Runs it.
    pub fn run(&self) {
        let mut options = RunOptions { size: size_of::<RunOptions>(), unused: [0; 10] };
        // SAFETY: the descriptor is open as long as the process lives.
        let error = unsafe { bpf_prog_test_run_opts(self.0, &mut options) };
        assert!(
            error == 0,
            "answers do not reach the kernel: {}",
            Error::from_raw_os_error(-error)
        );
    }
}
