//! A solver that owns its PE's team and memory, and solves one system after the other.

use consort::{Job, Pe, Result, Symmetric, Team, ops::Sum, symmetric::CompletionCounter};

/// One PE's part of a solver for `3 x[i] - x[i - 1] - x[i + 1] = b[i]` on a ring, by conjugate
/// gradients. It allocates when it is made, and not when it solves.
pub(crate) struct Solver {
    world: Team,
    /// The neighbours' values next to this PE's rows: from the left, and from the right.
    edges: Symmetric<f64>,
    arrived: CompletionCounter,
    /// The number of values that have arrived.
    edges_seen: u64,
    x: Vec<f64>,
    r: Vec<f64>,
    p: Vec<f64>,
    ap: Vec<f64>,
}

impl Solver {
    /// Makes the solver for `rows` rows in all.
    pub(crate) fn new(pe: &Pe, rows: usize) -> Result<Self> {
        let world = pe.world().clone();
        let own = world.local_range(rows).len();
        let [x, r, p, ap] = [(); 4].map(|()| vec![0.0; own]);
        let (edges, arrived) = (world.symmetric(2)?, world.completion_counter()?);
        Ok(Self { world, edges, arrived, edges_seen: 0, x, r, p, ap })
    }

    /// Multiplies `p` by the matrix.
    fn multiply(&mut self) -> Result<()> {
        let (p, n) = (&self.p, self.p.len());
        self.edges.put_counted(self.world.right(), 0, &p[n - 1..], &self.arrived)?;
        self.edges.put_counted(self.world.left(), 1, &p[..1], &self.arrived)?;
        for i in 1..n - 1 {
            self.ap[i] = 3.0 * p[i] - p[i - 1] - p[i + 1]; // needs only values of this PE
        }
        self.edges_seen += 2;
        self.arrived.wait(self.edges_seen)?;
        let (left, right) = (self.edges.load(0)?, self.edges.load(1)?);
        self.ap[0] = 3.0 * p[0] - left - p[1];
        self.ap[n - 1] = 3.0 * p[n - 1] - p[n - 2] - right;
        self.world.barrier() // all have read their edges
    }

    /// Returns the sum over all rows.
    fn dot(&self, a: &[f64], b: &[f64]) -> Result<f64> {
        self.world.all_reduce(a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>(), Sum)
    }

    /// Solves the system, and returns the number of steps. `x` has this PE's part of the solution.
    pub(crate) fn solve(&mut self, b: impl Fn(usize) -> f64) -> Result<usize> {
        let first = self.world.rank().index() * self.x.len();
        for (i, r) in self.r.iter_mut().enumerate() {
            *r = b(first + i);
        }
        self.x.fill(0.0);
        self.p.copy_from_slice(&self.r);
        let (mut rr, mut steps) = (self.dot(&self.r, &self.r)?, 0);
        while rr > 1e-12 {
            self.multiply()?;
            let alpha = rr / self.dot(&self.p, &self.ap)?;
            self.x.iter_mut().zip(&self.p).for_each(|(x, p)| *x += alpha * p);
            self.r.iter_mut().zip(&self.ap).for_each(|(r, ap)| *r -= alpha * ap);
            let next = self.dot(&self.r, &self.r)?;
            self.p.iter_mut().zip(&self.r).for_each(|(p, r)| *p = r + next / rr * *p);
            (rr, steps) = (next, steps + 1);
        }
        Ok(steps)
    }
}

const ROWS: usize = 4000;

fn main() -> Result<()> {
    let pool = Job::threads(4).pool()?;
    for period in [3, 7, 11] {
        // The first region makes the solver; the others find it.
        let solved = pool.run(|pe| {
            let mut solver = pe.keep(|pe| Solver::new(pe, ROWS))?;
            let steps = solver.solve(|row| (row % period) as f64)?;
            Ok((steps, solver.x[0]))
        })?;
        let (steps, first) = solved[0];
        println!("period {period}: solved in {steps} steps, first value {first:.4}");
    }
    Ok(())
}
