//! Spellings that were made elsewhere, and none of them left.

use super::scrub::{Removed, Scrubber};
use super::scrub_reply;
use super::{Environment, Whence};

const SECRET: &str = "s3cr3t/Tö+k n\"1?>";

/// The secret as other programs write it.
const SPELLED: &[&str] = &[
    r#"s3cr3t/Tö+k n"1?>"#,
    r#"s3cr3t/T\u00f6+k n\"1?>"#,
    r#"s3cr3t/Tö+k n\"1?>"#,
    r#"s3cr3t\/T\u00f6+k n\"1?>"#,
    r#"s3cr3t/T\u00F6+k n\"1?>"#,
    r#"\u0073\u0033\u0063\u0072\u0033\u0074\u002f\u0054\u00f6\u002b\u006b\u0020\u006e\u0022\u0031\u003f\u003e"#,
    r#"s3cr3t%2FT%C3%B6%2Bk%20n%221%3F%3E"#,
    r#"s3cr3t%2fT%c3%b6%2bk%20n%221%3f%3e"#,
    r#"s3cr3t%2FT%C3%B6%2Bk+n%221%3F%3E"#,
    r#"%73%33%63%72%33%74%2f%54%c3%b6%2b%6b%20%6e%22%31%3f%3e"#,
    r#"%73%33%63%72%33%74%2F%54%C3%B6%2B%6B%20%6E%22%31%3F%3E"#,
    r#"7333637233742f54c3b62b6b206e22313f3e"#,
    r#"7333637233742F54C3B62B6B206E22313F3E"#,
];

/// Base64 of something that holds the secret, and how many characters of it do not depend on the secret alone.
const EMBEDDED: &[(&str, usize)] = &[
    ("czNjcjN0L1TDtitrIG4iMT8+dGFpbA==", 8),
    ("czNjcjN0L1TDtitrIG4iMT8-dGFpbA==", 8),
    ("dTpzM2NyM3QvVMO2K2sgbiIxPz50YWls", 9),
    ("YWJjOnMzY3IzdC9Uw7YrayBuIjE/PnRhaWw=", 13),
    ("YWJjOnMzY3IzdC9Uw7YrayBuIjE_PnRhaWw=", 13),
    ("dXNlcjpzM2NyM3QvVMO2K2sgbiIxPz50YWls", 13),
    ("eHMzY3IzdC9Uw7YrayBuIjE/PnRhaWw=", 9),
    ("eHMzY3IzdC9Uw7YrayBuIjE_PnRhaWw=", 9),
    ("eHlzM2NyM3QvVMO2K2sgbiIxPz50YWls", 9),
];

fn scrubbed(text: &str) -> (String, Removed) {
    let scrubber = Scrubber::new([("TOKEN", SECRET)]);
    let mut bytes = text.as_bytes().to_vec();
    let removed = scrubber.scrub(&mut bytes);
    (String::from_utf8(bytes).expect("UTF-8"), removed)
}

#[test]
fn g12_every_known_spelling_is_taken_out() {
    // Made with other programs: python's json, urllib.parse and base64, and xxd.
    for spelled in SPELLED {
        let (text, removed) = scrubbed(&format!("before {spelled} after"));
        assert_eq!(text, "before [secret TOKEN] after", "{spelled}");
        assert_eq!(
            removed.note("x").as_deref(),
            Some("x held secrets, which were taken out: TOKEN once [secret.removed]")
        );
    }
}

#[test]
fn g12_base64_is_found_at_every_alignment_within_something_longer() {
    for (encoded, left) in EMBEDDED {
        let (text, _) = scrubbed(encoded);
        assert_eq!(text.matches("[secret TOKEN]").count(), 1, "{encoded} became {text}");
        assert_eq!(text.len() - "[secret TOKEN]".len(), *left, "{encoded} became {text}");
    }
}

#[test]
fn what_is_no_secret_stays_byte_for_byte() {
    for text in ["", "s3cr3t", "\u{0}\u{ff}", "[secret TOKEN]", &"s3cr3t/T".repeat(1_000)] {
        let (clean, removed) = scrubbed(text);
        assert_eq!((clean.as_str(), removed), (text, Removed::default()));
    }
}

