//! The command `summa`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Parser;
use consort::Pe;
use consort_apps_kernels::{
    dense::dense,
    grid::Shape,
    measure::measure,
    options::{BlockCyclic, Common, EXTENTS},
    report::{Report, conclude},
};
use consort_apps_summa::{Problem, Summa, check};

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

    #[command(flatten)]
    matrices: BlockCyclic,

    /// Rows of A, columns of A and columns of B, instead of a size
    #[arg(long, value_name = "M,K,N", value_parser = extents, conflicts_with = "size")]
    extents: Option<[usize; 3]>,
}

fn extents(text: &str) -> Result<[usize; 3]> {
    let parts: Vec<_> = text.split(',').map(str::parse::<usize>).collect();
    match parts[..] {
        [Ok(rows), Ok(inner), Ok(columns)]
            if [rows, inner, columns].iter().all(|extent| EXTENTS.contains(extent)) =>
        {
            Ok([rows, inner, columns])
        }
        _ => bail!("expected three extents from 1 to {}, as in 300,200,100", EXTENTS.end()),
    }
}

/// Runs the program of one PE and returns its report.
fn program(pe: &Pe, arguments: &Arguments) -> Result<Report> {
    let (world, common, matrices) = (pe.world(), &arguments.common, &arguments.matrices);
    let (block, mode) = (matrices.block, matrices.mode());
    let shape = Shape::of(matrices.grid, world.size())?;
    let [rows, inner, columns] = arguments.extents.unwrap_or([matrices.size; 3]);
    let problem = Problem { rows, inner, columns, block, shape };
    let summa = Summa::new(world, problem)?;
    let measured = measure(
        world,
        common.repeat,
        || summa.zeros(),
        |mut c, recorder| summa.multiply(&mut c, mode, recorder).map(|()| c),
    )?;
    let checked = common.checked(|| check(world, &problem, &measured.result))?;
    let text = format!("{rows}x{inner}x{columns}, block {block}, grid {shape}");
    let (texts, machine) = ((text, mode.name().to_owned()), (dense().name(), world.size()));
    Ok(Report::new("summa", texts, machine, problem.flops(), measured).checked(checked))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = arguments.common.run(|pe| program(pe, &arguments));
    conclude(ended, &arguments.common)
}
