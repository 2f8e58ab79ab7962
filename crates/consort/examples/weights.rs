//! Steps on cores of different speed: the faster PE gets more of the work.

use std::{hint::black_box, time::Instant};

use consort::{Job, Result, Weights};

/// Works on an element. A slow PE takes three times as long.
fn work(x: &mut f64, is_slow: bool) {
    for _ in 0..if is_slow { 3 } else { 1 } {
        *x = (0..100).fold(0.0, |sum, _| black_box(sum + 0.5));
    }
}

fn main() -> Result<()> {
    let pool = Job::threads(2).pool()?;
    let mut data = vec![0.0; 20_000];
    let mut weights = Weights::equal(pool.size());
    for _ in 0..10 {
        let start = Instant::now();
        let times = pool.run_with(weights.pieces_mut(&mut data), |pe, piece| {
            let is_slow = pe.world().rank().0 == 1; // as a core that another program uses, too
            piece.iter_mut().for_each(|x| work(x, is_slow));
            Ok(start.elapsed())
        })?;
        weights = weights.after(times)?;
    }
    eprintln!("shares: {:.2?}", weights.shares()); // near [0.75, 0.25] on an idle machine
    println!("sum {}", data.iter().sum::<f64>());
    Ok(())
}
