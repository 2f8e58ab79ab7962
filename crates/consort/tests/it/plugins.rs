//! A library that uses this crate may be unloaded: destructors that it has left in the process or
//! in a thread still find its code.

use consort_sandbox::plugins::unload;

#[test]
fn library_of_jobs_may_be_unloaded_before_the_thread_ends() {
    let functions = ["job", "helpers", "pool", "kept_pool", "joined"].map(|name| (name, 2));
    let test = "plugins::library_of_jobs_may_be_unloaded_before_the_thread_ends";
    unload(test, &functions);
}
