//! The results of a job: access by rank, iteration in the order of the ranks, and comparisons.

use consort::{Job, Rank, Results};

fn tens(pes: usize) -> Results<usize> {
    Job::threads(pes).run(|pe| Ok(pe.world().rank().index() * 10)).expect("a job that goes well")
}

#[test]
fn result_is_found_by_rank_and_by_number() {
    let results = tens(4);
    assert_eq!((results[0], results[3]), (0, 30));
    assert_eq!((results[Rank(0)], results[Rank(3)]), (0, 30));
    assert_eq!((results.get(Rank(2)), results.get(Rank(4))), (Some(&20), None));
    assert_eq!((results.len(), results.is_empty()), (4, false));
}

#[test]
#[should_panic(expected = "no result of PE 2: it did not run here")]
fn missing_rank_panics() {
    let _ = tens(2)[Rank(2)];
}

#[test]
#[should_panic(expected = "no result of PE 2: it did not run here")]
fn missing_number_panics() {
    let _ = tens(2)[2];
}

#[test]
#[should_panic(expected = "no PE has a rank of more than 32 bits")]
#[cfg(target_pointer_width = "64")]
fn indexing_by_invalid_rank_panics() {
    let _ = tens(2)[1 << 32];
}

#[test]
fn results_come_in_the_order_of_the_ranks() {
    let results = tens(3);
    assert!(results.iter().eq(&[0, 10, 20]));
    let mut sum = 0;
    for result in &results {
        sum += result;
    }
    assert_eq!(sum, 30);
    let ranked = results.ranked();
    assert_eq!(ranked.len(), 3);
    assert!(ranked.eq([(Rank(0), &0), (Rank(1), &10), (Rank(2), &20)]));
    assert!(results.clone().into_ranked().eq([(Rank(0), 0), (Rank(1), 10), (Rank(2), 20)]));
    assert!(results.clone().into_iter().rev().eq([20, 10, 0]));
    assert_eq!(results.into_vec(), [0, 10, 20]);
}

#[test]
fn pool_returns_results_of_all_ranks() {
    let pool = Job::threads(2).pool().expect("a pool");
    for round in 0..3 {
        let results = pool.run_with([round, 7], |pe, input| Ok((pe.world().rank(), input)));
        let results = results.expect("a region");
        assert!(results.ranked().all(|(rank, result)| rank == result.0));
        assert_eq!(results, [(Rank(0), round), (Rank(1), 7)]);
    }
}

#[test]
fn results_are_moved_out() {
    let names = Job::threads(2).run(|pe| Ok(format!("PE {}", pe.world().rank())));
    let names = names.expect("a job that goes well");
    assert_eq!(names, ["PE 0", "PE 1"]);
    let (first, name) = names.into_ranked().next().expect("two of them");
    assert_eq!((first, name), (Rank(0), "PE 0".to_owned()));
}

#[test]
fn results_are_compared_with_arrays_and_results() {
    assert_eq!(tens(2), vec![0, 10]);
    let results = tens(3);
    assert_eq!(results, [0, 10, 20]);
    assert_ne!(results, [0, 10, 30]);
    assert_ne!(results, [0, 10]);
    assert_ne!(results, [0, 10, 20, 30]);
    assert_eq!(results, tens(3));
    assert_ne!(results, tens(2));
    let none = Job::threads(2).run(|_| Ok(None::<Vec<u8>>)).expect("a job that goes well");
    assert_eq!(none, [None, None]);
}

#[test]
fn results_are_shown_as_a_list() {
    assert_eq!(format!("{:?}", tens(3)), "[0, 10, 20]");
    assert_eq!(format!("{:#?}", tens(1)), "[\n    0,\n]");
}
