//! Wisdom of PEs that are processes of an MPI, and the number of its queries.

use super::Place;
use consort_sandbox::commands::says;

/// `explain` works without an MPI, too: it shows the choices and how to tune for them.
#[test]
fn processes_of_an_mpi_have_wisdom_for_each_shape() {
    let place = Place::new();
    let page = place.run("explain all_reduce --pes 4 --fabric mpi:2").succeeds().out;
    assert!(page.contains("two_level") && says(&page, "tune --fabric mpi:2 --pes 4"), "{page}");
    place.run("tune --fabric mpi").misused("give the number of PEs of your programs with --pes");
    place.run("tune --fabric mpi:2 --pes 3").misused("it must be a multiple of 2");
}

/// The name matches that of `consort tune`, which knows where the PEs are started.
#[test]
fn mixture_on_one_machine_is_named_by_its_fabric() {
    let place = Place::new();
    for (options, text) in [
        ("--fabric mixed:2x1 --pes 2", "2 PEs of --fabric mixed:2x1 are processes"),
        ("--fabric mixed:4x2 --pes 8", "8 PEs of --fabric mixed:4x2 are processes"),
        ("--fabric mixed:1x2 --pes 4", "4 PEs of --fabric mixed:1x2 are mpi:2"),
    ] {
        let explained = place.run(&format!("explain barrier {options}")).succeeds();
        assert!(explained.err.contains(text), "{options}: {}", explained.err);
        assert!(!says(&explained.out, "--fabric mixed"), "{options}: {}", explained.out);
    }
    let explained = place.run("explain barrier --fabric mixed:2x1").succeeds();
    assert!(explained.out.starts_with("barrier of 4 PEs") && explained.err.is_empty());
}

/// Measured queries, kept ones, and those of other calls add up to all measured queries.
#[test]
fn the_counts_of_a_run_add_up() {
    let place = Place::tuned();
    let tuned = place.run("tune --collective barrier --pes 3 --budget 4").succeeds().out;
    assert!(says(&tuned, "Queries measured: 1 in") && !tuned.contains("kept"), "{tuned}");
    assert!(says(&tuned, "queries: 2 measured (1 of them of other calls), 0 estimated"), "{tuned}");
    place.decide();
    let tuned = place.run("tune --collective barrier --pes 2,3 --budget 4").succeeds().out;
    assert!(says(&tuned, "2 kept from before") && !says(&tuned, "queries: 2"), "{tuned}");
    let place = Place::new();
    let tuned = place.run("tune --rigour estimate --collective broadcast --pes 4").succeeds().out;
    assert!(!tuned.contains("kept") && says(&tuned, "queries: 0 measured, "), "{tuned}");
}
