//! Static variables that peers access: at any place in the program, and in a child.

use std::{
    cell::UnsafeCell,
    fs,
    mem::MaybeUninit,
    process::{Command, ExitCode},
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering::Relaxed},
    },
};

use consort::{
    Rank,
    symmetric::{Atomic, Until},
};
use consort_fabric::Nodes;
use consort_machine::Waiting;
use consort_native::{Config, Job, OneSided, Origin, PeProcess, Statics, Width};
use consort_sandbox::children;
use libtest_mimic::{Failed, Trial};

use crate::launching::start;

/// In the data segment of the program.
static DATA: [AtomicU64; 3] = [AtomicU64::new(7), AtomicU64::new(8), AtomicU64::new(9)];
/// In its zero-initialized segment.
static ZEROS: [AtomicU64; 100_000] = [const { AtomicU64::new(0) }; 100_000];
/// A gibibyte. Only one byte is used. In an array of atomics, the compiler would check each
/// element, which takes it minutes.
struct Large(UnsafeCell<MaybeUninit<[u8; 1 << 30]>>);

// SAFETY: only `byte` uses the memory, by atomic operations.
#[expect(unsafe_code, reason = "shares a large static variable")]
unsafe impl Sync for Large {}

static LARGE: Large = Large(UnsafeCell::new(MaybeUninit::uninit()));

impl Large {
    fn byte(&self) -> &AtomicU8 {
        let first = self.0.get().cast::<u8>();
        // SAFETY: within the memory, which stays, and is a static variable, initially zero.
        #[expect(unsafe_code, reason = "shares a large static variable")]
        unsafe {
            AtomicU8::from_ptr(first.wrapping_add(12_345))
        }
    }
}

pub(crate) fn tests() -> Vec<Trial> {
    let of = |pes: u32| {
        Trial::test(format!("statics::{pes}"), move || -> Result<(), Failed> {
            start(pes, &["statics"]).ended().is(0, "")
        })
    };
    [1, 2, 3, 8].map(of).into()
}

/// Waits until all are here, for the `round`th time.
fn meet(one_sided: OneSided<'_>, pes: u32, round: u64) {
    for pe in (0..pes).map(Rank) {
        one_sided.atomic(pe, 0, Width::Eight, Atomic::FetchAdd(1));
    }
    let all = Until::AtLeast(round * u64::from(pes));
    one_sided.wait_until(0, Width::Eight, all, None).expect("no PE fails");
}

/// Runs the program of a process.
pub(crate) fn run() -> ExitCode {
    LARGE.byte().store(1, Relaxed);
    ZEROS[50_000].store(3, Relaxed);
    let member = PeProcess::here().expect("a launcher").expect("it is a PE");
    let (own, pes) = (member.rank(), member.pes());
    let statics = Statics::of_program();
    let config = Config {
        pes,
        waiting: Waiting::SpinYieldPark,
        here: 2,
        nodes: Nodes::One,
        processors: member.processors(),
        cores: member.processors(),
        heap_bytes: 4096,
        heap_align: 0,
        statics_bytes: statics.bytes(),
        memory: Origin::Shared,
        first_step: 1,
        helpers: false,
        joining: None,
        names_places: true,
        places: true,
        name: String::new(),
    };
    let job: Arc<Job> = Job::of_processes(config, &member).expect("a job");
    // SAFETY: this is the first action of this process.
    #[expect(unsafe_code, reason = "tests an unsafe function")]
    unsafe { statics.share(&job, own) }.expect("the variables are mapped");
    let one_sided = OneSided::new(&job, own);
    meet(one_sided, pes, 1);
    let before = DATA.each_ref().map(|word| word.load(Relaxed));
    assert_eq!((before, ZEROS[50_000].load(Relaxed)), ([7, 8, 9], 3));
    assert_eq!(LARGE.byte().load(Relaxed), 1);
    let first = job.statics_at();
    let at = |word: &AtomicU64| {
        let offset = statics.offset_of(std::ptr::from_ref(word).addr(), 8);
        first + offset.expect("a static variable")
    };
    let next = Rank((own.0 + 1) % pes);
    meet(one_sided, pes, 2);
    for word in [&DATA[1], &ZEROS[50_000], &ZEROS[70_000]] {
        one_sided.atomic(next, at(word), Width::Eight, Atomic::FetchAdd(10));
    }
    one_sided.put(next, at(&DATA[2]), &[u64::from(own.0)]);
    meet(one_sided, pes, 3);
    let previous = u64::from((own.0 + pes - 1) % pes);
    assert_eq!(DATA.each_ref().map(|word| word.load(Relaxed)), [7, 18, previous]);
    assert_eq!((ZEROS[50_000].load(Relaxed), ZEROS[70_000].load(Relaxed)), (13, 10));
    fork_and_start();
    assert!(resident_pages() < 64 << 10, "{} pages are in memory", resident_pages());
    meet(one_sided, pes, 4);
    job.end();
    ExitCode::SUCCESS
}

/// A forked child has separate variables; one that runs another program changes nothing.
fn fork_and_start() {
    let before = DATA[1].load(Relaxed);
    children::run("a child that writes static variables", || {
        assert_eq!(DATA[1].swap(100, Relaxed), before);
        assert!(ZEROS[50_000].load(Relaxed) == 13 && LARGE.byte().load(Relaxed) == 1);
    });
    assert_eq!(DATA[1].load(Relaxed), before);
    assert!(Command::new("true").status().expect("a program").success());
}

/// Returns the number of resident pages of this process.
fn resident_pages() -> usize {
    let text = fs::read_to_string("/proc/self/statm").expect("the system says");
    text.split_whitespace().nth(1).expect("a number").parse().expect("a number")
}
