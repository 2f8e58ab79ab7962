//! A handle of a PE on another thread.
//~ error[E0277]: `Rc<consort::runtime::hold::ThreadBoundPe>` cannot be sent between threads safely
//~ at: move || memory.put(right, 0, &[1])

use std::thread;

use consort::{Result, Symmetric, Team};

pub fn put_from_a_thread(team: &Team, memory: Symmetric<u64>) -> Result<()> {
    let right = team.right();
    #[cfg(right)]
    let memory = memory.share()?;
    thread::scope(|scope| {
        scope.spawn(move || memory.put(right, 0, &[1]));
    });
    Ok(())
}
