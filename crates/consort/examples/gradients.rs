//! Conjugate gradients: each PE computes while its neighbours' values and the sums are on the way.

use consort::{Job, Result, ops::Sum};

const N: usize = 400;

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn main() -> Result<()> {
    let all = Job::from_env(4).run(|pe| {
        let world = pe.world();
        let mine = world.local_range(N);
        let n = mine.len();
        let (mut x, mut r): (Vec<f64>, Vec<f64>) = mine.map(|i| (0.0, (i % 7) as f64)).unzip();
        let (mut p, mut ap) = (r.clone(), vec![0.0; n]);
        let mut rr = world.all_reduce(dot(&r, &r), Sum)?;
        let mut steps = 0;
        while rr > 1e-12 {
            // Row i of the matrix: 3 p[i] - p[i - 1] - p[i + 1], on a ring.
            let (mut before, mut after) = ([0.0], [0.0]);
            world.overlap(|scope| {
                let left = scope.start_receive(world.left(), &mut before)?;
                let right = scope.start_receive(world.right(), &mut after)?;
                scope.start_send(world.right(), &p[n - 1..])?;
                scope.start_send(world.left(), &p[..1])?;
                for i in 1..n - 1 {
                    ap[i] = 3.0 * p[i] - p[i - 1] - p[i + 1]; // needs only values of this PE
                }
                ap[0] = 3.0 * p[0] - left.wait()?[0] - p[1];
                ap[n - 1] = 3.0 * p[n - 1] - p[n - 2] - right.wait()?[0];
                Ok(())
            })?;
            let alpha = rr / world.all_reduce(dot(&p, &ap), Sum)?;
            r.iter_mut().zip(&ap).for_each(|(r, ap)| *r -= alpha * ap);
            let (local, mut sum) = ([dot(&r, &r)], [0.0]);
            world.overlap(|scope| {
                scope.start_into(&local, &mut sum).all_reduce(Sum)?;
                x.iter_mut().zip(&p).for_each(|(x, p)| *x += alpha * p); // meanwhile
                Ok(())
            })?;
            p.iter_mut().zip(&r).for_each(|(p, r)| *p = r + sum[0] / rr * *p);
            (rr, steps) = (sum[0], steps + 1);
        }
        Ok((steps, x[0]))
    })?;
    for (rank, (steps, first)) in all.ranked() {
        println!("PE {rank}: solved in {steps} steps, first value {first:.4}");
    }
    Ok(())
}
