//! The command `cholesky`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use consort::Pe;
use consort_apps_cholesky::{Cholesky, Problem, check};
use consort_apps_kernels::{
    dense::dense,
    grid::Shape,
    measure::measure,
    options::{BlockCyclic, Common},
    report::{Report, conclude},
};

const EXAMPLES: &str = "\
Examples:
  cholesky -n 4 --check                       four threads, order 1024
  cholesky -n 4 --size 2048 --blocking        no look-ahead
  cholesky -n 6 --grid 3x2 --size 300 --block 32
  cholesky -n 4 --timeline cholesky.svg       a picture of what each PE does
  consort run -n 4 cholesky --size 2048       PEs that are processes
  mpirun -n 4 cholesky --size 2048            the same under an MPI, on many machines";

/// Dense Cholesky factorization on a checkerboard
#[derive(Parser)]
#[command(version, after_help = EXAMPLES, max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    common: Common,

    #[command(flatten)]
    matrices: BlockCyclic,
}

/// Runs the program of one PE and returns its report.
fn program(pe: &Pe, arguments: &Arguments) -> Result<Report> {
    let (world, common, matrices) = (pe.world(), &arguments.common, &arguments.matrices);
    let (order, block, mode) = (matrices.size, matrices.block, matrices.mode());
    let shape = Shape::of(matrices.grid, world.size())?;
    let problem = Problem { order, block, shape };
    let cholesky = Cholesky::new(world, problem)?;
    let measured = measure(
        world,
        common.repeat,
        || cholesky.matrix(),
        |mut a, recorder| cholesky.factor(&mut a, mode, recorder).map(|()| a),
    )?;
    let checked = common.checked(|| check(world, &measured.result))?;
    let text = format!("{order}, block {block}, grid {shape}");
    let (texts, machine) = ((text, mode.name().to_owned()), (dense().name(), world.size()));
    Ok(Report::new("cholesky", texts, machine, problem.flops(), measured).checked(checked))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = arguments.common.run(|pe| program(pe, &arguments));
    conclude(ended, &arguments.common)
}
