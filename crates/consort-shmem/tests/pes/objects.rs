//! Memory, teams, contexts, locks, counters.

use consort_shmem::{
    collectives::{barrier_all, team_sync},
    contexts::{self, Context},
    counting::{self, Counter},
    locks, memory, rma,
    teams::{self, Config, NUM_CONTEXTS, Team},
};

use crate::{Pe, read, write, zeros};

/// Returns the number of bytes in a core file of this process.
fn bytes_in_cores() -> usize {
    let text = std::fs::read_to_string("/proc/self/smaps").expect("the system says");
    let (mut size, mut bytes) = (0, 0);
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("Size:") => size = words.next().and_then(|kib| kib.parse().ok()).unwrap_or(0),
            Some("VmFlags:") if words.all(|flag| flag != "dd") => bytes += size * 1024,
            _ => {}
        }
    }
    bytes
}

/// A core file contains a share of the allocated memory, and no free memory. If no other PE shares
/// a PE's heap, and the heap is private memory, the core file may contain all of it.
pub(crate) fn cores(pe: Pe) {
    const LARGE: usize = 2 << 20;
    let before = bytes_in_cores();
    // The test's own memory use also changes.
    let grown = || (bytes_in_cores() + LARGE / 4).saturating_sub(before) / LARGE * LARGE;
    let share = (1 << 30) / pe.near().unsigned_abs() as usize / LARGE * LARGE;
    for size in [100, 1280 << 20] {
        let memory = memory::malloc(size).cast::<u8>();
        write(memory, &[1; 100]);
        let all = size.next_multiple_of(LARGE);
        let is_private = pe.near() == 1 && grown() == all;
        assert!(is_private || grown() == all.min(share), "{} bytes for {size}", grown());
        memory::free(memory.cast());
        assert_eq!(grown(), 0, "after {size} bytes");
    }
    let kept = memory::malloc(100);
    let freed = memory::malloc(64 << 20);
    let moved = memory::realloc(kept, 8 << 20);
    memory::free(freed);
    assert!(grown() <= 10 << 20, "{} bytes for 8 MiB", grown());
    memory::free(moved);
    assert_eq!(grown(), 0, "at the end");
}

pub(crate) fn memory(pe: Pe) {
    assert!(memory::malloc(0).is_null());
    assert!(memory::malloc(1 << 60).is_null());
    for align in [0, 3, 24, 4097] {
        assert!(memory::align(align, 8).is_null(), "{align}");
    }
    memory::free(std::ptr::null_mut());
    for align in [1, 2, 4, 8, 8 << 10, 64 << 10, 1 << 20] {
        let aligned = memory::align(align, 8);
        assert!(aligned.addr().is_multiple_of(align), "{align}: {aligned:?}");
        memory::free(aligned);
    }
    // The heap has 4 MiB, and begins at a multiple of that on each PE.
    let aligned = memory::align(4 << 20, 8);
    assert!(aligned.addr().is_multiple_of(4 << 20) && !aligned.is_null(), "{aligned:?}");
    memory::free(aligned);
    for round in 0..200_usize {
        let first = memory::malloc(100 + round);
        let aligned = memory::align(4096, 1000);
        assert!(aligned.addr().is_multiple_of(4096));
        let cleared = zeros::<u8>(3000);
        assert!(read(cleared, 3000).iter().all(|&byte| byte == 0));
        write(cleared, &[3; 3000]);
        let grown = memory::realloc(first, 2000);
        memory::free(aligned);
        memory::free(grown);
        memory::free(cleared.cast());
    }
    for hints in [0, 3, 4, 1 << 40, -1] {
        let hinted = memory::malloc_with_hints(16, hints);
        assert!(!hinted.is_null(), "{hints:#x}");
        memory::free(hinted);
    }
    let words = memory::malloc_with_hints(16, 1).cast::<u64>();
    write(words, &[11, 12]);
    memory::malloc(64);
    let moved = memory::realloc(words.cast(), 500).cast::<u64>();
    assert!(!std::ptr::addr_eq(moved, words));
    assert_eq!(read(moved, 2), [11, 12]);
    let theirs = memory::ptr(moved.cast(), pe.after(1));
    assert_eq!(theirs.is_null(), pe.near() < pe.pes);
    barrier_all();
    if !theirs.is_null() {
        write(theirs.cast::<u64>(), &[u64::from(pe.own.unsigned_abs())]);
        barrier_all();
        assert_eq!(read(moved, 1), [u64::from(pe.after(-1).unsigned_abs())]);
    }
    let local = 0;
    assert!(memory::ptr((&raw const local).cast(), 0).is_null());
    assert_eq!(memory::addr_accessible(moved.cast(), pe.after(1)), 1);
    assert_eq!(memory::addr_accessible((&raw const local).cast(), 0), 0);
    assert_eq!((memory::pe_accessible(pe.pes - 1), memory::pe_accessible(pe.pes)), (1, 0));
    let own = teams::my_pe(Team::SHARED);
    assert!(std::ptr::addr_eq(memory::team_ptr(Team::SHARED, moved.cast(), own), moved));
    large_pages_are_allowed(pe, words.addr());
}

