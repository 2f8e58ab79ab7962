#![allow(missing_docs, clippy::all, async_fn_in_trait, dead_code)]
#[path = "../tests/it/threads/algorithms.rs"]
mod algorithms;
use algorithms::*;
use consort_fabric::{Line, Machine};
use consort_sim::{machines::Machine as Description, *};
use std::sync::atomic::Ordering::Relaxed;

struct Setup {
    machine: &'static str,
    placement: Vec<u32>,
    loop_most: u64,
    increments: usize,
    server: bool,
}

fn run<X: Exclusion<SimulatedThread>>(name: &str, s: &Setup, x: &X, announce: &[Line]) -> f64 {
    let data: Vec<Line> = (0..8).map(|_| Line::new()).collect();
    let stack = Line::new();
    let began = std::time::Instant::now();
    let sim = ThreadSimulation::on(Description::find(s.machine).unwrap(), 1)
        .placed(s.placement.clone())
        .seed(1);
    let inc = s.increments;
    let section = async |m: &SimulatedThread| {
        let mut old = 0;
        if s.loop_most == 1000 {
            for i in 0..3 {
                m.store(&stack[i], 1, Relaxed).await;
            }
        }
        for i in 0..inc {
            let word = &data[i % 64 / 8][i % 8];
            old = m.load(word, Relaxed).await;
            m.store(word, old + 1, Relaxed).await;
        }
        old
    };
    let out = sim
        .run_for(100_000.0, 300_000.0, async |m: SimulatedThread| {
            if m.thread().0 == 0 {
                m.announce(&data);
                if !announce.is_empty() {
                    m.announce(announce);
                }
            }
            if s.server && m.thread().0 == 0 {
                m.serve();
                x.serve(&m, &section).await;
                return;
            }
            m.pause(m.random(100_000)).await;
            loop {
                m.operation(x.apply(&m, &section)).await;
                m.spin(m.random(s.loop_most + 1));
            }
        })
        .unwrap();
    let ops: u64 = out.tallies.iter().map(|t| t.operations).sum();
    let clients = out.tallies.iter().skip(s.server as usize);
    let (mx, mn) = (
        clients.clone().map(|t| t.operations).max().unwrap(),
        clients.clone().map(|t| t.operations).min().unwrap(),
    );
    let mops = ops as f64 / out.measured_ns * 1e3;
    let busiest = out.tallies.iter().min_by(|a, b| a.idle_ns().total_cmp(&b.idle_ns())).unwrap();
    let sv = if s.server { &out.tallies[0] } else { busiest };
    let lat = out.tallies.iter().filter(|t| t.operations > 0).map(|t| t.latency_ns()).sum::<f64>()
        / s.placement.len() as f64;
    let sum =
        |f: &dyn Fn(&Tally) -> u64| out.tallies.iter().map(f).sum::<u64>() as f64 / ops as f64;
    println!(
        "{name:14} n {:3} {mops:7.2} Mops/s lat {lat:8.1} fair {:.2} | busiest stall {:.2} (coh {:.2} fence {:.2} sb {:.2}) idle {:.2} | /op rr {:.2} rw {:.2} ra {:.2} pf {:.2} cas {:.2} | sv/op rr {:.2} rw {:.2} ra {:.2} pf {:.2} | {:.2} Mev/s {:.2}s",
        s.placement.len(),
        mx as f64 / mn as f64,
        sv.all_stalled_ns() / (out.measured_ns - sv.idle_ns()),
        sv.stalled_ns(Stall::Coherence) / (out.measured_ns - sv.idle_ns()),
        sv.stalled_ns(Stall::Fence) / (out.measured_ns - sv.idle_ns()),
        sv.stalled_ns(Stall::StoreBuffer) / (out.measured_ns - sv.idle_ns()),
        sv.idle_ns() / out.measured_ns,
        sum(&|t| t.remote_reads),
        sum(&|t| t.remote_writes),
        sum(&|t| t.remote_atomics),
        sum(&|t| t.prefetched),
        sum(&|t| t.exchanges),
        sv.remote_reads as f64 / ops as f64,
        sv.remote_writes as f64 / ops as f64,
        sv.remote_atomics as f64 / ops as f64,
        sv.prefetched as f64 / ops as f64,
        out.events as f64 / began.elapsed().as_secs_f64() / 1e6,
        began.elapsed().as_secs_f64()
    );
    mops
}

