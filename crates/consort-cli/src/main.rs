//! The consort command.

mod bench;
mod mpi;
mod peers;
mod topo;

use bench::{session::{Mode, Session}, work::Work};
use consort::{Collective, Sync};
use consort_fabric::statistics::Summary;
use std::time::Duration;

fn main() {
    let pes: u32 = std::env::args().nth(1).map_or(2, |s| s.parse().unwrap());
    let filter = std::env::args().nth(2).unwrap_or_default();
    let ms: u64 = std::env::args().nth(3).map_or(1000, |s| s.parse().unwrap());
    let mut work = vec![];
    let c = |collective, sync, bytes, symmetric, cand: &str| Work::Consort { collective, sync, bytes, symmetric, candidate: if cand.is_empty() {None} else {Some(cand.parse().unwrap())} };
    if filter.contains("barrier") {
        for n in ["dissemination(radix=2)", "central", "flat", "knomial(radix=2)"] { work.push(c(Collective::Barrier, Sync::STRICT, 0, false, n)); }
        for index in 0..3 { work.push(Work::Peer { index, collective: Collective::Barrier, bytes: 0 }); }
    }
    if filter.contains("b8") { for (coll, n) in [(Collective::Broadcast, "flat"), (Collective::Reduce, "flat")] { for sync in [Sync::LOOSE, Sync::STRICT] { work.push(c(coll, sync, 8, true, n)); } } }
    if filter.contains("small") {
        for coll in [Collective::Broadcast, Collective::Reduce] { for bytes in [8, 64, 256, 1024] { for (sync) in [Sync::LOOSE, Sync::MINE, Sync::STRICT] {
            work.push(c(coll, sync, bytes, true, "flat"));
            work.push(c(coll, sync, bytes, true, "direct(block_bytes=16384)".get(..if coll==Collective::Broadcast {6} else {99.min(25)}).unwrap()));
        }}}
    }
    let mut mode = Mode::Throughput;
    if filter.contains("large") {
        mode = if filter.contains("lat") { Mode::Latency } else {Mode::Throughput};
        let bytes = 1<<20;
        for n in ["flat", "direct", "shared(chunk_bytes=8192)", "shared(chunk_bytes=16384)", "shared(chunk_bytes=32768)","shared(chunk_bytes=65536)"] { work.push(c(Collective::Broadcast, Sync::MINE, bytes, false, n)); }
        for n in ["flat", "direct(block_bytes=16384)", "shared(chunk_bytes=4096)", "shared(chunk_bytes=16384)"] { work.push(c(Collective::Reduce, Sync::MINE, bytes, false, n)); }
        for index in 0..3 { work.push(Work::Peer { index, collective: Collective::Broadcast, bytes }); work.push(Work::Peer { index, collective: Collective::Reduce, bytes }); }
    }
    let session = Session { pes, waiting: None, work: work.clone(), mode, budget: Duration::from_millis(ms), block: Duration::from_micros(500) };
    let m = session.run().unwrap();
    for (w, t) in work.iter().zip(&m.timings) {
        let name = match w { Work::Consort { collective, sync, bytes, .. } => format!("{collective} {bytes} {sync} {}", t.algorithm.as_ref().map(|a| a.to_string()).unwrap_or_default()), Work::Peer { index, collective, .. } => format!("{collective} peer {index}") };
        for far in [false, true] {
            let b: Vec<f64> = t.blocks.iter().filter(|b| b.transfer_ns.is_none_or(|x| x > 60.) == far).map(|b| b.ns).collect();
            let r: Vec<f64> = t.blocks.iter().filter(|b| b.transfer_ns.is_none_or(|x| x > 60.) == far).map(|b| b.ns / b.transfer_ns.unwrap_or(1.)).collect();
            if b.is_empty() { if let Some(e) = &t.error { println!("{name} {e}"); } continue; }
            let s = Summary::of(&b);
            println!("{name:50} {} {:10.1} ns [{:.1} {:.1}] ratio {:.2} n={} disc {} {:?}", if far {"far "} else {"near"}, s.median, s.ci95.0, s.ci95.1, Summary::of(&r).median, b.len(), t.discarded, t.error);
        }
    }
}