/// Each process has allowed the system to use large pages for the heap, unless PEs share cores.
fn large_pages_are_allowed(pe: Pe, heap: usize) {
    let is_alone = std::env::var_os("CONSORT_LAUNCH").is_none();
    if is_alone || !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        return;
    }
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("the system says");
    let hex = |text: &str| usize::from_str_radix(text, 16).ok();
    let holds = |line: &str| {
        let (start, end) = line.split_once(' ').and_then(|(range, _)| range.split_once('-'))?;
        Some((hex(start)?..hex(end)?).contains(&heap))
    };
    let mut lines = maps.lines().skip_while(|line| holds(line) != Some(true));
    let flags = lines.find(|line| line.starts_with("VmFlags:")).expect("the heap is mapped");
    let is_allowed = flags.split_whitespace().any(|flag| flag == "hg");
    assert_eq!(is_allowed, pe.pes <= 2, "{flags}");
}

pub(crate) fn teams_and_contexts(pe: Pe) {
    let mut even = Team::WORLD;
    let (config, half) = (Config { num_contexts: 3 }, (pe.pes + 1) / 2);
    // SAFETY: here and below: variables of this test.
    let split = unsafe {
        teams::split_strided(
            Team::WORLD,
            0,
            2,
            half,
            &raw const config,
            NUM_CONTEXTS,
            &raw mut even,
        )
    };
    assert_eq!(split, 0);
    assert_eq!(even != Team::INVALID, pe.own % 2 == 0);
    assert_eq!(teams::my_pe(even), if pe.own % 2 == 0 { pe.own / 2 } else { -1 });
    assert_eq!(teams::n_pes(Team::SHARED), pe.near());
    let word = zeros::<i32>(1);
    if even != Team::INVALID {
        assert_eq!(teams::n_pes(even), half);
        assert_eq!(teams::translate_pe(even, half - 1, Team::WORLD), 2 * (half - 1));
        assert_eq!(
            teams::translate_pe(Team::WORLD, 1 % pe.pes, even),
            if pe.pes > 1 { -1 } else { 0 }
        );
        let mut found = Config::default();
        assert_eq!(unsafe { teams::get_config(even, NUM_CONTEXTS, &raw mut found) }, 0);
        assert_eq!(found, config);
        let (mut ctx, mut of) = (Context::INVALID, Team::INVALID);
        assert_eq!(unsafe { contexts::team_create_ctx(even, 0, &raw mut ctx) }, 0);
        assert_eq!(unsafe { contexts::get_team(ctx, &raw mut of) }, 0);
        assert_eq!(of, even);
        let next = (pe.own / 2 + 1) % half;
        contexts::session_start::<u8>(ctx, 1, std::ptr::null(), 0);
        unsafe { rma::p(ctx, word, next, next) };
        contexts::session_stop(ctx);
        rma::quiet(ctx);
        assert_eq!(team_sync(even), 0);
        assert_eq!(read(word, 1), [pe.own / 2]);
        contexts::destroy(ctx);
        teams::destroy(even);
    }
    let [mut row, mut column] = [Team::INVALID; 2];
    let none = std::ptr::null();
    let split =
        unsafe { teams::split_2d(Team::WORLD, 3, none, 0, &raw mut row, none, 0, &raw mut column) };
    assert_eq!(split, 0);
    assert_eq!(teams::my_pe(row), pe.own % 3);
    assert_eq!(teams::my_pe(column), pe.own / 3);
    assert_eq!(teams::translate_pe(row, 0, Team::WORLD), pe.own / 3 * 3);
    teams::destroy(column);
    teams::destroy(row);
    let mut bad = Team::WORLD;
    let outside =
        unsafe { teams::split_strided(Team::WORLD, 0, 1, pe.pes + 1, none, 0, &raw mut bad) };
    assert_eq!((outside, bad), (-1, Team::INVALID));
    assert_eq!(team_sync(Team::INVALID), -1);
    let mut ctx = Context::DEFAULT;
    assert_eq!(unsafe { contexts::create(4, &raw mut ctx) }, 0);
    unsafe { rma::p(ctx, word, 9, pe.after(1)) };
    contexts::destroy(ctx);
    contexts::destroy(Context::INVALID);
}

