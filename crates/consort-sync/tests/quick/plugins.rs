//! A library that uses this crate may be unloaded: destructors that run at the end of a thread or
//! of the process still find their code.

use consort_sandbox::plugins::unload;

#[test]
fn library_may_be_unloaded_before_the_thread_ends() {
    let functions = [("delegate", 1), ("lock", 1), ("server", 1), ("pending", 1)];
    let test = "plugins::library_may_be_unloaded_before_the_thread_ends";
    unload(test, &functions);
}
