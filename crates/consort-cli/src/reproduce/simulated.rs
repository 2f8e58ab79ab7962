//! The same experiments on the paper's machines, simulated.
//!
//! The trees are those of the paper's runtime as its authors' code has them: one buffer a PE, which
//! its parent combines in one pass; the largest subtree first. The flat reduction is the root's
//! alone, who reads everyone's source in symmetric memory, so that nothing is said between barriers
//! or without them. Sources do not change from call to call. As in that runtime no window keeps PEs
//! together: in a row of Loose calls a PE runs ahead as far as its parent's word allows.

use anyhow::Result;
use consort::{Candidate, Collective, Rank, Sync};
use consort_fabric::statistics::median;
use consort_sim::{Simulation, machines::Machine};

use super::{
    Claim, Quantity,
    crossover::{DOUBLES, Pair, crossover, penalty},
    measure::{self, AS_GOOD, Best},
    modes::SIZES_BYTES,
    paper::{self, RADICES, TABLE_2},
    radix::BYTES,
};
use crate::{bench::session::Mode, output, sim::program::Program};

/// Calls of a row before those that are timed, timed ones, and more, so that all PEs are at work
/// meanwhile.
const CALLS: (usize, usize, usize) = (8, 8, 32);
/// The same where each call begins when all have left the one before.
const STRICT_CALLS: (usize, usize, usize) = (2, 2, 0);
/// More calls than any row has.
const WINDOW: u64 = 1024;
/// A tree so many times slower than the best at one size is not tried at larger ones.
const HOPELESS: f64 = 1.5;
/// What was fitted, of everything in the descriptions of the three machines and their costs.
const FITTED: &str = "\
Fitted to the paper: 2 parameters, both of Barcelona, to 2 figures: hub_ns to the chain when \
Loose (H6), and that the third cache keeps no copies of other packages' lines to there being \
a crossover (H4). All others are published micro-measurements or assumptions that the \
descriptions state.";

/// A machine of the paper's, simulated, with all its threads.
struct Simulated {
    machine: Machine,
    pes: u32,
}

/// The paper's tree.
fn tree(radix: u64) -> Candidate {
    Candidate::new("knomial_get").with("radix", radix).with("largest_first", 1)
}

impl Simulated {
    fn new(name: &str) -> Result<Self> {
        let machine = Machine::find(name)?;
        Ok(Self { pes: machine.pes(), machine })
    }

    /// What a barrier takes in a row of them, in nanoseconds.
    fn barrier_ns(&self, candidate: &Candidate) -> Result<f64> {
        self.ns(Collective::Barrier, Sync::STRICT, 0, candidate)
    }

    /// What a reduction takes in a row of them, in nanoseconds.
    fn reduce_ns(&self, sync: Sync, bytes: usize, candidate: &Candidate) -> Result<f64> {
        self.ns(Collective::Reduce, sync, bytes, candidate)
    }

    fn flat_ns(&self, sync: Sync, bytes: usize) -> Result<f64> {
        self.reduce_ns(sync, bytes, &Candidate::new("direct").with("block_bytes", 16384))
    }

    fn ns(
        &self,
        collective: Collective,
        sync: Sync,
        bytes: usize,
        candidate: &Candidate,
    ) -> Result<f64> {
        let (before, timed, after) = if sync == Sync::STRICT { STRICT_CALLS } else { CALLS };
        let program = Program {
            collective,
            candidate: candidate.clone(),
            sync,
            root: Rank(0),
            bytes,
            symmetric: collective == Collective::Reduce,
            mode: Mode::Throughput,
            calls: (before + timed + after) as u64,
        };
        let simulation = Simulation::on(self.machine.clone(), self.pes);
        let simulation = simulation.heap_bytes(2 * bytes).window(WINDOW);
        let played = program.play(&simulation, self.pes)?;
        Ok(played.calls_ns[before..before + timed].iter().sum::<f64>() / timed as f64)
    }

