//! The features that are off by default: guards that own their lock, and serialization.

use std::{sync::Arc, thread, time::Duration};

use consort_sync::{
    ArcMutexGuard, ArcReentrantMutexGuard, ArcRwLockReadGuard, ArcRwLockUpgradableReadGuard,
    ArcRwLockWriteGuard, Mutex, Raw, RawRwLock, RawThreadId, ReentrantMutex, RwLock,
    locks::{Clh, Handoff},
};

#[test]
fn guards_own_their_mutex() {
    let mutex = Arc::new(Mutex::with(Clh::new(), Arc::new(())));
    let data = Arc::clone(&mutex.lock());
    let guard: ArcMutexGuard<Raw<Clh>, _> = mutex.lock_arc();
    assert!(mutex.try_lock_arc().is_none() && mutex.try_lock().is_none());
    assert!(mutex.try_lock_arc_for(Duration::from_millis(1)).is_none());
    assert_eq!(Arc::strong_count(&mutex), 2);
    drop(mutex);
    assert_eq!(Arc::strong_count(&data), 2, "the guard owns the mutex");
    drop(guard);
    assert_eq!(Arc::strong_count(&data), 1, "the last owner drops the data");
    let slice: Arc<Mutex<[u32]>> = Arc::new(Mutex::new([1, 2, 3]));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| slice.lock_arc()[1] += 1);
        }
    });
    assert_eq!(*slice.lock_arc(), [1, 6, 3]);
}

#[test]
fn guards_own_their_reader_writer_lock() {
    let lock = Arc::new(RwLock::new(1));
    let read: ArcRwLockReadGuard<RawRwLock, _> = lock.read_arc();
    let upgradable: ArcRwLockUpgradableReadGuard<RawRwLock, _> = lock.upgradable_read_arc();
    assert!(lock.try_write_arc().is_none());
    assert_eq!(*read + *upgradable, 2);
    drop((read, upgradable));
    let mut write: ArcRwLockWriteGuard<RawRwLock, _> = lock.write_arc();
    drop(lock);
    *write += 1;
    assert_eq!(*write, 2);
}

#[test]
fn guards_own_their_reentrant_mutex() {
    let mutex = Arc::new(ReentrantMutex::new(1));
    let guard: ArcReentrantMutexGuard<Raw<Handoff>, RawThreadId, _> = mutex.lock_arc();
    assert_eq!(*guard + *mutex.lock(), 2);
    thread::scope(|scope| {
        scope.spawn(|| assert!(mutex.try_lock().is_none()));
    });
    drop(mutex);
    assert_eq!(*guard, 1);
}

#[test]
fn locks_are_serialized_as_their_data() {
    let (mutex, lock) = (Mutex::with(Clh::new(), [1, 2]), RwLock::new("a"));
    assert_eq!(serde_json::to_string(&mutex).expect("numbers"), "[1,2]");
    assert_eq!(serde_json::to_string(&lock).expect("a text"), "\"a\"");
    let mutex: Mutex<[u32; 2], Clh> = serde_json::from_str("[3,4]").expect("numbers");
    let lock: RwLock<u32> = serde_json::from_str("5").expect("a number");
    assert_eq!((mutex.into_inner(), lock.into_inner()), ([3, 4], 5));
    let mutex = ReentrantMutex::new([6]);
    assert_eq!(serde_json::to_string(&mutex).expect("a number"), "[6]");
    let mutex: ReentrantMutex<u32> = serde_json::from_str("7").expect("a number");
    assert_eq!(*mutex.lock(), 7);
    assert!(serde_json::from_str::<Mutex<u32>>("[]").is_err());
}
