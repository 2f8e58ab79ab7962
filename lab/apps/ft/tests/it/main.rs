//! The benchmark on threads: class S in all layouts and exchanges, and the command.

use consort_sandbox as _;

use consort::Job;
use consort_apps_ft::{Class, Exchange, Ft, Layout, Uneven, check, ensure_even};
use consort_apps_kernels::{command::Application, grid::Shape, recorder::Recorder};

const EXCHANGES: [Exchange; 3] =
    [Exchange::Whole, Exchange::Slabs, Exchange::PackedSlabs { planes: 5 }];

const FT: Application = Application(env!("CARGO_BIN_EXE_ft"));

/// Solves class S with each exchange. All must give the published checksums, and the same ones.
fn solve(pes: usize, layout: Layout) {
    let [class, ..] = Class::ALL;
    assert_eq!(ensure_even(&class, layout, pes), Ok(()));
    let program = |pe: &consort::Pe| {
        let mut all = Vec::new();
        for exchange in EXCHANGES {
            let mut ft = Ft::new(pe.world(), class, layout, exchange)?;
            let checksums = ft.solve(ft.initial(), &Recorder::begin())?;
            let right = check(&class, &checksums);
            assert!(right.is_ok(), "{pes} PEs, {layout:?}, {exchange:?}: {right:?}");
            all.push(checksums);
        }
        assert!(all.iter().all(|one| *one == all[0]), "{pes} PEs, {layout:?}");
        Ok(())
    };
    Job::threads(pes).run(program).expect("a program that succeeds");
}

#[test]
fn slabs_give_the_published_checksums() {
    [1, 2, 4].into_iter().for_each(|pes| solve(pes, Layout::Slabs));
}

#[test]
fn pencils_give_the_published_checksums() {
    for (rows, columns) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        solve(rows * columns, Layout::Pencils(Shape { rows, columns }));
    }
}

#[test]
fn uneven_shares_are_refused() {
    let [_, w, ..] = Class::ALL;
    let refused =
        |layout, pes| ensure_even(&w, layout, pes).map_err(|error: Uneven| error.to_string());
    assert_eq!(refused(Layout::Slabs, 32), Ok(()));
    let along_z = refused(Layout::Slabs, 64).expect_err("more PEs than planes");
    assert!(along_z.starts_with("64 PEs cannot share the 32 points along z"), "{along_z}");
    let shape = Shape { rows: 3, columns: 2 };
    assert!(refused(Layout::Pencils(shape), 6).is_err_and(|error| error.contains("along y")));
}

#[test]
fn command_checks_results_and_refuses_bad_options() {
    let folder = tempfile::tempdir().expect("a folder");
    let ft = |arguments: &[&str]| FT.run(arguments, folder.path());
    let (done, [out, error]) = ft(&["-n", "2", "--check", "--repeat", "1"]);
    assert!(done && out.contains("6 published checksums"), "{out}{error}");
    let (done, [_, error]) = ft(&["-n", "3"]);
    assert!(!done && error.contains("cannot share the 64 points"), "{error}");
    let (done, [_, error]) = ft(&["--class", "Z"]);
    assert!(!done && error.contains("S, W, A or B"), "{error}");
    let (done, [_, error]) = ft(&["--grid", "2x2"]);
    assert!(!done && error.contains("--grid is for --layout pencils"), "{error}");
    let (done, [_, error]) = ft(&["--exchange", "whole", "--pack", "2"]);
    assert!(!done && error.contains("--pack is for --exchange packed-slabs"), "{error}");
}

#[test]
fn examples_of_the_help_work() {
    let folder = tempfile::tempdir().expect("a folder");
    FT.try_examples(&[("--class", "S")], include_str!("../../README.md"), folder.path());
}

#[test]
fn comparison_runs_without_the_peer() {
    let folder = tempfile::tempdir().expect("a folder");
    let (done, [out, error]) = FT.compare("fftw_mpi", &["--class", "S"], folder.path());
    let rows: Vec<_> = out.lines().filter(|line| line.starts_with("ft ")).collect();
    assert!(done && rows.len() == 3, "{out}{error}");
    for (row, exchange) in rows.into_iter().zip(["whole", "slabs", "packed-slabs"]) {
        assert!(row.contains(&format!(" {exchange} ")), "{out}");
    }
}
