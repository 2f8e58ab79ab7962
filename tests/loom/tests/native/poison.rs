//! Two PEs fail a job, and a third reads the reason: one reason, and all of it.

use std::sync::Arc;

use consort_native::Poison;
use loom::thread::spawn;

#[test]
fn one_reason_is_kept_whole() {
    loom::model(|| {
        let poison = Arc::new(Poison::<2>::default());
        let claims = [1, 2].map(|word| {
            let poison = Arc::clone(&poison);
            spawn(move || poison.claim(&[word, word]))
        });
        if let Some([one, other]) = poison.reason() {
            assert!(one == other && one != 0, "{one} and {other}");
        }
        let claimed = claims.map(|claim| claim.join().expect("it ends well"));
        assert!(claimed[0] != claimed[1], "one of them is the first");
        let first = if claimed[0] { 1 } else { 2 };
        assert_eq!(poison.reason(), Some([first; 2]));
    });
}
