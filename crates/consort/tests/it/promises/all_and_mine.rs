//! Modes All and Mine: which data may be read and written before and after the call.

use consort::sync_modes::SyncMode;

use super::{OVER, Step, each_call};

/// The last PE to enter may still change all contributions, and finds no result.
#[test]
fn entry_all_moves_nothing_before_all_enter() {
    each_call(
        |sync| sync.entry == SyncMode::All,
        |scene, sync| {
            if scene.is_last() {
                for rank in scene.everyone() {
                    assert!(scene.is_untouched(rank)?, "PE {rank} has something: {scene}");
                    scene.contribute(rank)?;
                }
            }
            scene.call(sync)?;
            let all = scene.everyone().all(|rank| scene.has(Step::Enters, rank));
            assert!(all, "left before all have entered: {scene}");
            scene.ends()
        },
    );
}

/// A PE's contribution may change until it enters, and there is no result before.
#[test]
fn entry_mine_leaves_data_alone_before_its_pe_enters() {
    each_call(
        |sync| sync.entry == SyncMode::Mine,
        |scene, sync| {
            scene.is_last();
            assert!(scene.is_untouched(scene.me())?, "{scene}");
            scene.contribute(scene.me())?;
            scene.call(sync)?;
            scene.ends()
        },
    );
}

/// A PE that leaves has its result, and may overwrite all its data: nobody reads or writes it any
/// more.
#[test]
fn exit_mine_gives_data_back_to_its_pe() {
    each_call(
        |sync| sync.exit == SyncMode::Mine,
        |scene, sync| {
            let me = scene.me();
            scene.contribute_for(sync)?;
            scene.is_last();
            scene.call(sync)?;
            assert!(scene.has_result(me)?, "{scene}");
            scene.spoil(scene.source, me)?;
            scene.spoil(scene.target, me)?;
            scene.world.barrier()?;
            for buffer in [scene.source, scene.target] {
                let mut found = vec![0; buffer.len()];
                buffer.get(me, 0, &mut found)?;
                assert!(found.iter().all(|&word| word == OVER), "written later: {scene}");
            }
            Ok(())
        },
    );
}

/// When the first PE leaves, all PEs have their results, and no contribution is read any more.
#[test]
fn exit_all_leaves_when_all_data_arrived() {
    each_call(
        |sync| sync.exit == SyncMode::All,
        |scene, sync| {
            scene.contribute_for(sync)?;
            scene.is_last();
            scene.call(sync)?;
            for rank in scene.everyone() {
                assert!(scene.has(Step::Enters, rank), "PE {rank} is not here yet: {scene}");
                assert!(scene.has_result(rank)?, "of PE {rank}: {scene}");
            }
            for rank in scene.everyone().filter(|rank| !scene.data.sources[rank.index()].is_empty())
            {
                scene.spoil(scene.source, rank)?;
            }
            scene.ends()
        },
    );
}