    /// The best tree of each size, in ascending order of sizes.
    fn best_trees(&self, sync: Sync, sizes_bytes: &[usize]) -> Result<Vec<Best>> {
        let mut radices: Vec<u64> =
            RADICES.into_iter().filter(|&radix| radix < u64::from(self.pes)).collect();
        let mut bests = Vec::new();
        for &bytes in sizes_bytes {
            let mut times = Vec::new();
            for &radix in &radices {
                times.push((self.reduce_ns(sync, bytes, &tree(radix))?, radix));
            }
            times.sort_by(|(one, _), (other, _)| one.total_cmp(other));
            let (ns, radix) = times[0];
            times.retain(|&(other_ns, _)| other_ns <= HOPELESS * ns);
            radices = times.into_iter().map(|(_, radix)| radix).collect();
            bests.push(Best { work: measure::reduce(sync, bytes, tree(radix)), ns });
        }
        Ok(bests)
    }

    /// Flat and the best tree at each size.
    fn pairs(&self, sync: Sync) -> Result<Vec<Pair>> {
        let sizes_bytes = DOUBLES.map(|doubles| doubles * size_of::<f64>());
        let trees = self.best_trees(sync, &sizes_bytes)?;
        let sizes = DOUBLES.into_iter().zip(sizes_bytes).zip(trees);
        sizes
            .map(|((doubles, bytes), tree)| {
                Ok(Pair { doubles, flat_ns: self.flat_ns(sync, bytes)?, tree })
            })
            .collect()
    }
}

/// What the paper's machines show of a claim.
pub(super) fn quantities(claim: Claim) -> Result<Vec<Quantity>> {
    let mut all = Vec::new();
    let mut push = |machine, quantity: &str, unit, paper, value| {
        let (figure, beside) = ((quantity.to_owned(), unit, paper), (None, value, None));
        all.push(Quantity::simulated(claim.name(), machine, figure, beside));
    };
    match claim {
        Claim::H1 => {
            let machine = Simulated::new(paper::NIAGARA2)?;
            let flat_ns = machine.barrier_ns(&measure::flat())?;
            let mut tree_ns = f64::INFINITY;
            for tree in measure::trees(machine.pes) {
                tree_ns = tree_ns.min(machine.barrier_ns(&tree)?);
            }
            let mut push = |what, unit, paper, value| {
                push(paper::NIAGARA2, &format!("barrier, {what}, 256 PEs"), unit, paper, value);
            };
            push("flat", "us", None, flat_ns / 1e3);
            push("best tree", "us", None, tree_ns / 1e3);
            let gain = Some(paper::TREE_BARRIER_GAIN);
            push("flat over best tree", "ratio", gain, flat_ns / tree_ns);
        }
        Claim::H3 => {
            let machine = Simulated::new(paper::NIAGARA2)?;
            let strict = machine.best_trees(Sync::STRICT, &SIZES_BYTES)?;
            let loose = machine.best_trees(Sync::LOOSE, &SIZES_BYTES)?;
            let pairs = strict.iter().zip(&loose);
            let mut ratios: Vec<f64> = pairs.map(|(strict, loose)| strict.ns / loose.ns).collect();
            let what = "reduce strict over loose";
            for (bytes, &ratio) in SIZES_BYTES.into_iter().zip(&ratios) {
                let quantity = format!("{what}, {bytes} B, 256 PEs");
                push(paper::NIAGARA2, &quantity, "ratio", None, ratio);
            }
            let what = format!("{what}, 8 B to 64 kB");
            let (middle, most) = (median(&mut ratios), ratios[ratios.len() - 1]);
            let says = Some(paper::STRICT_OVER_LOOSE_MEDIAN);
            push(paper::NIAGARA2, &format!("{what}, median, 256 PEs"), "ratio", says, middle);
            let says = Some(paper::STRICT_OVER_LOOSE_MOST);
            push(paper::NIAGARA2, &format!("{what}, most, 256 PEs"), "ratio", says, most);
        }
        Claim::H4 => {
            let machine = Simulated::new(paper::BARCELONA)?;
            let (loose, strict) = (machine.pairs(Sync::LOOSE)?, machine.pairs(Sync::STRICT)?);
            // Without a crossover flat serves every size.
            let from = |pairs| crossover(pairs).unwrap_or(usize::MAX);
            let (loose_from, strict_from) = (from(&loose), from(&strict));
            let mut push = |what, unit, paper, value: Option<f64>| {
                if let Some(value) = value {
                    let quantity = format!("reduce, {what}, 32 PEs");
                    push(paper::BARCELONA, &quantity, unit, Some(paper), value);
                }
            };
            let doubles = |pairs| crossover(pairs).map(|doubles| doubles as f64);
            push("crossover loose", "doubles", paper::CROSSOVER_LOOSE, doubles(&loose));
            push("crossover strict", "doubles", paper::CROSSOVER_STRICT, doubles(&strict));
            let strict_penalty = penalty(&strict, loose_from, strict_from);
            push("strict with loose's crossover", "ratio", paper::STRICT_PENALTY, strict_penalty);
            let loose_penalty = penalty(&loose, strict_from, loose_from);
            push("loose with strict's crossover", "ratio", paper::LOOSE_PENALTY, loose_penalty);
        }
        Claim::H5 => {
            let machine = Simulated::new(paper::CLOVERTOWN)?;
            for sync in [Sync::LOOSE, Sync::STRICT] {
                let pairs = machine.pairs(sync)?;
                let flat_wins = pairs.iter().filter(|pair| pair.ratio() <= AS_GOOD).count();
                let share = flat_wins as f64 / pairs.len() as f64;
                let quantity =
                    format!("reduce {sync}, share of sizes at which flat is best, 8 PEs");
                push(paper::CLOVERTOWN, &quantity, "ratio", Some(1.0), share);
            }
        }
        Claim::H6 => {
            for column in &TABLE_2 {
                let machine = Simulated::new(column.machine)?;
                let (mode, sync) =
                    if column.strict { ("strict", Sync::STRICT) } else { ("loose", Sync::LOOSE) };
                for (radix, us) in RADICES.into_iter().zip(column.us) {
                    let ns = machine.reduce_ns(sync, BYTES, &tree(radix))?;
                    let quantity = format!("reduce 8 kB {mode} radix {radix}");
                    push(column.machine, &quantity, "us", Some(us), ns / 1e3);
                }
            }
        }
        // They bring their own, or have none.
        Claim::T2 | Claim::T3 | Claim::T4 | Claim::T5 | Claim::T7 => {}
        Claim::G1 | Claim::G4 | Claim::G5 | Claim::G6 => {}
        Claim::P3 | Claim::P4 | Claim::P5 => {}
    }
    Ok(all)
}

