//! The command `summa`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, builder::RangedU64ValueParser};
use consort::{Pe, Rank};
use consort_apps_kernels::{
    dense::dense,
    grid::Shape,
    measure::measure,
    options::Common,
    report::{Report, conclude},
};
use consort_apps_summa::{Mode, Problem, Summa, Wrong, check};

const EXAMPLES: &str = "\
Examples:
  summa -n 4 --check                        four threads, 1024 by 1024
  summa -n 4 --size 2048 --blocking         panels by blocking broadcasts
  summa -n 6 --grid 3x2 --extents 300,200,100 --block 32
  summa -n 4 --timeline summa.svg           a picture of what each PE does
  consort run -n 4 summa --size 2048        PEs that are processes
  mpirun -n 4 summa --size 2048             the same under an MPI, on many machines";

/// Dense matrix multiplication by SUMMA
#[derive(Parser)]
#[command(version, after_help = EXAMPLES, max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    common: Common,

    /// Rows and columns of all matrices
    #[arg(long, value_name = "N", default_value_t = 1024,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..1 << 20))]
    size: usize,

    /// Rows of A, its columns, and columns of B, instead of a size
    #[arg(long, value_name = "M,K,N", value_parser = extents, conflicts_with = "size")]
    extents: Option<[usize; 3]>,

    /// Rows and columns of a block
    #[arg(long, value_name = "B", default_value_t = 128,
          value_parser = RangedU64ValueParser::<usize>::new().range(1..1 << 20))]
    block: usize,

    /// Rows and columns of the grid of PEs, as in 2x3 [default: the squarest]
    #[arg(long, value_name = "RxC")]
    grid: Option<Shape>,

    /// Broadcast panels while those before them are multiplied (default)
    #[arg(long, conflicts_with = "blocking")]
    overlap: bool,

    /// Broadcast panels by blocking calls
    #[arg(long)]
    blocking: bool,
}

fn extents(text: &str) -> Result<[usize; 3]> {
    let parts: Vec<_> = text.split(',').map(str::parse::<usize>).collect();
    match parts[..] {
        [Ok(rows), Ok(inner), Ok(columns)]
            if [rows, inner, columns].iter().all(|extent| (1..1 << 20).contains(extent)) =>
        {
            Ok([rows, inner, columns])
        }
        _ => bail!("give three extents from 1 to 1048575, as in 300,200,100"),
    }
}

/// The program of a PE. PE 0 has the report.
fn program(pe: &Pe, arguments: &Arguments) -> Result<Option<Report>> {
    let (world, common) = (pe.world(), &arguments.common);
    let shape = Shape::of(arguments.grid, world.size())?;
    let [rows, inner, columns] = arguments.extents.unwrap_or([arguments.size; 3]);
    let problem = Problem { rows, inner, columns, block: arguments.block, shape };
    let mode = if arguments.blocking { Mode::Blocking } else { Mode::Overlap };
    let summa = Summa::new(world, problem)?;
    let measured = measure(
        world,
        common.repeat,
        || summa.zeros(),
        |mut c, recorder| summa.multiply(&mut c, mode, recorder).map(|()| c),
    )?;
    let checked = match common.check.then(|| check(world, &problem, &measured.result)) {
        None => None,
        Some(checked) => match checked? {
            Ok(words) => Some(words),
            Err(Wrong { differences }) => {
                bail!("the product is wrong: {differences} comparisons fail")
            }
        },
    };
    let is_first = world.rank() == Rank(0);
    Ok(is_first.then(|| {
        let text = format!("{rows}x{inner}x{columns}, block {}, grid {shape}", problem.block);
        let variant = if mode == Mode::Blocking { "blocking" } else { "overlap" };
        let machine = (dense().name(), world.size());
        let texts = (text, variant.to_owned());
        Report::new("summa", texts, machine, problem.flops(), measured).checked(checked)
    }))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = arguments.common.run(|pe| program(pe, &arguments));
    conclude(ended, &arguments.common)
}
