//! The three functions over a folder of documents.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;

use super::*;

struct Fixture {
    base: tempfile::TempDir,
    root: Rooted,
}

impl Fixture {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let base = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = base.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let root = Rooted::open(base.path()).unwrap();
        Fixture { base, root }
    }
}

fn small() -> Fixture {
    Fixture::new(&[
        ("b.md", b"Pin keeps a value\nin its place\n"),
        ("a/one.txt", b"async needs pin\n"),
        ("a.md", b""),
        ("Z.MARKDOWN", b"no end"),
        ("data.csv", b"pin"),
        (".hidden.md", b"pin"),
        (".git/x.md", b"pin"),
        ("target/x.md", b"pin"),
        ("a/node_modules/x.md", b"pin"),
        ("md", b"pin"),
    ])
}

#[test]
fn list_gives_pages() {
    let fixture = small();
    let (z, a, one, b) = (
        "Z.MARKDOWN\t1 lines\t6 bytes\n",
        "a.md\t0 lines\t0 bytes\n",
        "a/one.txt\t1 lines\t16 bytes\n",
        "b.md\t2 lines\t31 bytes\n",
    );
    for (after, limit, expected) in [
        (None, None, format!("{z}{a}{one}{b}4 of 4 documents")),
        (None, Some(9999), format!("{z}{a}{one}{b}4 of 4 documents")),
        (None, Some(2), format!("{z}{a}2 of 4 documents; more after \"a.md\"")),
        (Some("a.md"), Some(1), format!("{one}1 of 4 documents; more after \"a/one.txt\"")),
        (Some("a.md"), Some(2), format!("{one}{b}2 of 4 documents")),
        (Some("a0"), None, format!("{b}1 of 4 documents")),
        (Some("zz"), None, "0 of 4 documents".into()),
    ] {
        assert_eq!(list(&fixture.root, after, limit), Ok(expected), "{after:?} {limit:?}");
    }
    assert_eq!(list(&fixture.root, None, Some(0)), Err("limit is 0: give 1 or more, or leave it out for 100".into()));
}

#[test]
fn list_of_many_stops_at_the_most() {
    let names: Vec<String> = (0..501).map(|number| format!("{number:03}.md")).collect();
    let files: Vec<(&str, &[u8])> = names.iter().map(|name| (name.as_str(), &b""[..])).collect();
    let fixture = Fixture::new(&files);
    let text = list(&fixture.root, None, Some(9999)).unwrap();
    assert!(text.ends_with("\n500 of 501 documents; more after \"499.md\""), "{text}");
    let text = list(&fixture.root, None, None).unwrap();
    assert!(text.ends_with("\n100 of 501 documents; more after \"099.md\""), "{text}");
}

#[test]
fn read_shows_lines() {
    let fixture = Fixture::new(&[
        ("five.md", b"one\n\nthree\r\nfour\nfive"),
        ("empty.md", b""),
        ("zero.md", b"a\0b\n"),
        ("latin.md", b"caf\xe9\nplain\n"),
    ]);
    for (name, from, lines, expected) in [
        ("five.md", None, None, "five.md lines 1-5 of 5\n1| one\n2| \n3| three\n4| four\n5| five"),
        ("five.md", Some(2), Some(2), "five.md lines 2-3 of 5\n2| \n3| three"),
        ("five.md", Some(5), Some(u64::MAX), "five.md lines 5-5 of 5\n5| five"),
        ("empty.md", None, None, "empty.md lines 0-0 of 0"),
        ("zero.md", None, None, "zero.md lines 1-1 of 1\n1| a\0b"),
        ("latin.md", Some(2), None, "latin.md lines 2-2 of 2, not UTF-8: shown with replacements\n2| plain"),
        ("latin.md", None, Some(1), "latin.md lines 1-1 of 2, not UTF-8: shown with replacements\n1| caf\u{fffd}"),
    ] {
        assert_eq!(read(&fixture.root, name, from, lines).as_deref(), Ok(expected), "{name} {from:?} {lines:?}");
    }
}

#[test]
fn read_stops_at_its_limits() {
    let long = "x".repeat(3000) + "\n";
    let fixture = Fixture::new(&[("many.md", "y\n".repeat(1000).as_bytes()), ("long.md", long.repeat(50).as_bytes())]);
    for (name, lines, header) in [
        ("many.md", None, "many.md lines 1-200 of 1000\n"),
        ("many.md", Some(9999), "many.md lines 1-400 of 1000\n"),
        ("long.md", None, "long.md lines 1-11 of 50\n"),
    ] {
        let text = read(&fixture.root, name, None, lines).unwrap();
        assert!(text.starts_with(header), "{}", &text[..60]);
        assert!(text.len() <= ANSWER_BYTES + header.len(), "{}", text.len());
    }
    let text = read(&fixture.root, "long.md", Some(50), None).unwrap();
    assert!(text.ends_with("x [… 1000 bytes left out]"), "{text}");
}

