//! What is cut comes back whole, fills its pages, and is noticed when a piece of it is not what it was.

use super::*;

fn database() -> Connection {
    let db = Connection::open_in_memory().expect("opened");
    db.execute_batch(include_str!("../schema.sql")).expect("sound");
    db
}

/// Bytes that differ from place to place.
fn packed(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

fn read(db: &Connection, cut: &Cut) -> Result<Vec<u8>, &'static str> {
    whole(db, 7, Column::Values, cut.in_row()).expect("asked").map(Cow::into_owned)
}

#[test]
fn what_is_cut_comes_back_whole_and_what_is_short_is_not_cut() {
    for length in [0, 1, PIECE, LONGEST_WHOLE, LONGEST_WHOLE + 1, 2 * PIECE + 5, 2_200, 31_872, 31_873, 65_546] {
        let (db, packed) = (database(), packed(length));
        let cut = Cut::of(packed.clone());
        cut.insert_pieces(&db, 7, Column::Values).expect("inserted");
        assert_eq!(read(&db, &cut), Ok(packed.clone()), "{length} bytes");
        let pieces: i64 = db.query_row("SELECT count(*) FROM piece", [], |row| row.get(0)).expect("counted");
        let pieces = usize::try_from(pieces).expect("counted");
        if length <= LONGEST_WHOLE {
            assert_eq!((pieces, cut.in_row()), (0, &packed[..]), "{length} bytes");
        } else {
            assert!(pieces <= MOST_PIECES && cut.in_row().len() + pieces * PIECE >= length, "{length} bytes");
        }
    }
}

#[test]
fn eight_pieces_fill_a_page() {
    let db = database();
    // The numbers of a store with millions of transitions.
    for transition in 5_000_000..5_000_020 {
        Cut::of(packed(32 * PIECE)).insert_pieces(&db, transition, Column::Values).expect("inserted");
    }
    let pages = "SELECT count(*) FROM dbstat WHERE name = 'piece' AND pagetype = 'leaf'";
    match db.query_row(pages, [], |row| row.get::<_, i64>(0)) {
        Ok(pages) => assert_eq!(pages, 20 * 32 / 8),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_piece_that_is_missing_doubled_or_cut_off_is_noticed() {
    for alter in [
        "DELETE FROM piece WHERE n = (SELECT min(n) FROM piece)",
        "DELETE FROM piece WHERE n = (SELECT max(n) FROM piece)",
        "DELETE FROM piece",
        "INSERT INTO piece SELECT max(n) + 1, bytes FROM piece",
        "UPDATE piece SET bytes = substr(bytes, 2) WHERE n % 2",
        "UPDATE piece SET n = n + 9 WHERE n = (SELECT max(n) FROM piece)",
    ] {
        let db = database();
        let cut = Cut::of(packed(2_200));
        cut.insert_pieces(&db, 7, Column::Values).expect("inserted");
        assert_eq!(db.execute(alter, []).map(|rows| rows > 0), Ok(true), "{alter}");
        assert!(read(&db, &cut).is_err(), "{alter}");
    }
}

#[test]
fn a_column_has_no_piece_of_another() {
    let db = database();
    let (values, transcript) = (Cut::of(packed(31_900)), Cut::of(packed(5_000)));
    for transition in 6..9 {
        values.insert_pieces(&db, transition, Column::Values).expect("inserted");
        transcript.insert_pieces(&db, transition, Column::Transcript).expect("inserted");
    }
    assert_eq!(read(&db, &values), Ok(packed(31_900)));
    let read = whole(&db, 7, Column::Transcript, transcript.in_row()).expect("asked");
    assert_eq!(read.map(Cow::into_owned), Ok(packed(5_000)));
}
