//! Whatever bytes the importers are given, they answer with a model or an error, quickly and
//! without running out of memory.

use anysched_workload::import::{ftrace, rtapp, swf};
use anysched_workload::model::Model;
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use std::io::Write;

/// Gives the bytes to all importers; what they accept has to be usable.
fn import(bytes: &[u8]) {
    if let Ok(recording) = ftrace::Recording::read(bytes) {
        let softirqs =
            [ftrace::Softirqs::ByEvidence, ftrace::Softirqs::Task, ftrace::Softirqs::Outside];
        for softirqs in softirqs {
            let replay = recording.replay(softirqs);
            replay.model.validate().expect("a recording becomes a model that holds together");
            let used: u64 = replay.bursts.iter().flatten().map(|burst| burst.used.0).sum();
            let slots: u64 = replay.schedule.iter().map(|slot| (slot.end - slot.start).0).sum();
            assert_eq!(used, slots);
        }
    }
    let models =
        [rtapp::read(bytes), swf::read(bytes, swf::Processors::OneTask), Model::read(bytes)];
    for model in models.into_iter().flatten() {
        let mut file = Vec::new();
        model.write(&mut file).expect("writing to memory");
    }
}

const FTRACE: &str = "\
# entries-in-buffer/entries-written: 9/9   #P:2
  <idle>-0       [000] d..2.     1.000001: sched_switch: prev_comm=swapper/0 prev_pid=0 \
prev_prio=120 prev_state=R ==> next_comm=a next_pid=1 next_prio=120
       a-1       [000] .....     1.000002: sched_process_fork: comm=a pid=1 child_comm=a child_pid=2
       a-1       [000] d..2.     1.000003: sched_wakeup_new: comm=a pid=2 prio=120 target_cpu=001
       b-2       [001] d.s3.     1.000004: sched_waking: comm=c pid=3 prio=98 target_cpu=000
  <idle>-0       [000] dNh2.     1.000005: sched_wakeup: comm=c pid=3 prio=98 target_cpu=000
       c-3       [000] d..2.     1.000006: sched_migrate_task: comm=b pid=2 prio=120 orig_cpu=1 \
dest_cpu=0
       c-3       [000] d..2.     1.000007: sched_switch: c:3 [98] S ==> b:2 [120]
       b-2       [000] .....     1.000008: sched_process_exit: comm=b pid=2 prio=120
       b-2       [000] d..2.     1.000009: sched_switch: b:2 [120] 64 ==> a:1 [125]
       a-1       [000] d..2.     1.000009: print: hello
       a     1 [000]     1.000010: sched:sched_switch: a:1 [125] X ==> b:2 [120]
";

const RTAPP: &str = r#"{
  /* all there is */ "tasks": {
    "a": { "instance": 2, "loop": 5, "delay": 3, "cpus": [0, 1], "phases": {
      "p": { "loop": 3, "run": 5, "lock": "m", "wait": { "ref": "q", "mutex": "m" } },
      "q": { "priority": 4, "sync": { "ref": "q", "mutex": "m" }, "resume": "b", "yield",
             "timer": { "ref": "unique", "period": 9, "mode": "absolute" }, "fork": "b" } } },
    "b": { "suspend", "barrier": "x", "sem_post": "s", "policy": "SCHED_RR", "mem": 4, } },
  "global": { "duration": 2, "default_policy": "SCHED_OTHER", "calibration": 100 } // end
}"#;

const SWF: &str = "\
; MaxProcs: 8
1 0 5 60 2 -1 -1 4 3600 -1 1 3 1 1 1 1 -1 -1
2 10 -1 0.5 -1 -1 -1 3 3600 -1 0 -1 1 1 1 1 1 30
";

const MODEL: &str = r#"{"anysched-model":1,"cpus":2,"until":9,"channels":1,"locks":1,"barriers":[2],
"scripts":[{"ops":[["run",5],["wait",0],["affinity","0-3"],["spawn",0]],"rounds":"forever"}],
"tasks":[{"script":0,"name":"a","arrives":0,"nice":5,"affinity":"1"}],"signals":[[5,0]]}"#;

/// A change to a text: bytes from somewhere replaced by others, perhaps from elsewhere in it.
fn changed(text: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let place = any::<prop::sample::Index>();
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..4),
        prop::collection::vec(prop::sample::select(b"0123456789-.:[]{}\", =\n/*".to_vec()), 0..4),
        Just(b"99999999999999999999".to_vec()),
        (place.clone(), 0..40usize).prop_map(move |(from, length)| {
            let from = from.index(text.len());
            text.as_bytes()[from..text.len().min(from + length)].to_vec()
        }),
    ];
    let change = (place, 0..20usize, bytes);
    prop::collection::vec(change, 1..5).prop_map(move |changes| {
        let mut text = text.as_bytes().to_vec();
        for (at, length, bytes) in changes {
            let at = at.index(text.len() + 1);
            text.splice(at..text.len().min(at + length), bytes);
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        import(&bytes);
    }

    #[test]
    fn broken_compression(
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        at: prop::sample::Index,
        byte: u8,
    ) {
        let mut zip = GzEncoder::new(Vec::new(), Compression::fast());
        zip.write_all(&bytes).unwrap();
        let mut zipped = zip.finish().unwrap();
        let at = at.index(zipped.len());
        zipped[at] = byte;
        import(&zipped);
    }

    #[test]
    fn changed_recordings(bytes in changed(FTRACE)) {
        import(&bytes);
    }

    #[test]
    fn changed_rtapp_files(bytes in changed(RTAPP)) {
        import(&bytes);
    }

    #[test]
    fn changed_job_logs(bytes in changed(SWF)) {
        import(&bytes);
    }

    #[test]
    fn changed_models(bytes in changed(MODEL)) {
        import(&bytes);
    }
}

#[test]
fn the_unchanged_texts_are_accepted() {
    assert_eq!(ftrace::Recording::read(FTRACE.as_bytes()).unwrap().switches(), 4);
    assert_eq!(rtapp::read(RTAPP.as_bytes()).unwrap().tasks.len(), 4);
    assert_eq!(swf::read(SWF.as_bytes(), swf::Processors::TaskEach).unwrap().tasks.len(), 5);
    assert_eq!(Model::read(MODEL.as_bytes()).unwrap().tasks.len(), 1);
}
