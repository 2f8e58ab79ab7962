//! Libraries that tests load and unload.

use std::{env, path::PathBuf, process::Command, thread, time::Duration};

use libloading::Library;

use crate::built;

/// The environment variable that names the function that the program is to call.
const FUNCTION: &str = "TEST_PLUGIN";

/// The library of the package `consort-plugins`, which is built before the tests.
fn plugin() -> PathBuf {
    let test = env::current_exe().expect("a path");
    let folder = test.parent().expect("the folder of test programs");
    built(folder.to_str().expect("a name of text"), "libconsort_plugins.so")
}

/// Calls a function on a thread, which ends after the library was unloaded. Returns its result.
fn call(plugin: PathBuf, name: String) -> u64 {
    let calls = move || {
        // SAFETY: nothing runs when it is loaded.
        let library = unsafe { Library::new(&plugin) };
        let library = library.expect("a library");
        // SAFETY: the library has such a function.
        let function = unsafe { library.get::<extern "C" fn() -> u64>(name.as_bytes()) };
        let result = function.expect("a function")();
        library.close().expect("it is unloaded");
        result
    };
    let result = thread::spawn(calls).join().expect("no panic");
    // A thread of the library that sleeps looks again after 20 ms at most.
    thread::sleep(Duration::from_millis(50));
    result
}

/// Calls each of these functions of `consort-plugins` in a new process, which then unloads the
/// library and goes on. `test` is the path of the test that calls this.
///
/// # Panics
/// When such a process crashes, or a function does not return what is given with its name.
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