/// Eventually no memory is left for another team.
pub(crate) fn many_teams(pe: Pe) {
    let mut made = 0;
    let last = loop {
        let mut team = Team::WORLD;
        // SAFETY: a variable of this test.
        let split = unsafe {
            teams::split_strided(Team::WORLD, 0, 1, pe.pes, std::ptr::null(), 0, &raw mut team)
        };
        if split != 0 {
            assert_eq!(team, Team::INVALID);
            break teams::translate_pe(Team::WORLD, pe.own, Team::SHARED);
        }
        made += 1;
        assert!(made < 100_000, "teams have no limit");
    };
    assert_eq!((last, made > 500), (pe.own % pe.near(), true), "{made}");
    assert_eq!(teams::translate_pe(Team::WORLD, pe.pes, Team::WORLD), -1);
    assert_eq!(teams::translate_pe(Team::WORLD, -1, Team::WORLD), -1);
}

pub(crate) fn locks_and_counters(pe: Pe) {
    let (lock, sum) = (zeros::<i64>(1), zeros::<u64>(1));
    for _ in 0..50 {
        // SAFETY: here and below: the test's own memory.
        unsafe {
            locks::set(lock);
            let value = rma::g(Context::DEFAULT, sum.cast_const(), 0);
            rma::p(Context::DEFAULT, sum, value + 1, 0);
            locks::clear(lock);
        }
    }
    let mut tried = 0;
    while tried < 20 {
        // SAFETY: as above.
        unsafe {
            if locks::test(lock) == 0 {
                assert_eq!(locks::test(lock), 1);
                let value = rma::g(Context::DEFAULT, sum.cast_const(), 0);
                rma::p(Context::DEFAULT, sum, value + 1, 0);
                locks::clear(lock);
                tried += 1;
            }
        }
    }
    barrier_all();
    let all = 70 * u64::from(pe.pes.unsigned_abs());
    // SAFETY: as above.
    unsafe {
        assert_eq!(rma::g(Context::DEFAULT, sum.cast_const(), 0), all);
        let mut counter = Counter(std::ptr::null_mut());
        counting::create(&raw mut counter);
        let data = zeros::<u8>(20);
        for round in 0..30_u8 {
            let sent = [round; 20];
            counting::putmem(counter, data.cast(), sent.as_ptr().cast(), 20, pe.after(1));
            counting::wait(counter, i64::from(round) + 1);
            assert_eq!(read(data, 20), sent);
            barrier_all();
        }
        counting::set(counter, 0);
        barrier_all();
        let mut got = [0_u8; 20];
        counting::getmem(counter, got.as_mut_ptr().cast(), data.cast(), 20, pe.after(1));
        assert_eq!(got, [29; 20]);
        counting::wait(counter, 1);
        assert_eq!(counting::value(counter), 1);
        counting::free(&raw mut counter);
        assert!(counter.0.is_null());
    }
}