fn tile(n: u32, increments: usize, server: bool) -> Setup {
    Setup { machine: "tile-gx36", placement: (0..n).collect(), loop_most: 50, increments, server }
}

fn x86(machine: &'static str, clients: usize, increments: usize) -> Setup {
    let Description { kind: consort_sim::machines::Kind::Coherent(m), .. } =
        Description::find(machine).unwrap()
    else {
        panic!()
    };
    let sockets = if machine.starts_with("xeon") { 8 } else { 4 };
    let per = m.threads() / sockets;
    let mut placement = vec![0];
    // Cores of all sockets in turn; second threads of cores last.
    let tpc = if machine.starts_with("xeon") { 2 } else { 1 };
    for sib in 0..tpc {
        for c in 0..per / tpc {
            for s in 0..sockets {
                let t = s * per + c * tpc + sib;
                if t != 0 && !(tpc == 2 && t == 1) && placement.len() <= clients {
                    placement.push(t);
                }
            }
        }
    }
    Setup { machine, placement, loop_most: 1000, increments, server: true }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let n: u32 = args.get(2).map_or(36, |a| a.parse().unwrap());
    match args[1].as_str() {
        "locks" => {
            for inc in [1, 0, 25] {
                let s = tile(n, inc, false);
                let t = n as usize;
                println!("increments {inc}");
                if inc == 1 {
                    run("tas", &s, &TestAndSet::default(), &[]);
                    run("ticket", &s, &Ticket::default(), &[]);
                }
                let m = run("mcs", &s, &Mcs::new(t), &[]);
                let c = run("clh", &s, &Clh::new(t), &[]);
                let h = run("hyblock", &s, &Hyblock::new(t), &[]);
                println!("hyblock/mcs {:.2} /clh {:.2}", h / m, h / c);
            }
        }
        "dele" => {
            let t = n as usize;
            let s = tile(n, 1, true);
            let l = tile(n, 1, false);
            let x = ShmServer::new(t, 1);
            let shm = run("shm", &s, &x, &x.slots);
            let mp = run("mp", &s, &MpServer, &[]);
            let x = CcSynch::new(t, 200);
            let cc = run("cc", &l, &x, &[]);
            let x = Hybcomb::new(t, 200);
            let hyb = run("hybcomb", &l, &x, &[]);
            let x = Hybcomb::new(t, 5000);
            run("hybcomb 5000", &l, &x, &[]);
            let x = CcSynch::new(t, 1 << 62);
            run("cc inf", &l, &x, &[]);
            let x = Hybcomb::new(t, 1 << 62);
            run("hybcomb inf", &l, &x, &[]);
            println!("mp/shm {:.2} hyb/cc {:.2}", mp / shm, hyb / cc);
        }
        machine => {
            let machine: &'static str =
                if machine == "xeon" { "xeon-e7-8867l-x8" } else { "opteron-6176-x4" };
            let (clients, stride, backoffs) = if machine.starts_with("xeon") {
                (158, 2, [0u64, 1000, 3000, 5000])
            } else {
                (47, 1, [0, 500, 1500, 3000])
            };
            let clients = args.get(2).map_or(clients, |a| a.parse().unwrap());
            let incs: usize = args.get(3).map_or(1, |a| a.parse().unwrap());
            let s = x86(machine, clients, incs);
            let t = s.placement.len();
            for backoff in backoffs {
                for streams in [false, true] {
                    for shuf in [false, true] {
                        if shuf && streams {
                            continue;
                        }
                        let mut x = ShmServer::new(t, stride);
                        x.backoff = backoff;
                        x.streams = streams;
                        if shuf {
                            let mut st = 7u64;
                            for i in (1..x.order.len()).rev() {
                                x.order.swap(
                                    i,
                                    (consort_fabric::splitmix64(&mut st) % (i as u64 + 1)) as usize,
                                );
                            }
                        }
                        run(
                            &format!(
                                "B{backoff}{}{}",
                                if streams { "-SS" } else { "" },
                                if shuf { "-shuf" } else { "" }
                            ),
                            &s,
                            &x,
                            &x.slots,
                        );
                    }
                }
            }
        }
    }
}
