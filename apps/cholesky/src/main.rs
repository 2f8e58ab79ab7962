//! The command `cholesky`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, builder::RangedU64ValueParser};
use consort::{Pe, Rank};
use consort_apps_cholesky::{Cholesky, Mode, Problem, Wrong, check};
use consort_apps_kernels::{
    dense::dense,
    grid::Shape,
    measure::measure,
    options::Common,
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

    /// Rows and columns of the matrix
    #[arg(long, value_name = "N", default_value_t = 1024,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..1 << 20))]
    size: usize,

    /// Rows and columns of a block
    #[arg(long, value_name = "B", default_value_t = 128,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..1 << 20))]
    block: usize,

    /// Rows and columns of the grid of PEs, as in 2x3 [default: the squarest]
    #[arg(long, value_name = "RxC")]
    grid: Option<Shape>,

    /// Factor and broadcast a panel while the one before it updates the rest (default)
    #[arg(long, conflicts_with = "blocking")]
    overlap: bool,

    /// Factor and broadcast panels when they are needed, by blocking calls
    #[arg(long)]
    blocking: bool,
}

/// The program of a PE. PE 0 has the report.
fn program(pe: &Pe, arguments: &Arguments) -> Result<Option<Report>> {
    let (world, common) = (pe.world(), &arguments.common);
    let shape = Shape::of(arguments.grid, world.size())?;
    let problem = Problem { order: arguments.size, block: arguments.block, shape };
    let mode = if arguments.blocking { Mode::Blocking } else { Mode::Ahead };
    let cholesky = Cholesky::new(world, problem)?;
    let measured = measure(
        world,
        common.repeat,
        || cholesky.matrix(),
        |mut a, recorder| cholesky.factor(&mut a, mode, recorder).map(|()| a),
    )?;
    let checked = match common.check.then(|| check(world, &measured.result)) {
        None => None,
        Some(checked) => match checked? {
            Ok(words) => Some(words),
            Err(Wrong { residual }) => bail!("the factor is wrong: its residual is {residual:e}"),
        },
    };
    let is_first = world.rank() == Rank(0);
    Ok(is_first.then(|| {
        let text = format!("{}, block {}, grid {shape}", problem.order, problem.block);
        let variant = if mode == Mode::Blocking { "blocking" } else { "overlap" };
        let machine = (dense().name(), world.size());
        let texts = (text, variant.to_owned());
        Report::new("cholesky", texts, machine, problem.flops(), measured).checked(checked)
    }))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = arguments.common.run(|pe| program(pe, &arguments));
    conclude(ended, &arguments.common)
}
