//! A library that uses this crate may be unloaded: what it has left to the process or to a thread
//! still finds its code.

#![expect(unsafe_code, reason = "calls functions of a library")]

use std::{env, path::PathBuf, process::Command, thread, time::Duration};

use libloading::Library;

/// The environment variable that names the function that the program is to call.
const CALLS: &str = "TEST_PLUGIN";

/// The example, which is built with the tests.
fn plugin() -> PathBuf {
    let test = env::current_exe().expect("a path");
    let folder = test.ancestors().nth(2).expect("the folder of the profile");
    folder.join("examples/libplugin_of_locks.so")
}

/// Calls a function on a thread, which ends after the library was unloaded.
fn call(name: &str) {
    let (plugin, name) = (plugin(), name.to_owned());
    let calls = move || {
        // SAFETY: nothing runs when it is loaded.
        let library = unsafe { Library::new(&plugin) };
        let library =
            library.expect("`cargo build -p consort-sync --example plugin_of_locks` was run");
        // SAFETY: the example has such a function.
        let function = unsafe { library.get::<extern "C" fn() -> u64>(name.as_bytes()) };
        assert_eq!(function.expect("a function")(), 1);
        library.close().expect("it is unloaded");
    };
    thread::spawn(calls).join().expect("no panic");
    // A thread of the library that sleeps looks again after 20 ms at most.
    thread::sleep(Duration::from_millis(50));
}

#[test]
fn library_may_be_unloaded_before_the_thread_ends() {
    if let Ok(name) = env::var(CALLS) {
        return call(&name);
    }
    // Each in a new process, which has kept nothing else.
    for name in ["delegate", "lock", "server", "pending"] {
        let mut program = Command::new(env::current_exe().expect("this program"));
        program.args(["plugins::library_may_be_unloaded_before_the_thread_ends", "--exact"]);
        let output = program.env(CALLS, name).output().expect("it starts");
        assert!(output.status.success(), "{name}: {output:?}");
    }
}
