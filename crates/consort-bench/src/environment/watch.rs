//! Detects whether the machine is busy with other work. Before the start, the load shows this.
//! Later, it is shown by the processor time that a hypervisor takes, and by how often measuring
//! threads lose their cores.
//!
//! PEs that share cores are always switched, so their switches do not count. The load is an average
//! over the last minute, which includes earlier runs. So it counts only if another program is ready
//! to run at the start.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use consort_machine::{
    affinity::{self, CpuId},
    topology::Topology,
    usage,
};

use super::switches::Switches;

/// A lower load before the start is not reported.
const LEAST_LOAD: f64 = 0.5;
/// A smaller share of stolen time is not reported: it affects few blocks, and the median is robust
/// against these.
const LEAST_STOLEN: f64 = 0.05;
/// With less processor time, in ticks of a hundredth of a second, the share is not meaningful.
const FEWEST_TICKS: u64 = 50;
/// The number of looks for competitors, and the time between two looks.
const LOOKS: u32 = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
/// Processors are idle if they are so for this share of the time.
const LEAST_IDLE: f64 = 0.8;
/// A shorter sleep of the machine is within the inaccuracy of the clocks.
const LEAST_SLEEP: Duration = Duration::from_millis(10);

/// The state of the machine at the start of a measurement.
#[derive(Debug)]
pub struct Watch {
    begun: Instant,
    /// The load before the start, if the system reports it.
    load: Option<f64>,
    /// Whether others wanted to run then, on cores that the measurement needs.
    competes: bool,
    cpus: Vec<CpuId>,
    ticks: Option<Ticks>,
    suspended: Option<Duration>,
}

/// The processor time of some processors since they started, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    all: u64,
    idle: u64,
    stolen: u64,
}

impl Watch {
    /// Inspects the machine before a measurement with `pes` PEs.
    #[must_use]
    pub fn begin(pes: u32) -> Watch {
        let topology = Topology::discover();
        let mut competing_count = 0;
        let mut load = None;
        for _ in 0..LOOKS {
            let Some((average, others)) = load_of(&read("/proc/loadavg")) else { break };
            load = Some(average);
            competing_count += u32::from(others > 0);
            thread::sleep(BETWEEN_LOOKS);
        }
        let is_full = |load| is_full(load, pes as usize, topology.usable_cores());
        let cpus = topology.allowed().to_vec();
        Watch {
            begun: Instant::now(),
            load,
            competes: 2 * competing_count > LOOKS && load.is_some_and(is_full),
            ticks: ticks_of(&read("/proc/stat"), &cpus),
            cpus,
            suspended: usage::suspended(),
        }
    }

    /// Returns the time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Returns the load before the start.
    #[must_use]
    pub fn load(&self) -> Option<f64> {
        self.load
    }

    /// Describes in one line what has disturbed the measurement so far; `None` on an idle machine.
    #[must_use]
    pub fn busy(&self, switches: &Switches) -> Option<String> {
        let now = ticks_of(&read("/proc/stat"), &self.cpus);
        let stolen = self.ticks.zip(now).and_then(|(before, now)| stolen(before, now));
        let load = self.load.filter(|_| self.competes);
        describe_disturbances(stolen, switches.too_many(), load)
    }

    /// Returns how long the machine was suspended since the start, if it was.
    #[must_use]
    pub fn suspended(&self) -> Option<Duration> {
        let slept = usage::suspended()?.checked_sub(self.suspended?)?;
        (slept >= LEAST_SLEEP).then_some(slept)
    }
}

/// Returns whether another thread runs or could run now. If threads of this process run, they count
/// too, so the caller's threads must all wait.
pub fn others_run() -> bool {
    load_of(&read("/proc/loadavg")).is_some_and(|(_, others)| others > 0)
}

/// Sleeps for `time`, and returns whether the usable processors were idle meanwhile, as far as the
/// system reports it. Only a caller whose own threads all wait learns something from it.
pub fn cores_stay_idle(time: Duration) -> bool {
    let cpus = affinity::allowed();
    let ticks = || ticks_of(&read("/proc/stat"), &cpus);
    let before = ticks();
    thread::sleep(time);
    before.zip(ticks()).is_none_or(|(before, now)| {
        let [all, idle] = [now.all - before.all, now.idle - before.idle];
        idle as f64 >= LEAST_IDLE * all as f64
    })
}

/// Reads a file of the system; empty if it does not exist.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns the load of the last minute, and the number of other threads that run or could run.
fn load_of(text: &str) -> Option<(f64, u64)> {
    let mut words = text.split_whitespace();
    let average = words.next()?.parse().ok()?;
    let (running, _) = words.nth(2)?.split_once('/')?;
    Some((average, running.parse::<u64>().ok()?.saturating_sub(1)))
}

/// Returns whether a load leaves fewer idle cores than PEs need.
fn is_full(load: f64, pes: usize, cores: usize) -> bool {
    load >= LEAST_LOAD && load + pes.min(cores) as f64 > cores as f64
}

