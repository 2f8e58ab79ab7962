//! The factorization on threads: both modes, orders that are not multiples of the block size, and
//! the command.

use consort_sandbox as _;

use consort::{Job, Pe};
use consort_apps_cholesky::{Cholesky, Error, Problem, check};
use consort_apps_kernels::{
    command::Application, dense::NotPositiveDefinite, grid::Shape, mode::Mode, recorder::Recorder,
};

const CHOLESKY: Application = Application(env!("CARGO_BIN_EXE_cholesky"));

/// Factors in both modes. Both factors must be equal and pass the check.
fn factors(pes: usize, shape: Shape, order: usize, block: usize) {
    let problem = Problem { order, block, shape };
    let program = |pe: &Pe| {
        let cholesky = Cholesky::new(pe.world(), problem)?;
        let mut factors = Vec::new();
        for mode in Mode::ALL {
            let mut a = cholesky.matrix();
            cholesky.factor(&mut a, mode, &Recorder::begin())?;
            let right = check(pe.world(), &a)?;
            assert!(right.is_ok(), "{problem:?}, {mode:?}: {right:?}");
            let lower = a.entries().filter(|(row, column, _)| row >= column);
            factors.push(lower.collect::<Vec<_>>());
        }
        assert_eq!(factors[0], factors[1], "{problem:?}");
        Ok::<_, Error>(())
    };
    Job::threads(pes).try_run(program).expect("a program that succeeds");
}

#[test]
fn factors_are_right_in_both_modes() {
    for pes in [1, 2, 4] {
        let shape = Shape::squarest(pes);
        factors(pes, shape, 64, 17);
        factors(pes, shape, 131, 12);
        factors(pes, shape, 256, 48);
    }
    factors(2, Shape { rows: 1, columns: 2 }, 400, 64); // checked only with random vectors
}

#[test]
fn grids_may_be_oblong_and_partly_empty() {
    factors(6, Shape { rows: 3, columns: 2 }, 150, 9);
    factors(6, Shape { rows: 2, columns: 3 }, 150, 9);
    factors(4, Shape { rows: 4, columns: 1 }, 100, 7);
    factors(4, Shape { rows: 1, columns: 4 }, 90, 100);
    factors(4, Shape { rows: 2, columns: 2 }, 1, 8);
}

#[test]
fn a_wrong_factor_is_found() {
    for order in [40, 350] {
        let problem = Problem { order, block: 16, shape: Shape { rows: 1, columns: 2 } };
        let program = |pe: &Pe| {
            let cholesky = Cholesky::new(pe.world(), problem)?;
            let mut a = cholesky.matrix();
            cholesky.factor(&mut a, Mode::Overlap, &Recorder::begin())?;
            if pe.world().rank().0 == 1 {
                a.view_mut().data()[order - 1] += 1e-3; // of column 16
            }
            assert!(check(pe.world(), &a)?.is_err_and(|wrong| wrong.residual > 30.0));
            Ok::<_, Error>(())
        };
        Job::threads(2).try_run(program).expect("a program that succeeds");
    }
}

#[test]
fn a_matrix_without_a_factor_is_refused() {
    let problem = Problem { order: 50, block: 8, shape: Shape { rows: 2, columns: 2 } };
    for mode in Mode::ALL {
        let program = |pe: &Pe| {
            let cholesky = Cholesky::new(pe.world(), problem)?;
            let mut a = cholesky.matrix();
            let places: Vec<_> = a.entries().map(|(row, column, _)| (row, column)).collect();
            let bad = places.iter().position(|&place| place == (30, 30));
            if let Some(bad) = bad {
                a.view_mut().data()[bad] = -1.0;
            }
            cholesky.factor(&mut a, mode, &Recorder::begin())
        };
        match Job::threads(4).try_run(program) {
            Err(Error::NotPositiveDefinite(NotPositiveDefinite { order: 31 })) => {}
            other => panic!("{mode:?}: {other:?}"),
        }
    }
}

#[test]
fn command_checks_results_and_refuses_bad_options() {
    let folder = tempfile::tempdir().expect("a folder");
    let cholesky = |arguments: &[&str]| CHOLESKY.run(arguments, folder.path());
    let (done, [out, error]) = cholesky(&["-n", "2", "--size", "90", "--block", "32", "--check"]);
    assert!(done && out.contains("residual of A - L L^T"), "{out}{error}");
    let (done, [_, error]) = cholesky(&["-n", "2", "--size", "0"]);
    assert!(!done && error.contains("--size"), "{error}");
    let (done, [_, error]) = cholesky(&["--overlap", "--blocking"]);
    assert!(!done && error.contains("cannot be used with"), "{error}");
}

#[test]
fn examples_of_the_help_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let smaller = [("--size", "200")];
    CHOLESKY.try_examples(&smaller, include_str!("../../README.md"), folder.path());
}

#[test]
fn comparison_runs_without_the_peer() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["--size", "64", "--blocks", "16,32"];
    let (done, [out, error]) = CHOLESKY.compare("pdpotrf", &options, folder.path());
    let rows: Vec<_> = out.lines().filter(|line| line.starts_with("cholesky ")).collect();
    assert!(done && rows.len() == 2, "{out}{error}");
    assert!(rows[0].contains(" overlap ") && rows[1].contains(" blocking "), "{out}");
}
