//! The text of profiles and of where they come from.

use super::super::*;
use alloc::format;
use proptest::prelude::*;

fn any_key() -> impl Strategy<Value = Key> {
    prop_oneof![any::<u32>().prop_map(Key::Created), any::<u32>().prop_map(Key::Own)]
}

fn any_profile() -> impl Strategy<Value = Profile> {
    let record = (any::<u64>(), any::<u64>());
    prop::collection::btree_map(any_key(), record, 0..20).prop_map(|records| {
        Profile::of(records.into_iter().map(|(key, (time, dispatches))| Record {
            key,
            time: Span(time),
            dispatches,
        }))
    })
}

proptest! {
    #[test]
    fn profiles_read_back_as_written(profile in any_profile()) {
        let text = profile.to_string();
        prop_assert_eq!(Profile::parse(&text), Ok(profile.clone()));
        let lines = format!("# of a run\n{}", text.replace(',', " # one\r\n\t"));
        prop_assert_eq!(Profile::parse(&lines), Ok(profile));
    }

    #[test]
    fn any_text_is_a_profile_or_not(text in "[0-9k=/.,# \nmsu]{0,40}|.*") {
        match Profile::parse(&text) {
            Ok(profile) => {
                prop_assert!(profile.records().is_sorted_by(|a, b| a.key < b.key));
                let text = profile.to_string();
                prop_assert_eq!(Profile::parse(&text), Ok(profile));
            }
            Err((record, _)) => prop_assert!(!record.is_empty() && text.contains(record)),
        }
    }
}

#[test]
fn wrong_records_are_named() {
    let form = "a record is KEY=TIME/DISPATCHES without spaces, for example 0=12.5ms/100000";
    let key = "the key is how many tasks are created before, or k and a task's own key, below 2^32";
    let count = "the dispatches are a whole number below 2^64";
    for (text, record, why) in [
        ("0=1ms/1,7", "7", form),
        ("0 = 1ms/1", "0", form),
        ("0=1ms", "0=1ms", form),
        ("0=1ms/1 # fine\nx=1ms/1", "x=1ms/1", key),
        ("k=1ms/1", "k=1ms/1", key),
        ("=1ms/1", "=1ms/1", key),
        ("-1=1ms/1", "-1=1ms/1", key),
        ("4294967296=1ms/1", "4294967296=1ms/1", key),
        ("0=1/1", "0=1/1", "a time needs a unit, for example \"3ms\""),
        ("0=/1", "0=/1", "a time starts with a number, for example \"3ms\""),
        ("0=1ms/", "0=1ms/", count),
        ("0=1ms/+1", "0=1ms/+1", count),
        ("0=1ms/1.5", "0=1ms/1.5", count),
        (
            "1=1ms/1,0=2ms/1,01=3ms/1",
            "01=3ms/1",
            "there is another record with this key; keep one of them",
        ),
    ] {
        assert_eq!(Profile::parse(text), Err((record, why)), "{text}");
        let mut params = PbgParams::default();
        let error = anysched_core::Params::set(&mut params, "profile", text).unwrap_err();
        assert_eq!(error.to_string(), format!("`profile` = \"{record}\": {why}"));
    }
    assert_eq!(Profile::parse(" \n# nothing").unwrap().records(), []);
}

#[test]
fn sources_read_back_as_written() {
    for text in ["noisy", "noisy()", "noisy(1", "loud(1)", "noisy(11)"] {
        assert!(Source::parse(text).is_err(), "{text}");
    }
    let half = Source::Noisy(Sigma::parse("0.5").unwrap());
    assert_eq!(Source::parse(" noisy( 0.5 ) "), Ok(half));
    assert_eq!(half.show(), "noisy(0.5)");
}
