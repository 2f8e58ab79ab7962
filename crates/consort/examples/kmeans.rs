//! k-means: all PEs sum a struct of the program for each cluster.

use consort::{Job, Rank, Result};

#[derive(Clone, Copy, Default, consort::Pod)]
#[repr(C)]
struct Cluster {
    sum: [f64; 2],
    count: u64,
}

fn merge(a: Cluster, b: Cluster) -> Cluster {
    Cluster { sum: [a.sum[0] + b.sum[0], a.sum[1] + b.sum[1]], count: a.count + b.count }
}

fn nearest(point: [f64; 2], centres: &[[f64; 2]]) -> usize {
    let distance = |c: [f64; 2]| (point[0] - c[0]).powi(2) + (point[1] - c[1]).powi(2);
    let order = |&a: &usize, &b: &usize| distance(centres[a]).total_cmp(&distance(centres[b]));
    (0..centres.len()).min_by(order).expect("a centre")
}

fn main() -> Result<()> {
    let all = Job::threads(4).run(|pe| {
        let world = pe.world();
        let point = |i: usize| [(i % 3 * 10 + i % 7) as f64, (i % 5) as f64];
        let points: Vec<[f64; 2]> = world.local_range(10_500).map(point).collect();
        let mut centres = [[0.0; 2]; 3];
        centres.copy_from_slice(&points[..3]);
        world.in_place(&mut centres).broadcast(Rank(0))?; // all start with the centres of PE 0
        loop {
            let mut clusters = [Cluster::default(); 3];
            for &point in &points {
                let cluster = &mut clusters[nearest(point, &centres)];
                *cluster = merge(*cluster, Cluster { sum: point, count: 1 });
            }
            world.in_place(&mut clusters).all_reduce(merge)?;
            let means = clusters.map(|it| it.sum.map(|sum| sum / it.count.max(1) as f64));
            if means == centres {
                return Ok((centres, clusters.map(|it| it.count)));
            }
            centres = means;
        }
    })?;
    for (centre, count) in all[0].0.iter().zip(all[0].1) {
        println!("{count} points around {centre:.2?}");
    }
    Ok(())
}
