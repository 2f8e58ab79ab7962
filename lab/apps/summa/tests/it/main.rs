//! SUMMA on threads: both modes, extents that are not multiples of the block size, and the command.

use consort_sandbox as _;

use consort::Job;
use consort_apps_kernels::{command::Application, grid::Shape, mode::Mode, recorder::Recorder};
use consort_apps_summa::{Problem, Summa, check};

const SUMMA: Application = Application(env!("CARGO_BIN_EXE_summa"));

/// Computes the products in both modes and checks them. Returns each PE's part.
fn products(pes: usize, shape: Shape, [rows, inner, columns]: [usize; 3], block: usize) {
    let problem = Problem { rows, inner, columns, block, shape };
    let program = |pe: &consort::Pe| {
        let summa = Summa::new(pe.world(), problem)?;
        let mut products = Vec::new();
        for mode in Mode::ALL {
            let mut c = summa.zeros();
            summa.multiply(&mut c, mode, &Recorder::begin())?;
            let right = check(pe.world(), &problem, &c)?;
            assert!(right.is_ok(), "{problem:?}, {mode:?}: {right:?}");
            products.push(c.entries().collect::<Vec<_>>());
        }
        assert_eq!(products[0], products[1], "{problem:?}");
        Ok(())
    };
    Job::threads(pes).run(program).expect("a program that succeeds");
}

#[test]
fn products_are_right_in_both_modes() {
    for pes in [1, 2, 4] {
        let shape = Shape::squarest(pes);
        products(pes, shape, [64; 3], 17);
        products(pes, shape, [101, 150, 77], 20);
        products(pes, shape, [256; 3], 48);
    }
}

#[test]
fn grids_may_be_oblong_and_partly_empty() {
    products(6, Shape { rows: 3, columns: 2 }, [100, 50, 64], 9);
    products(4, Shape { rows: 4, columns: 1 }, [70, 3, 90], 16);
    products(4, Shape { rows: 1, columns: 4 }, [5, 40, 2], 64); // most PEs have no elements
}

#[test]
fn a_wrong_product_is_found() {
    for extent in [40, 350] {
        let shape = Shape { rows: 1, columns: 2 };
        let (rows, inner, columns) = (extent, extent, extent);
        let problem = Problem { rows, inner, columns, block: 16, shape };
        let program = |pe: &consort::Pe| {
            let summa = Summa::new(pe.world(), problem)?;
            let mut c = summa.zeros();
            summa.multiply(&mut c, Mode::Overlap, &Recorder::begin())?;
            if pe.world().rank().0 == 1 {
                c.view_mut().data()[7] += 1.0;
            }
            let wrong = check(pe.world(), &problem, &c)?;
            assert!(wrong.is_err_and(|wrong| wrong.differences > 0));
            Ok(())
        };
        Job::threads(2).run(program).expect("a program that succeeds");
    }
}

#[test]
fn command_checks_results_and_refuses_bad_options() {
    let folder = tempfile::tempdir().expect("a folder");
    let summa = |arguments: &[&str]| SUMMA.run(arguments, folder.path());
    let sized = ["-n", "2", "--size", "90", "--block", "32", "--check", "--timeline", "all.svg"];
    let (done, [out, error]) = summa(&sized);
    assert!(done && out.contains("exactly"), "{out}{error}");
    let svg = std::fs::read_to_string(folder.path().join("all.svg")).expect("a picture");
    assert!(svg.starts_with("<svg") && svg.contains("PE 1"));
    let (done, [out, _]) = summa(&["-n", "2", "--size", "50", "--json", "--repeat", "1"]);
    assert!(done && out.starts_with("{\"application\":\"summa\""), "{out}");
    let (done, [out, error]) = summa(&["-n", "2", "--size", "50", "--timeline", "nowhere/all.svg"]);
    assert!(!done && error.contains("time line to nowhere/all.svg: No such file"), "{error}");
    assert_eq!((out.as_str(), error.lines().count()), ("", 1), "before anything runs: {error}");
    let (done, [_, error]) = summa(&["-n", "4", "--grid", "3x2"]);
    assert!(!done && error.contains("6 places, but there are 4 PEs: try 2x2"), "{error}");
    let (done, [_, error]) = summa(&["--size", "64", "--extents", "1,2,3"]);
    assert!(!done && error.contains("cannot be used with"), "{error}");
    let (done, [_, error]) = summa(&["--extents", "1,2,0"]);
    assert!(!done && error.contains("from 1 to 1048575"), "{error}");
}

#[test]
fn examples_of_the_help_work() {
    let folder = tempfile::tempdir().expect("a folder");
    let smaller = [("--size", "200")];
    SUMMA.try_examples(&smaller, include_str!("../../README.md"), folder.path());
}

#[test]
fn comparison_runs_without_the_peer() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["--size", "64", "--blocks", "16,32"];
    let (done, [out, error]) = SUMMA.compare("pdgemm", &options, folder.path());
    let rows: Vec<_> = out.lines().filter(|line| line.starts_with("summa ")).collect();
    assert!(done && rows.len() == 2, "{out}{error}");
    assert!(rows[0].contains(" overlap ") && rows[1].contains(" blocking "), "{out}");
}

/// Checks the objects that `consort-lab reproduce G10` reads.
#[test]
fn comparison_prints_json() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["--size", "64", "--blocks", "16", "--json"];
    let (done, [out, error]) = SUMMA.compare("pdgemm", &options, folder.path());
    let lines: Vec<_> = out.lines().collect();
    assert!(done && lines.len() == 2, "{out}{error}");
    for (line, side) in lines.into_iter().zip(["overlap", "blocking"]) {
        let object = line.strip_prefix('{').and_then(|line| line.strip_suffix('}')).expect("JSON");
        let begins =
            format!("\"application\": \"summa\", \"side\": \"{side}\", \"pes\": 2, \"seconds\": ");
        assert!(object.starts_with(&begins) && !object.contains("left_out"), "{line}");
    }
}
