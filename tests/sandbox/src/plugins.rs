//! Libraries that tests load and unload.

use std::{env, path::PathBuf, process::Command, thread, time::Duration};

use libloading::Library;

use crate::built;

/// The environment variable that names the function to call.
const FUNCTION: &str = "TEST_PLUGIN";

/// Returns the library of the package `consort-plugins`, which is built before the tests.
fn plugin() -> PathBuf {
    let test = env::current_exe().expect("a path");
    let folder = test.parent().expect("the folder of test programs");
    built(folder.to_str().expect("a name of text"), "libconsort_plugins.so")
}

/// Calls a function on a thread that ends after the library was unloaded. Returns its result.
fn call(plugin: PathBuf, name: String) -> u64 {
    let calls = move || {
        // SAFETY: loading it runs no code.
        let library = unsafe { Library::new(&plugin) };
        let library = library.expect("a library");
        // SAFETY: the library has such a function.
        let function = unsafe { library.get::<extern "C" fn() -> u64>(name.as_bytes()) };
        let result = function.expect("a function")();
        library.close().expect("it is unloaded");
        result
    };
    let result = thread::spawn(calls).join().expect("no panic");
    // A sleeping thread of the library checks again after at most 20 ms.
    thread::sleep(Duration::from_millis(50));
    result
}

/// Calls each of these functions of `consort-plugins` in a new process, which then unloads the
/// library and continues. `test` is the path of the calling test.
///
/// # Panics
/// When such a process crashes, or a function does not return the value next to its name.
pub fn unload(test: &str, functions: &[(&str, u64)]) {
    if let Ok(name) = env::var(FUNCTION) {
        let returned = call(plugin(), name.clone());
        assert!(functions.contains(&(&name, returned)), "{name} returned {returned}");
        return;
    }
    for (name, _) in functions {
        let mut program = Command::new(env::current_exe().expect("this program"));
        program.args([test, "--exact"]).env(FUNCTION, name);
        let output = program.output().expect("it starts");
        assert!(output.status.success(), "{name}: {output:?}");
    }
}