#[test]
fn read_tells_what_to_do_about_a_wrong_name_or_number() {
    let fixture = small();
    symlink("b.md", fixture.base.path().join("link.md")).unwrap();
    for (name, from, lines, says) in [
        ("B.md", None, None, &["no document \"B.md\"", "did you mean \"b.md\"", "list the documents"][..]),
        ("one.txt", None, None, &["did you mean \"a/one.txt\""]),
        ("b.md/x.md", None, None, &["no document"]),
        ("nothing-like-it-here.md", None, None, &["no document", "list the documents"]),
        ("data.csv", None, None, &["\"data.csv\" is not a text document", ".md .markdown"]),
        (".hidden.md", None, None, &["not hidden"]),
        (".git/x.md", None, None, &["not hidden"]),
        ("target/x.md", None, None, &["not a text document"]),
        ("../b.md", None, None, &["\"../b.md\" is refused", "use a relative name"]),
        ("link.md", None, None, &["symbolic link", "use the name of a plain file"]),
        ("b.md", Some(3), None, &["\"b.md\" has 2 lines", "from is 3", "at most 2"]),
        ("a.md", Some(2), None, &["has 0 lines", "at most 1"]),
        ("b.md", Some(0), None, &["from is 0"]),
        ("b.md", None, Some(0), &["lines is 0"]),
    ] {
        let error = read(&fixture.root, name, from, lines).unwrap_err();
        for part in says {
            assert!(error.contains(part), "{name:?}: {error}");
        }
    }
}

#[test]
fn search_ranks_by_distinct_words() {
    let fixture = small();
    let (one, pin, place) = ("a/one.txt:1: async needs pin\n", "b.md:1: Pin keeps a value\n", "b.md:2: in its place\n");
    for (query, limit, expected) in [
        ("pin", None, format!("{one}{pin}2 of 2 lines")),
        ("PIN keeps", None, format!("{pin}{one}2 of 2 lines")),
        ("pin pin needs value", None, format!("{one}{pin}2 of 2 lines")),
        ("in", Some(2), format!("{one}{pin}2 of 3 lines")),
        ("in", None, format!("{one}{pin}{place}3 of 3 lines")),
        ("absent", None, "0 of 0 lines".into()),
    ] {
        assert_eq!(search(&fixture.root, query, limit), Ok(expected), "{query} {limit:?}");
    }
    for (query, limit, says) in [("", None, "has no word"), (" ", None, "has no word"), ("pin", Some(0), "limit is 0")]
    {
        assert!(search(&fixture.root, query, limit).unwrap_err().contains(says), "{query:?}");
    }
}

#[test]
fn search_keeps_the_best_of_many() {
    let mut text = "pin\n".repeat(5000);
    text += "pin and async\n";
    let long = "async ".repeat(1000);
    let fixture = Fixture::new(&[("a.md", text.as_bytes()), ("b.md", format!("{long}\n").repeat(100).as_bytes())]);
    let found = search(&fixture.root, "async pin", Some(2)).unwrap();
    assert_eq!(found, "a.md:5001: pin and async\na.md:1: pin\n2 of 5101 lines");
    let found = search(&fixture.root, "async", Some(1000)).unwrap();
    assert!(found.len() <= ANSWER_BYTES + 100 && found.ends_with("\n12 of 101 lines"), "{}", found.len());
}

#[test]
fn a_very_large_file_is_read_as_a_stream_and_not_searched() {
    let fixture = Fixture::new(&[("small.md", b"word\n")]);
    let mut file = fs::File::create(fixture.base.path().join("large.md")).unwrap();
    file.write_all(b"word\nsecond\n").unwrap();
    // Holes: it takes no room on the disk.
    file.set_len(64 << 20).unwrap();
    let found = search(&fixture.root, "word", None).unwrap();
    assert_eq!(found, "small.md:1: word\n1 of 1 lines; over 16 MiB and not searched: large.md");
    let shown = read(&fixture.root, "large.md", Some(2), Some(1)).unwrap();
    assert_eq!(shown, "large.md lines 2-2 of 3\n2| second");
    let shown = read(&fixture.root, "large.md", Some(3), None).unwrap();
    assert!(shown.ends_with(&format!("\0 [… {} bytes left out]", (64 << 20) - 12 - 2000)));
}