/// Returns the processor time of these processors; `None` if one is missing.
fn ticks_of(text: &str, cpus: &[CpuId]) -> Option<Ticks> {
    let mut sum = Ticks::default();
    for cpu in cpus {
        let name = format!("cpu{} ", cpu.0);
        let line = text.lines().find_map(|line| line.strip_prefix(&name))?;
        // user, nice, system, idle, iowait, irq, softirq, steal; the rest is contained in the first
        // two.
        let ticks = line.split_whitespace().take(8).map(str::parse::<u64>);
        let ticks = ticks.collect::<Result<Vec<u64>, _>>().ok()?;
        sum.all += ticks.iter().sum::<u64>();
        sum.idle += ticks.get(3)? + ticks.get(4)?;
        sum.stolen += ticks.get(7)?;
    }
    Some(sum)
}

/// Returns the share of stolen time, if it is large enough.
fn stolen(before: Ticks, now: Ticks) -> Option<f64> {
    let all = now.all.checked_sub(before.all).filter(|&all| all >= FEWEST_TICKS)?;
    let share = now.stolen.checked_sub(before.stolen)? as f64 / all as f64;
    (share >= LEAST_STOLEN).then_some(share)
}

fn describe_disturbances(
    stolen: Option<f64>,
    switches: Option<f64>,
    load: Option<f64>,
) -> Option<String> {
    let parts = [
        stolen.map(|share| format!("{:.0} % of processor time stolen", share * 100.0)),
        switches.map(|rate| format!("{rate:.0} involuntary switches a second")),
        load.map(|load| format!("load {load:.1} before the start")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    use super::*;

    #[test]
    fn load_counts_only_if_cores_are_scarce() {
        assert_eq!(load_of("3.20 1.1 0.9 4/102 3935\n"), Some((3.2, 3)));
        assert_eq!(load_of("3.20 1.1 0.9 0/102 3935\n"), Some((3.2, 0)));
        for bad in ["", "3.2", "much 1 1 1/2 3", "3.2 1 1 x/2 3", "3.2 1 1 12 3"] {
            assert_eq!(load_of(bad), None, "{bad}");
        }
        assert!(is_full(0.6, 2, 2) && is_full(0.6, 64, 2), "as many PEs as cores, or more");
        assert!(!is_full(3.0, 2, 64), "there are cores enough");
        assert!(!is_full(0.4, 2, 2), "the load is low");
    }

    #[test]
    fn stolen_time_counts_only_given_processors() {
        let text = "cpu 9 9 9 9 9 9 9 9 0 0\ncpu0 10 0 0 50 0 0 0 40 7 7\n\
                    cpu1 90 0 0 5 0 0 0 5 0 0\ncpu10 1 1 1 1 1 1 1 1 0 0\nintr 1 2";
        let of = |cpus: &[u32]| {
            ticks_of(text, &cpus.iter().map(|&cpu| CpuId(cpu)).collect::<Vec<CpuId>>())
        };
        assert_eq!(of(&[0]), Some(Ticks { all: 100, idle: 50, stolen: 40 }));
        assert_eq!(of(&[0, 1]), Some(Ticks { all: 200, idle: 55, stolen: 45 }));
        assert_eq!(of(&[0, 2]), None);
        assert_eq!(ticks_of("cpu0 1 2 3\n", &[CpuId(0)]), None);
        assert_eq!(ticks_of("cpu0 1 2 3 x 5 6 7 8\n", &[CpuId(0)]), None);
        let share = |all, of_it| stolen(Ticks::default(), Ticks { all, idle: 0, stolen: of_it });
        assert_eq!(share(100, 12), Some(0.12));
        assert_eq!(share(100, 4), None);
        assert_eq!(share(FEWEST_TICKS - 1, 40), None, "too short to say");
    }

    #[test]
    fn disturbances_print_as_one_line() {
        assert_eq!(describe_disturbances(None, None, None), None);
        let line = describe_disturbances(Some(0.12), Some(340.4), Some(3.21)).unwrap();
        let expected = "12 % of processor time stolen, 340 involuntary switches a second, load 3.2 \
                        before the start";
        assert_eq!(line, expected);
        assert_eq!(
            describe_disturbances(None, Some(99.0), None).unwrap(),
            "99 involuntary switches a second"
        );
    }

    #[test]
    fn cores_are_not_idle_while_others_compute() {
        let is_over = AtomicBool::new(false);
        let is_idle = thread::scope(|scope| {
            for _ in affinity::allowed() {
                scope.spawn(|| {
                    while !is_over.load(Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let is_idle = cores_stay_idle(Duration::from_millis(200));
            is_over.store(true, Relaxed);
            is_idle
        });
        assert_eq!(is_idle, !fs::exists("/proc/stat").unwrap());
    }

    #[test]
    fn watch_reads_this_machine() {
        let watch = Watch::begin(2);
        assert_eq!(watch.load().is_some(), fs::exists("/proc/loadavg").unwrap());
        assert_eq!(watch.suspended(), None, "it does not sleep during a test");
        let many = Switches::of(1000, 2, Duration::from_secs(1));
        assert!(watch.busy(&many).unwrap().contains("1000 involuntary switches"));
    }
}
