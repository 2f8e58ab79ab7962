//! Forced candidates that do not exist, or cannot serve.

use consort::{
    Error, Job, Rank,
    error::CallError,
    ops::Sum,
    sync_modes::SyncModes,
    tune::{Candidate, Collective},
};
use consort_collectives::{PlanError, names};
use consort_conformance::{registry::one_each, turns::alone};

use super::on;
use crate::{jobs::SOON, typed};

#[test]
fn forcing_an_unknown_candidate_fails() {
    for collective in Collective::EVERY {
        let errors = on(Job::threads(2), move |world| {
            let source = [1; 2];
            let call = || typed::values(world, collective, &source, Sum, Rank(0)).map(|_| ());
            let force = |candidate| {
                world.algorithms().force(collective, Some(candidate));
                call().expect_err("no such candidate")
            };
            let unknown = force(Candidate::new("fastest"));
            let wrong = one_each(collective).into_iter().flat_map(|one| {
                let other = (force(one.clone().with("colour", 8)), "no parameter `colour`".into());
                let name = &one.algorithm;
                let of_parameter = |(parameter, _): &(String, u64)| {
                    let others = one.parameters().iter().filter(|(name, _)| name != parameter);
                    let new = one.parts.iter().cloned().fold(Candidate::new(name), Candidate::of);
                    let without = others.fold(new, |new, (name, value)| new.with(name, *value));
                    let expected = format!("{name} needs {parameter} from ");
                    [without, one.clone().with(parameter, u64::MAX)]
                        .map(|wrong| (force(wrong), expected.clone()))
                };
                let wrong: Vec<_> = one.parameters().iter().flat_map(of_parameter).collect();
                wrong.into_iter().chain([other])
            });
            let wrong: Vec<_> = wrong.collect();
            // The job continues.
            world.algorithms().force(collective, None);
            call().expect("the library's choice");
            (unknown, wrong)
        });
        for (unknown, wrong) in errors {
            let text = unknown.to_string();
            assert!(matches!(
                unknown,
                Error::Call(CallError::Plan(PlanError::UnknownAlgorithm { .. }))
            ));
            assert!(text.contains("`fastest`"), "{text}");
            assert!(names(collective).iter().all(|name| text.contains(name)), "{text}");
            for (error, expected) in wrong {
                assert!(error.to_string().contains(&expected), "{error}, not {expected}");
            }
        }
    }
}

/// A forced but unknown barrier is also the entry and exit barrier of Strict calls.
#[test]
fn forcing_an_unknown_barrier_of_strict_calls() {
    let errors = on(Job::threads(3), |world| {
        world.algorithms().force(Collective::Barrier, Some(Candidate::new("tournament")));
        let error =
            world.with_sync(SyncModes::STRICT).broadcast(1, Rank(0)).expect_err("no such barrier");
        assert_eq!(world.broadcast(4, Rank(0)).ok(), Some(4), "no barrier is needed");
        error.to_string()
    });
    for error in errors {
        assert!(error.contains("tournament") && error.contains("dissemination"), "{error}");
    }
}

#[test]
fn launch_fails_if_forced_candidate_cannot_serve() {
    let large = Candidate::new("shared").with("chunk_bytes", 1 << 30);
    let error = alone(2 * SOON, || {
        Job::threads(2)
            .force(Collective::Broadcast, large)
            .run(|pe| pe.world().broadcast(1, Rank(0)))
    });
    let error = error.expect_err("there is only one chunk").to_string();
    assert!(error.contains("shared cannot serve this call: there is only one chunk"), "{error}");
}