/// Puts what the paper's machines show beside what this machine does.
pub(super) fn merge(quantities: &mut Vec<Quantity>, simulated: Vec<Quantity>) {
    for one in simulated {
        let same = |other: &&mut Quantity| {
            (other.machine, &other.quantity) == (one.machine, &one.quantity)
        };
        match quantities.iter_mut().find(same) {
            Some(native) => {
                native.simulated = one.simulated;
                native.rel_error = one.rel_error;
            }
            None => quantities.push(one),
        }
    }
}

/// All that was simulated, against the paper.
pub(super) fn text(quantities: &[Quantity]) -> String {
    let header = ["simulated machine", "quantity", "unit", "paper", "simulated", "error"];
    let mut table = output::table(header.map(str::to_owned).to_vec());
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    for quantity in quantities.iter().filter(|quantity| quantity.simulated.is_some()) {
        table.add_row(vec![
            quantity.machine.to_owned(),
            quantity.quantity.clone(),
            quantity.unit.to_owned(),
            number(quantity.paper),
            number(quantity.simulated),
            quantity.rel_error.map_or("-".to_owned(), |error| format!("{:+.0} %", error * 100.0)),
        ]);
    }
    output::finish(table, &[3, 4, 5]) + "\n" + &output::wrapped(FITTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(machine: &Simulated, sync: Sync) -> [f64; 5] {
        RADICES.map(|radix| machine.reduce_ns(sync, BYTES, &tree(radix)).unwrap() / 1e3)
    }

    fn winner(us: &[f64; 5]) -> u64 {
        let best = (0..5).min_by(|&one, &other| us[one].total_cmp(&us[other])).unwrap();
        RADICES[best]
    }

    /// The largest error of the times over a column's best.
    fn relative_error(found: &[f64; 5], paper: &[f64; 5], best: usize) -> f64 {
        let relative = |us: &[f64; 5], at: usize| us[at] / us[best];
        let error = |at| (relative(found, at) / relative(paper, at) - 1.0).abs();
        (0..5).map(error).fold(0.0, f64::max)
    }

    #[test]
    fn barcelonas_columns_of_table_2_are_met() {
        let machine = Simulated::new(paper::BARCELONA).unwrap();
        let [loose, strict] = [Sync::LOOSE, Sync::STRICT].map(|sync| us(&machine, sync));
        assert_eq!((winner(&loose), winner(&strict)), (1, 2), "{loose:?} {strict:?}");
        assert!(relative_error(&strict, &TABLE_2[1].us, 1) < 0.25, "{strict:?}");
        for (found, paper) in [(loose, TABLE_2[0].us), (strict, TABLE_2[1].us)] {
            for (found, paper) in found.into_iter().zip(paper) {
                assert!((paper / 1.5..paper * 1.5).contains(&found), "{found} for {paper}");
            }
        }
    }

    #[test]
    fn niagara2s_strict_trees_are_met() {
        let machine = Simulated::new(paper::NIAGARA2).unwrap();
        let found = us(&machine, Sync::STRICT);
        assert_eq!(winner(&found), 4, "{found:?}");
        // The chain is a known miss.
        let (mut trees, paper) = (found, TABLE_2[3].us);
        trees[0] = paper[0] / paper[2] * found[2];
        assert!(relative_error(&trees, &paper, 2) < 0.4, "{found:?}");
    }

    #[test]
    fn the_smallest_subtree_first_halves_the_critical_path() {
        // Radix 2 of 32: 5 passes, after which the root has waited for all; the largest first: 15.
        let machine = Simulated::new(paper::BARCELONA).unwrap();
        let smallest = tree(2).with("largest_first", 0);
        let [largest, smallest] =
            [tree(2), smallest].map(|tree| machine.reduce_ns(Sync::STRICT, BYTES, &tree).unwrap());
        assert!(largest > 1.7 * smallest, "{largest} {smallest}");
    }

    #[test]
    fn loose_calls_are_as_much_faster_as_in_the_paper_or_near() {
        let found = quantities(Claim::H3).unwrap();
        let found: Vec<f64> = found.iter().filter_map(|quantity| quantity.simulated).collect();
        let [.., median, most] = found[..] else { panic!("{found:?}") };
        assert!((2.5..=4.5).contains(&median) && most <= 6.0, "{found:?}");
    }

    #[test]
    fn crossovers_and_penalties_are_those_of_the_paper_or_near() {
        let found = quantities(Claim::H4).unwrap();
        let found: Vec<f64> = found.iter().filter_map(|quantity| quantity.simulated).collect();
        let [loose, strict, strict_penalty, loose_penalty] = found[..] else { panic!("{found:?}") };
        assert!((4.0..=16.0).contains(&loose) && (16.0..=64.0).contains(&strict), "{found:?}");
        assert!(loose < strict && strict_penalty >= 1.3 && loose_penalty >= 2.0, "{found:?}");
    }

    #[test]
    fn flat_is_best_on_clovertown_and_a_tree_barrier_on_niagara2() {
        let shares = quantities(Claim::H5).unwrap();
        assert!(shares.iter().all(|share| share.simulated == Some(1.0)), "{shares:?}");
        let barriers = quantities(Claim::H1).unwrap();
        assert!(barriers[2].simulated.unwrap() >= 8.0, "{barriers:?}");
    }

    #[test]
    fn a_simulated_figure_joins_the_native_one_of_its_name() {
        let name = || "reduce".to_owned();
        let native = Quantity::native("H6", "a", name(), "us", Some(2.0), Some(1.0));
        let figure = |machine, paper| {
            Quantity::simulated("H6", machine, (name(), "us", paper), (None, 3.0, None))
        };
        let (simulated, alone) = (figure("a", Some(2.0)), figure("b", None));
        let mut all = vec![native];
        merge(&mut all, vec![simulated, alone]);
        let figures: Vec<_> =
            all.iter().map(|one| (one.native, one.simulated, one.rel_error)).collect();
        assert_eq!(figures, [(Some(1.0), Some(3.0), Some(0.5)), (None, Some(3.0), None)]);
    }
}
