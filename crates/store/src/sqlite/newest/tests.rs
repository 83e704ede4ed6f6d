//! What the records say after a kill, after damage, and when several processes write them.

use super::*;
use tempfile::TempDir;

fn mark(timeline: u64, transitions: u64, messages: u64) -> Mark {
    Mark { store: "0123456789abcdef".repeat(2).into(), timeline, transitions, messages }
}

fn place() -> (TempDir, Place) {
    let folder = tempfile::tempdir().expect("a folder");
    let place = Place::prepare(&folder.path().join("store.db")).expect("prepared");
    (folder, place)
}

/// The furthest of what is said.
fn newest(place: &Place) -> Option<Mark> {
    read(place).into_iter().reduce(|best, said| if best.is_older_than(&said) { said } else { best })
}

/// As the death of its process leaves it.
fn kill(newest: Newest) {
    let _ = flock(&newest.file, FlockOperation::Unlock);
    std::mem::forget(newest);
}

fn records(place: &Place) -> u64 {
    fs::metadata(place.newest()).expect("there").len() / RECORD as u64
}

#[test]
fn it_says_what_was_written_last_and_needs_no_room_for_it() {
    let (_folder, place) = place();
    assert_eq!(newest(&place), None);
    let record = Newest::begin(&place, &mark(0, 1, 0)).expect("begun");
    for n in 1..20 {
        record.note(&mark(0, n, n / 2));
        assert_eq!(newest(&place), Some(mark(0, n, n / 2)));
        assert_eq!(records(&place), 1);
    }
    kill(record);
    assert_eq!(newest(&place), Some(mark(0, 19, 9)));
    let again = Newest::begin(&place, &mark(0, 19, 9)).expect("begun again");
    again.note(&mark(0, 20, 9));
    assert_eq!((newest(&place), records(&place)), (Some(mark(0, 20, 9)), 1));
}

#[test]
fn one_that_is_late_hides_nothing_of_a_quicker_one() {
    let (_folder, place) = place();
    let quick = Newest::begin(&place, &mark(0, 1, 0)).expect("begun");
    let late = Newest::begin(&place, &mark(0, 1, 0)).expect("begun");
    quick.note(&mark(0, 7, 3));
    late.note(&mark(0, 6, 3));
    assert_eq!(newest(&place), Some(mark(0, 7, 3)));
    late.note(&mark(0, 8, 3));
    quick.note(&mark(0, 7, 2));
    assert_eq!(newest(&place), Some(mark(0, 8, 3)));
    // A timeline that began later counts, however low its numbers; one from before says nothing.
    quick.note(&mark(1, 2, 1));
    late.note(&mark(0, 90, 90));
    assert_eq!(newest(&place), Some(mark(1, 2, 1)));
}

#[test]
fn a_record_is_free_again_once_the_witness_says_as_much() {
    let (_folder, place) = place();
    let stays = Newest::begin(&place, &mark(0, 1, 0)).expect("begun");
    for n in 2..9 {
        let passes = Newest::begin(&place, &mark(0, 1, 0)).expect("begun");
        passes.note(&mark(0, n, 0));
        assert_eq!(records(&place), 2, "each takes the one that the last one left");
        witness::write(&place.witness(), &mark(0, n, 0)).expect("written");
        drop(passes);
        assert_eq!(newest(&place), Some(mark(0, 1, 0)));
    }
    let unseen = Newest::begin(&place, &mark(0, 8, 0)).expect("begun");
    unseen.note(&mark(0, 30, 0));
    drop(unseen);
    assert_eq!(newest(&place), Some(mark(0, 30, 0)), "nobody else knows of it");
    let killed = Newest::begin(&place, &mark(0, 30, 0)).expect("begun");
    kill(killed);
    assert_eq!(records(&place), 3);
    drop(Newest::begin(&place, &mark(0, 30, 0)).expect("begun"));
    assert_eq!(records(&place), 4, "what the dead left is believed while somebody lives");
    kill(stays);
    drop(Newest::begin(&place, &mark(0, 30, 0)).expect("begun"));
    assert_eq!(records(&place), 1, "one that is alone begins anew");
}

#[test]
fn a_slot_that_was_torn_is_none_and_the_one_before_counts() {
    let (_folder, place) = place();
    let record = Newest::begin(&place, &mark(0, 1, 1)).expect("begun");
    record.note(&mark(0, 2, 1));
    kill(record);
    let path = place.newest();
    let whole = fs::read(&path).expect("read");
    for torn in 0..SLOT {
        let mut bytes = whole.clone();
        bytes[SECOND + torn] ^= 0x55;
        fs::write(&path, &bytes).expect("written");
        assert_eq!(newest(&place), Some(mark(0, 1, 1)), "byte {torn} of the newer slot");
    }
    for left in [&b""[..], &whole[..SLOT - 1], &[0xff; 3 * RECORD], &[0; RECORD]] {
        fs::write(&path, left).expect("written");
        assert_eq!(newest(&place), None);
        kill(Newest::begin(&place, &mark(0, 5, 1)).expect("begun"));
        assert_eq!(newest(&place), Some(mark(0, 5, 1)), "it is made anew");
    }
}

#[test]
fn a_record_of_another_store_goes_when_this_one_is_opened() {
    let (_folder, place) = place();
    let other = Mark { store: "fedcba9876543210".repeat(2).into(), ..mark(5, 50, 50) };
    let record = Newest::begin(&place, &other).expect("begun");
    record.note(&mark(9, 90, 90));
    assert_eq!(read(&place), [other]);
    let own = Newest::begin(&place, &mark(0, 1, 0)).expect("begun");
    assert_eq!(read(&place), [mark(0, 1, 0)]);
    own.note(&Mark { store: "".into(), ..mark(9, 9, 9) });
    assert_eq!(read(&place), [mark(0, 1, 0)], "a store without a name");
}
