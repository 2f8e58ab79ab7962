//! Operations of one PE on the memory of another: between threads and between processes.

use std::collections::BTreeSet;

use super::{FIGURE, consort, keys, objects, stdout};
use consort_sandbox::commands::says;

#[test]
fn puts_are_timed_between_threads_and_between_processes() {
    for (what, operations, messages) in [
        ("put-signal", "put_signal, wait_until", None),
        ("put-rate", "put, quiet", Some(64)),
        ("put-bandwidth", "put, quiet", Some(16)),
    ] {
        for fabric in ["threads", "processes"] {
            let line = format!(
                "bench point-to-point {what} --fabric {fabric} --bytes 8,4k --budget 0 --json"
            );
            let objects = objects(&line);
            for object in &objects {
                assert_eq!(keys(object), BTreeSet::from(FIGURE), "{line}");
                assert_eq!((&object["bench"], &object["pes"]), (&what.into(), &2.into()));
            }
            let (ours, peers): (Vec<_>, Vec<_>) =
                objects.iter().partition(|object| object["peer"].is_null());
            assert!(ours.iter().any(|one| one["median_ns"].as_f64() > Some(0.0)), "{ours:?}");
            for one in ours {
                assert_eq!(
                    (&one["algorithm"], &one["fabric"]),
                    (&operations.into(), &fabric.into())
                );
                assert_eq!(one["params"]["messages"].as_u64(), messages, "{one}");
                assert!(one["sync"].is_null() && (one["bytes"] == 8 || one["bytes"] == 4096));
            }
            let [absent] = &peers[..] else { panic!("an MPI that is not there: {peers:?}") };
            assert!(absent["peer"] == "mpirun" && absent["median_ns"].is_null(), "{absent}");
        }
    }
}

#[test]
fn puts_are_rated() {
    for (what, unit) in [("put-rate", "messages/us"), ("put-bandwidth", "GB/s")] {
        let page = stdout(&format!("bench point-to-point {what} --fabric processes --budget 0"));
        assert!(page.contains(unit) && says(&page, "puts and a quiet"), "{page}");
        assert!(page.contains("not measured: mpirun of "), "{page}");
        assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    }
}

#[test]
fn unsupported_put_options_are_refused() {
    for (line, why) in [
        ("bench point-to-point put-rate --pes 3", "unexpected argument '--pes'"),
        ("bench point-to-point put-signal --peers std", "[possible values: mpi, none]"),
        ("bench point-to-point put-bandwidth --bytes 128M", "has at most 67108864 bytes"),
    ] {
        let refused = consort(line);
        let error = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(2) && error.contains(why), "{line}: {error}");
    }
}
