//! T8 to T11 and T13 to T15 (Petrović 2015, chapters 6 and 7): locks and delegation on the TILE-Gx,
//! the Xeon and the Opteron, simulated.
//!
//! 1. `run`: an object under a lock or a scheme on a simulated machine;

mod run;

#[cfg(test)]
mod explore {
    use super::run::*;

    fn show(name: &str, setting: &Setting) -> f64 {
        let p = setting.run().unwrap();
        let [rr, pf] = p.remote();
        println!(
            "{name:16} n {:3} {:7.2} Mops/s lat {:8.1} ns fair {:.2} cas {:.2} stalled {:.2} remote {rr:.2} prefetched {pf:.2} idle {:.2}",
            setting.placement.len(),
            p.mops,
            p.latency_ns(),
            p.fairness(),
            p.exchanges(),
            p.stalled(),
            p.servicing.idle_ns() / 400_000.0
        );
        p.mops
    }

    #[test]
    fn tile() {
        for n in [1_u32, 2, 3, 5, 10, 15, 20, 36] {
            let s = |way, increments| Setting {
                machine: "tile-gx36",
                placement: (0..n).collect(),
                way,
                increments,
                longest_loop: 50,
                by_pointer: false,
            };
            for inc in [1, 0, 25] {
                if inc != 1 && n != 36 {
                    continue;
                }
                println!("increments {inc}");
                if inc == 1 {
                    show("tas", &s(Way::TestAndSet, 1));
                }
                let m = show("mcs", &s(Way::Mcs, inc));
                let c = show("clh", &s(Way::Clh, inc));
                let h = show("hyblock", &s(Way::HybLock, inc));
                println!("{:.2} {:.2}", h / m, h / c);
            }
            let cc = show("cc", &s(Way::CcSynch(200), 1));
            let hy = show("hybcomb", &s(Way::HybComb(200), 1));
            if n == 36 {
                show("cc 5000", &s(Way::CcSynch(5000), 1));
                show("hybcomb 5000", &s(Way::HybComb(5000), 1));
                show("cc inf", &s(Way::CcSynch(u64::MAX), 1));
                show("hybcomb inf", &s(Way::HybComb(u64::MAX), 1));
            }
            if n > 1 {
                let sh = show("shm", &s(Way::Shm(Slots::default()), 1));
                let mp = show("mp", &s(Way::Mp, 1));
                println!("mp/shm {:.2} hyb/cc {:.2}", mp / sh, hy / cc);
            }
        }
    }

    #[test]
    fn x86() {
        for (machine, sockets, per, tpc, clients, every_second, backoffs) in [
            ("xeon-e7-8867l-x8", 8, 20, 2, 158, true, [0, 1000, 3000, 5000]),
            ("opteron-6176-x4", 4, 12, 1, 47, false, [0, 500, 1500, 3000]),
        ] {
            let mut placement = vec![0_u32];
            for sib in 0..tpc {
                for c in 0..per / tpc {
                    for k in 0..sockets {
                        let t = k * per + c * tpc + sib;
                        if t != 0 && !(tpc == 2 && t == 1) && placement.len() <= clients {
                            placement.push(t);
                        }
                    }
                }
            }
            for increments in [1, 200] {
                println!("{machine} {increments}");
                for backoff in backoffs {
                    for (streams, shuffled) in [(false, false), (false, true), (true, false)] {
                        let slots = Slots {
                            every_second,
                            backoff: (backoff > 0).then_some(backoff),
                            streams,
                            shuffled,
                        };
                        let s = Setting {
                            machine,
                            placement: placement.clone(),
                            way: Way::Shm(slots),
                            increments,
                            longest_loop: 1000,
                            by_pointer: true,
                        };
                        show(
                            &format!(
                                "B{backoff}{}{}",
                                if streams { "-SS" } else { "" },
                                if shuffled { "-shuf" } else { "" }
                            ),
                            &s,
                        );
                    }
                }
            }
            for way in [Way::CcSynch(200), Way::HSynch(200), Way::FetchAdd] {
                let name = format!("{way:?}");
                let s = Setting {
                    machine,
                    placement: placement.clone(),
                    way,
                    increments: 1,
                    longest_loop: 1000,
                    by_pointer: true,
                };
                show(&name, &s);
            }
        }
    }
}
