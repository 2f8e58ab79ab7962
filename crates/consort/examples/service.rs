//! Tasks of a multi-threaded executor that await work on a pool.
//!
//! An executor with several threads moves its tasks between them, but a PE stays on its thread. So
//! one thread owns the pool. The tasks send it requests, and await its replies. Meanwhile, the
//! executor's threads run other tasks.

use std::{sync::mpsc, thread};

use consort::{Job, Result, ops::Sum, pieces};
use tokio::{runtime, sync::oneshot, task::JoinSet};

/// A request for the sum of squares, and the place for the answer.
type Request = (Vec<f64>, oneshot::Sender<Result<f64>>);

/// Accepts requests from any task.
#[derive(Clone)]
struct Service(mpsc::Sender<Request>);

impl Service {
    /// Starts a pool on a separate thread. It ends when the last clone of the service is dropped.
    fn start(pes: usize) -> Result<Self> {
        let pool = Job::threads(pes).pool()?;
        let (sender, requests) = mpsc::channel::<Request>();
        thread::spawn(move || {
            for (data, answer) in requests {
                let sums = pool.run_with(pieces(&data, pool.size()), |pe, piece| {
                    pe.world().all_reduce(piece.iter().map(|x| x * x).sum::<f64>(), Sum)
                });
                let _ = answer.send(sums.map(|sums| sums[0])); // the task may be gone
            }
        });
        Ok(Self(sender))
    }

    async fn sum_of_squares(&self, data: Vec<f64>) -> Result<f64> {
        let (sender, answer) = oneshot::channel();
        self.0.send((data, sender)).expect("the thread serves as long as this lives");
        answer.await.expect("each request is answered")
    }
}

async fn program() -> Result<Vec<f64>> {
    let service = Service::start(4)?;
    let mut tasks = JoinSet::new();
    for task in 1..=5 {
        let service = service.clone();
        tasks.spawn(async move { service.sum_of_squares(vec![f64::from(task); 1000]).await });
    }
    let mut sums: Vec<f64> = tasks.join_all().await.into_iter().collect::<Result<_>>()?;
    sums.sort_by(f64::total_cmp);
    Ok(sums)
}

fn main() -> Result<()> {
    let executor = runtime::Builder::new_multi_thread().worker_threads(2).build();
    let sums = executor.expect("an executor without I/O").block_on(program())?;
    println!("{sums:?}");
    Ok(())
}
