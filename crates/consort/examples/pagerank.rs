//! PageRank: each PE follows the links of its pages, and all PEs add up the shares that pages get.
//!
//! ```sh
//! cargo run --release -p consort --example pagerank
//! ```

use consort::{Job, Result, ops::Sum};

const PAGES: usize = 1000;
const DAMPING: f64 = 0.85;

/// Returns the pages to which a page links; none for every fourth page.
fn links(page: usize) -> impl ExactSizeIterator<Item = usize> {
    (0..page % 4).map(move |link| (page * link + 7 * link) % PAGES)
}

fn main() -> Result<()> {
    let all = Job::from_env(4).run(|pe| {
        let world = pe.world();
        let mut ranks = vec![1.0 / PAGES as f64; PAGES];
        let (mut steps, mut change) = (0, f64::INFINITY);
        while change > 1e-10 {
            // The shares that this PE's pages give to each page. The last entry goes to all pages.
            let mut gets = vec![0.0; PAGES + 1];
            for page in world.local_range(PAGES) {
                let links = links(page);
                let share = ranks[page] / links.len().max(1) as f64;
                if links.len() == 0 {
                    gets[PAGES] += share;
                }
                links.for_each(|to| gets[to] += share);
            }
            world.in_place(&mut gets).all_reduce(Sum)?; // one call for both
            let base = (1.0 - DAMPING + DAMPING * gets[PAGES]) / PAGES as f64;
            let next: Vec<f64> = gets[..PAGES].iter().map(|gets| base + DAMPING * gets).collect();
            // All PEs have the same numbers, so all leave the loop in the same step.
            change = ranks.iter().zip(&next).map(|(old, new)| (new - old).abs()).sum();
            (ranks, steps) = (next, steps + 1);
        }
        Ok((steps, ranks))
    })?;
    for (pe, (steps, ranks)) in all.ranked() {
        let sum: f64 = ranks.iter().sum();
        println!("PE {pe}: {steps} steps, page 0 has {:.4} of {sum:.4}", ranks[0]);
    }
    Ok(())
}