#[test]
fn a_cut_end_leaves_no_beginning_of_a_secret() {
    let scrubber = Scrubber::new([("A", "aaaaaaaabbbb"), ("B", "zzzzzzzzzz")]);
    for (text, expected) in [
        ("out aaaaaaaabb", "out [secret A]"),
        ("out aaaa", "out [secret A]"),
        ("out aaa", "out aaa"),
        ("out aaaaaaaabbbb zzzzz", "out [secret A] [secret B]"),
        ("out 61616161", "out [secret A]"),
        ("out", "out"),
    ] {
        let mut bytes = text.as_bytes().to_vec();
        scrubber.scrub_cut(&mut bytes);
        assert_eq!(String::from_utf8(bytes).expect("UTF-8"), expected);
    }
}

#[test]
fn neighbours_and_values_within_values_are_counted_under_their_own_names() {
    let scrubber = Scrubber::new([("LONG", "abcdefgh-12345678"), ("SHORT", "12345678")]);
    let mut bytes = b"12345678abcdefgh-12345678,12345678".to_vec();
    let removed = scrubber.scrub(&mut bytes);
    assert_eq!(bytes, b"[secret SHORT][secret LONG],[secret SHORT]");
    let note = removed.note("the result").expect("something was removed");
    assert_eq!(note, "the result held secrets, which were taken out: LONG once, SHORT 2 times [secret.removed]");
}

#[test]
fn neither_a_default_nor_the_process_stands_in_for_a_source_that_gives_no_value() {
    let nowhere = Whence::File("/nowhere/at/all".into());
    let whence = [("PATH".to_owned(), nowhere.clone()), ("TOKEN".to_owned(), nowhere)].into_iter().collect();
    let environment = Environment::wired(whence, Default::default(), Default::default());
    for (name, default) in [("PATH", None), ("TOKEN", Some("a default"))] {
        let refused = environment.resolve(name, default).expect_err(name);
        assert!(refused.contains(name) && refused.contains("/nowhere/at/all can't be read"), "{refused}");
    }
    // What the place says nothing of is the process's.
    assert_eq!(environment.get("HOME"), Ok(std::env::var("HOME").ok()));
    assert_eq!(environment.resolve("LODESTEP_NOT_SET_ANYWHERE", Some("d")), Ok("d".to_owned()));
}

#[test]
fn g12_signed_blocks_with_a_secret_in_them_are_gone_and_others_stay_byte_for_byte() {
    let scrubber = Scrubber::new([("TOKEN", "s3cret-v@lue")]);
    for (json, stays) in [
        (r#"[{"type":"thinking","thinking":"é \u00e9","signature":"c2ln"}]"#, true),
        (r#"[{"type":"thinking","thinking":"it is s3cret-v@lue","signature":"c2ln"}]"#, false),
        (r#"[{"type":"thinking","thinking":"it is s3cret-v\u0040lue","signature":"c2ln"}]"#, false),
    ] {
        let blocks = lodestep_model::Blocks { of: "anthropic m".to_owned(), json: json.to_owned() };
        let given = lodestep_model::Reply { blocks: Some(blocks.clone()), ..Default::default() };
        let mut reply = Ok(given);
        let removed = scrub_reply(&scrubber, &mut reply);
        assert_eq!(reply.expect("a reply").blocks, stays.then_some(blocks), "{json}");
        assert_eq!(removed.note("a reply").is_none(), stays, "{json}");
    }
}

#[test]
fn g12_the_json_of_a_text_that_is_none_is_cleaned_and_gone_where_it_hides_a_secret() {
    let scrubber = Scrubber::new([("TOKEN", "s3cret-v@lue")]);
    for (json, kept) in [
        (r#""é \u00e9 \ud99c""#, r#""é \u00e9 \ud99c""#),
        (r#""it is s3cret-v@lue \ud99c""#, r#""it is [secret TOKEN] \ud99c""#),
        (r#""it is s3cret-v\u0040lue \ud99c""#, ""),
        (r#""it is s3cret-v@lue, s3cret-v\u0040lue \ud99c""#, ""),
    ] {
        let given = lodestep_model::Reply { ill_formed: Some(json.to_owned()), ..Default::default() };
        let mut reply = Ok(given);
        scrub_reply(&scrubber, &mut reply);
        assert_eq!(reply.expect("a reply").ill_formed.as_deref(), Some(kept), "{json}");
    }
}
