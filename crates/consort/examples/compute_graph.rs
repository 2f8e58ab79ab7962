//! A graph of many small operations, such as one token of a language model, evaluated many times by
//! the same threads.

use std::ops::Range;

use consort::{Job, Pe, Result, Team};

const WIDTH: usize = 256;

/// An operation on the vector that the last one has made.
enum Operation {
    /// A product with a square matrix. Each PE has some of its rows.
    Product(Vec<f32>),
    /// Each element, if it is positive; otherwise 0.
    Rectify,
    /// Each element divided by the root of the mean of all squares.
    Normalize,
}

/// Returns a graph of 150 operations, with these rows of its matrices.
fn graph(rows: Range<usize>) -> Vec<Operation> {
    let row = |layer, row| (0..WIDTH).map(move |column| ((row * layer + column) % 5) as f32 - 1.5);
    let layer = |layer| {
        let matrix = rows.clone().flat_map(|at| row(layer, at)).collect();
        [Operation::Product(matrix), Operation::Rectify, Operation::Normalize]
    };
    (0..50).flat_map(layer).collect()
}

/// One PE's part of a graph.
pub(crate) struct Context {
    world: Team,
    graph: Vec<Operation>,
    /// The vector; each PE has all of it.
    all: Vec<f32>,
    /// This PE's part of the next one.
    own: Vec<f32>,
}

impl Context {
    pub(crate) fn new(pe: &Pe) -> Result<Self> {
        let world = pe.world().clone();
        let rows = world.local_range(WIDTH);
        let (all, own) = (vec![0.0; WIDTH], vec![0.0; rows.len()]);
        Ok(Self { world, graph: graph(rows), all, own })
    }

    /// Evaluates the graph for this token. All PEs return the sum of its result.
    pub(crate) fn evaluate(&mut self, token: usize) -> Result<f32> {
        let Self { world, graph, all, own } = self;
        for (at, x) in all.iter_mut().enumerate() {
            *x = (at * token % 7) as f32;
        }
        for operation in graph {
            match operation {
                Operation::Product(rows) => {
                    for (own, row) in own.iter_mut().zip(rows.chunks_exact(WIDTH)) {
                        *own = row.iter().zip(&*all).map(|(a, b)| a * b).sum();
                    }
                    world.slices(own, all).all_gather()?;
                }
                // All PEs do the same: an exchange would take longer.
                Operation::Rectify => all.iter_mut().for_each(|x| *x = x.max(0.0)),
                Operation::Normalize => {
                    let square: f32 = all.iter().map(|x| x * x).sum();
                    let scale = (square / WIDTH as f32).sqrt().recip();
                    all.iter_mut().for_each(|x| *x *= scale);
                }
            }
        }
        Ok(all.iter().sum())
    }
}

fn main() -> Result<()> {
    let pool = Job::threads(4).pool()?;
    for token in 1..=3 {
        // The first region makes the context; inside the others, the PEs find it and allocate
        // nothing. `run` itself allocates its results.
        let sums = pool.run(|pe| pe.keep(Context::new)?.evaluate(token))?;
        assert!(sums.iter().all(|sum| *sum == sums[0]), "all PEs have the same result");
        println!("token {token}: {:.3}", sums[0]);
    }
    Ok(())
}
