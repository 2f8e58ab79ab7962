//! A handle of a PE on another thread.
//~ error[E0277]: a PE and its handles stay on their thread
//~ at: move || memory.put(right, 0, &[1])
//~ label: on another thread
//~ note: `Symmetric::share`

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
