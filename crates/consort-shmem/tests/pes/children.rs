//! Children that a PE forks are not PEs: each routine that they call ends them, and nothing else.

use consort_shmem::{collectives::barrier_all, contexts::Context, rma, setup};

use crate::{Pe, read, write, zeros};

/// Runs `body` in a child without standard error, and returns the child's status.
fn in_child(body: impl FnOnce()) -> i32 {
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        unsafe { libc::close(libc::STDERR_FILENO) };
        body();
        // With exit handlers, as at the end of a C program.
        unsafe { libc::exit(0) };
    }
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "{status}");
    libc::WEXITSTATUS(status)
}

pub(crate) fn children(pe: Pe) {
    let memory = zeros::<u64>(2);
    barrier_all();
    assert_eq!(in_child(|| write(memory, &[9])), 0);
    let routines: [&dyn Fn(); 6] = [
        &|| {
            setup::my_pe();
        },
        &|| unsafe { rma::put(Context::DEFAULT, memory, &9, 1, pe.after(1)) },
        &barrier_all,
        &setup::init,
        &setup::finalize,
        &|| setup::global_exit(3),
    ];
    for routine in routines {
        assert_eq!(in_child(routine), 1);
    }
    barrier_all();
    assert_eq!(read(memory, 2), [0, 0]);
}
