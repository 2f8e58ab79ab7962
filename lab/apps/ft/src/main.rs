//! The command `ft`.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum, builder::RangedU64ValueParser};
use consort::Pe;
use consort_apps_ft::{Class, Exchange, Ft, Layout, check, ensure_even};
use consort_apps_kernels::{
    grid::Shape,
    measure::measure,
    options::Common,
    report::{Report, conclude},
    rows::library,
};

const EXAMPLES: &str = "\
Examples:
  ft -n 4 --class S --check                      four threads, the smallest class
  ft -n 4 --class A --exchange whole             nothing overlaps
  ft -n 4 --class A --exchange packed-slabs --pack 16
  ft -n 4 --layout pencils --grid 2x2 --check    two exchanges
  ft -n 4 --timeline ft.svg                      a picture of what each PE does
  consort run -n 4 ft --class A                  PEs that are processes
  mpirun -n 4 ft --class A                       the same under an MPI, on many machines";

/// The default number of planes in a message.
const PACK: usize = 8;

/// FT of the NAS Parallel Benchmarks
#[derive(Parser)]
#[command(version, after_help = EXAMPLES, max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    common: Common,

    /// The size: 64x64x64, 128x128x32, 256x256x128 or 512x256x256 points
    #[arg(long, value_name = "CLASS", default_value = "S", value_parser = class)]
    class: Class,

    /// How the array is distributed over the PEs
    #[arg(long, value_enum, default_value_t = Kind::Slabs)]
    layout: Kind,

    /// Rows and columns of the grid of PEs for pencils, as in 2x3 [default: the squarest]
    #[arg(long, value_name = "RxC")]
    grid: Option<Shape>,

    /// When planes are exchanged
    #[arg(long, value_enum, default_value_t = Travel::PackedSlabs)]
    exchange: Travel,

    /// Planes in a message of packed slabs [default: 8]
    #[arg(long, value_name = "PLANES",
          value_parser = RangedU64ValueParser::<usize>::new().range(1..1 << 20))]
    pack: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Each PE has planes; one exchange
    Slabs,
    /// Each PE has rows, in a grid of PEs; two exchanges
    Pencils,
}

#[derive(Clone, Copy, ValueEnum)]
enum Travel {
    /// All planes together, when all are computed
    Whole,
    /// Each plane alone, as soon as it is computed
    Slabs,
    /// Several planes together, as soon as they are computed
    PackedSlabs,
}

fn class(name: &str) -> Result<Class> {
    let class = Class::ALL.into_iter().find(|class| class.name.eq_ignore_ascii_case(name));
    class.ok_or_else(|| anyhow::anyhow!("unknown class: expected S, W, A or B"))
}

/// Runs the program of one PE and returns its report.
fn program(pe: &Pe, arguments: &Arguments) -> Result<Report> {
    let (world, common, class) = (pe.world(), &arguments.common, arguments.class);
    let (layout, layout_name) = match arguments.layout {
        Kind::Slabs => {
            ensure!(arguments.grid.is_none(), "--grid is for --layout pencils");
            (Layout::Slabs, "slabs".to_owned())
        }
        Kind::Pencils => {
            let shape = Shape::of(arguments.grid, world.size())?;
            (Layout::Pencils(shape), format!("pencils on a grid {shape}"))
        }
    };
    ensure_even(&class, layout, world.size())?;
    let (exchange, exchange_name) = match arguments.exchange {
        Travel::Whole => (Exchange::Whole, "whole".to_owned()),
        Travel::Slabs => (Exchange::Slabs, "slabs".to_owned()),
        Travel::PackedSlabs => {
            let planes = arguments.pack.unwrap_or(PACK);
            (Exchange::PackedSlabs { planes }, format!("packed-slabs of {planes}"))
        }
    };
    let is_packed = matches!(exchange, Exchange::PackedSlabs { .. });
    ensure!(is_packed || arguments.pack.is_none(), "--pack is for --exchange packed-slabs");
    let mut ft = Ft::new(world, class, layout, exchange)?;
    let initial = ft.initial();
    let measured = measure(
        world,
        common.repeat,
        || initial.clone(),
        |space, recorder| ft.solve(space, recorder),
    )?;
    let checked = common.checked(|| Ok(check(&class, &measured.result)))?;
    let text = format!("class {}, {layout_name}", class.name);
    let (texts, machine) = ((text, format!("exchange {exchange_name}")), (library(), world.size()));
    Ok(Report::new("ft", texts, machine, class.flops(), measured).checked(checked))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = arguments.common.run(|pe| program(pe, &arguments));
    conclude(ended, &arguments.common)
}
