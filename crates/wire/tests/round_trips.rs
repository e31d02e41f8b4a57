//! What one end writes the other reads, whatever it is; and what was never written, changed or cut
//! off is refused or read as something that can be written, without a panic.

use anysched_wire::boot::Boot;
use anysched_wire::datagram::{Answer, DEAREST, Datagram, LONGEST, Request};
use anysched_wire::result::{self, Message};
use anysched_wire::script::{self, HIGHEST, LATEST, Script, Step};
use anysched_wire::{escape, log, mail};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;

/// Any text, and often what has a meaning somewhere.
fn any_text() -> impl Strategy<Value = String> {
    let odd = prop_oneof![
        Just('\\'),
        Just(' '),
        Just('\n'),
        Just('\r'),
        Just('@'),
        Just('='),
        Just('\u{1b}'),
        Just('\u{a0}'),
        any::<char>()
    ];
    vec(odd, 0..12).prop_map(String::from_iter)
}

fn name() -> impl Strategy<Value = String> {
    "[a-z0-9_=@-]{1,12}"
}

fn boot() -> impl Strategy<Value = Boot> {
    let pairs = || vec((name(), any_text()), 0..4);
    let tick = option::of(1..=u64::MAX);
    (name(), pairs(), tick, any::<[bool; 3]>(), name(), pairs()).prop_map(
        |(policy, settings, tick, [record, events, timed], program, arguments)| Boot {
            policy,
            settings,
            tick,
            record,
            events,
            timed,
            program,
            arguments,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let number = || 0..=HIGHEST;
    let alone = prop_oneof![
        (0..=LATEST).prop_map(Step::Compute),
        (0..=LATEST).prop_map(Step::Sleep),
        (0..=LATEST).prop_map(Step::Until),
        Just(Step::Yield),
        (-20..=19i8).prop_map(Step::Nice),
        (0..=LATEST).prop_map(Step::Deadline),
        btree_set(number(), 0..4).prop_map(|cpus| Step::Cpus(Vec::from_iter(cpus))),
    ];
    let among = prop_oneof![
        number().prop_map(Step::Wait),
        number().prop_map(Step::Post),
        number().prop_map(Step::Notify),
        number().prop_map(Step::Broadcast),
        number().prop_map(Step::Lock),
        number().prop_map(Step::Spin),
        number().prop_map(Step::Unlock),
        number().prop_map(Step::Send),
        (0..=LATEST).prop_map(Step::Reply),
        // As many for the same barrier wherever it is named.
        number().prop_map(|barrier| Step::Meet { barrier, tasks: barrier / 2 + 1 }),
    ];
    let leaf = prop_oneof![alone, among];
    leaf.prop_recursive(script::DEEPEST as u32, 24, 4, |step| {
        (1..=u64::MAX, vec(step, 1..4)).prop_map(|(times, steps)| Step::Repeat(times, steps))
    })
}

fn script() -> impl Strategy<Value = Script> {
    let task = (0..=LATEST, any_text(), vec(step(), 0..5))
        .prop_map(|(arrival, name, steps)| script::Task { arrival, name, steps });
    vec(task, 1..5).prop_map(|mut tasks| {
        tasks.sort_by_key(|task| task.arrival);
        Script { tasks }
    })
}

fn message() -> impl Strategy<Value = Message> {
    let task = (any_text(), any::<[u64; 5]>(), any::<(Option<u64>, Option<u64>)>()).prop_map(
        |(name, [arrival, first, finish, groups, slept], (service, dispatches))| {
            let numbers = result::Task { name, arrival, first, finish, ..Default::default() };
            Message::Task(result::Task { groups, slept, service, dispatches, ..numbers })
        },
    );
    prop_oneof![
        any_text().prop_map(Message::Started),
        any::<u64>().prop_map(Message::Serving),
        task,
        (any_text(), any::<u64>()).prop_map(|(name, number)| Message::Value { name, number }),
        (any_text(), any::<u64>()).prop_map(|(name, number)| Message::Sample { name, number }),
        (any_text(), any_text()).prop_map(|(name, value)| Message::Learned { name, value }),
        any_text().prop_map(Message::Refused),
        Just(Message::End),
    ]
}

fn datagram() -> impl Strategy<Value = Datagram> {
    let request = any::<[u64; 2]>()
        .prop_flat_map(|[number, sent]| (0..=DEAREST).prop_map(move |cost| [number, sent, cost]))
        .prop_map(|[number, sent, cost]| Datagram::Request(Request { number, sent, cost }));
    let answer = any::<[u64; 5]>().prop_map(|[number, sent, arrival, start, end]| {
        Datagram::Answer(Answer { number, sent, arrival, start, end })
    });
    prop_oneof![Just(Datagram::Hello), Just(Datagram::Quit), request, answer]
}

/// `bytes`, of which a byte is another or the end is missing.
fn spoil(bytes: &[u8], at: prop::sample::Index, with: Option<u8>) -> Vec<u8> {
    let at = at.index(bytes.len());
    let mut spoilt = bytes.to_vec();
    match with {
        Some(byte) => spoilt[at] = byte,
        None => spoilt.truncate(at),
    }
    spoilt
}

proptest! {
    #[test]
    fn escapes(text in any_text()) {
        for escaped in [escape::word(&text).to_string(), escape::rest(&text).to_string()] {
            prop_assert!(!escaped.contains(char::is_control));
            prop_assert_eq!(escape::unescape(&escaped), Some(text.clone()));
        }
        prop_assert!(!escape::word(&text).to_string().contains(char::is_whitespace));
    }

    #[test]
    fn boots(boot in boot(), at: prop::sample::Index, with: Option<u8>) {
        let text = boot.write().unwrap();
        let spoilt = spoil(text.as_bytes(), at, with);
        prop_assert_eq!(Boot::read(text.as_bytes()), Ok(boot));
        if let Ok(other) = Boot::read(&spoilt) {
            prop_assert_eq!(Boot::read(other.write().unwrap().as_bytes()), Ok(other));
        }
    }

    #[test]
    fn scripts(script in script(), at: prop::sample::Index, with: Option<u8>) {
        let text = script.write().unwrap();
        let spoilt = spoil(text.as_bytes(), at, with);
        prop_assert_eq!(Script::read(text.as_bytes()), Ok(script));
        if let Ok(other) = Script::read(&spoilt) {
            prop_assert_eq!(Script::read(other.write().unwrap().as_bytes()), Ok(other));
        }
    }

    #[test]
    fn mails(script in script(), at: prop::sample::Index, with: Option<u8>) {
        let message = |task: script::Task| {
            let (arrives, steps) = (task.arrival, task.steps);
            mail::Message { arrives, sent: arrives / 2, channel: 3, steps }
        };
        let messages: Vec<_> = script.tasks.into_iter().map(message).collect();
        let text = mail::write(&messages).unwrap();
        let _ = mail::read(&spoil(text.as_bytes(), at, with));
        prop_assert_eq!(mail::read(text.as_bytes()), Ok(messages));
    }

    #[test]
    fn results(message in message(), at: prop::sample::Index, with: Option<u8>) {
        let line = message.to_string();
        let spoilt = spoil(line.as_bytes(), at, with);
        prop_assert!(!line.contains(['\n', '\r']));
        prop_assert_eq!(Message::read(&line), Ok(Some(message)));
        if let Ok(Some(other)) = Message::read(&String::from_utf8_lossy(&spoilt)) {
            prop_assert_eq!(Message::read(&other.to_string()), Ok(Some(other)));
        }
    }

    #[test]
    fn datagrams(datagram in datagram(), padding in 0..100usize) {
        let mut bytes = [0; LONGEST];
        let length = datagram.encode(&mut bytes);
        let may_be_padded = matches!(datagram, Datagram::Request(_) | Datagram::Answer(_));
        let length = length + if may_be_padded { padding } else { 0 };
        prop_assert_eq!(Datagram::decode(&bytes[..length]), Some(datagram));
    }

    #[test]
    fn logs(
        chunks in vec((0..4u8, vec(any::<u8>(), 0..40)), 0..12),
        at: prop::sample::Index,
        with: Option<u8>,
    ) {
        let mut sent = Vec::new();
        let mut logs = vec![Vec::new(); 4];
        for (cpu, chunk) in &chunks {
            log::send(*cpu, chunk, |bytes| sent.extend_from_slice(bytes));
            logs[usize::from(*cpu)].extend_from_slice(chunk);
        }
        prop_assert_eq!(log::receive(&sent, 4), Ok(logs));
        if !sent.is_empty() {
            let _ = log::receive(&spoil(&sent, at, with), 4);
        }
    }

    #[test]
    fn garbage(bytes in vec(any::<u8>(), 0..60), text in any_text()) {
        let _ = Datagram::decode(&bytes);
        let _ = log::receive(&bytes, 2);
        let _ = Boot::read(&bytes);
        let _ = Script::read(&bytes);
        let _ = Boot::read(format!("anysched-boot 1\n{text}\n").as_bytes());
        let _ = Script::read(format!("anysched-script 1\n0 a {text}\n").as_bytes());
        let _ = mail::read(format!("anysched-mail 1\n{text}\n5 5 0 {text}\n").as_bytes());
        let _ = Message::read(&format!("@{text}"));
    }
}
