//! Tests `consort-lab model`: the estimates of all algorithms on a described machine.

use consort_sandbox::commands::says;

use super::{objects, stdout};

#[test]
fn algorithms_are_ranked_by_their_estimates() {
    let all = objects("model broadcast --machine scc --bytes 6k --json");
    assert_eq!(all[0]["algorithm"], "oc_bcast(chunk_bytes=3072,k=7)");
    assert_eq!(all[0]["chosen"], true);
    assert!(all.iter().all(|one| one["algorithm"] != "direct"), "the SCC shares no buffers");
    let times = all.iter().map(|one| one["latency_ns"].as_f64().expect("a time"));
    assert!(times.is_sorted(), "{all:?}");
    let text = stdout("model reduce --machine barcelona-x8 --pes 8");
    assert!(says(&text, "on barcelona-x8"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn model_of_a_thousand_pes_is_quick() {
    let all = objects("model barrier --machine cluster --pes 1024 --json");
    let best = all[0]["algorithm"].as_str().expect("a name");
    assert!(best.starts_with("two_level(dissemination"), "{best}");
}
