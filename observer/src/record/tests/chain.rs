//! What the chain holds, and what it tells of a log that was cut or altered.

use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

use super::any::any_observed;
use crate::capture::{Loss, Timestamp};
use crate::record::{
    Altered, Chain, End, Header, LossRecord, Record, SEALED_EVERY, Verified, Verifier, VerifyError,
    parse_line,
};
use crate::verdict;

fn loss(t: u64) -> Record {
    Record::Loss(LossRecord {
        t: Timestamp::from_nanos(t * 1_000),
        loss: Loss::default(),
    })
}

fn header() -> Header {
    let line = br#"{"type":"header","t":0,"schema":"observer/1"}"#;
    match parse_line(line).expect("a record") {
        Some(Record::Header(header)) => *header,
        other => panic!("{other:?}"),
    }
}

fn summary() -> Record {
    Record::from(&verdict::Output::Summary(verdict::Summary::default()))
}

/// A log of so many records between header and summary.
fn log(records: u64) -> Vec<u8> {
    let (mut chain, mut out) = (Chain::new(), Vec::new());
    chain.write_line(&Record::Header(Box::new(header())), &mut out);
    for t in 0..records {
        chain.write_line(&loss(t), &mut out);
    }
    chain.write_line(&summary(), &mut out);
    out
}

fn verify(log: &[u8]) -> Result<Verified, VerifyError> {
    let mut verifier = Verifier::new();
    let whole = log
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    for line in log[..whole].split_inclusive(|byte| *byte == b'\n') {
        verifier.handle_line(line)?;
    }
    verifier.finish(&log[whole..])
}

fn altered(log: &[u8]) -> Altered {
    match verify(log) {
        Err(VerifyError::Altered(altered)) => altered,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_seal_holds_what_anybody_can_hash() {
    let log = log(200);
    let mut seals = 0;
    for (number, line) in (0..).zip(log.split_inclusive(|byte| *byte == b'\n')) {
        let record = parse_line(line.trim_ascii_end()).expect("a record");
        let seal = match record.expect("known") {
            Record::Chain(record) => record.chain,
            Record::Summary(summary) => summary.chain,
            _ => continue,
        };
        let seal = seal.expect("a seal");
        let held = &log[..usize::try_from(seal.bytes).expect("small")];
        assert!(log[held.len()..].starts_with(b",\"chain\":{"));
        let expected: [u8; 32] = Sha256::digest(held).into();
        let expected: String = expected.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((seal.lines, seal.sha256.to_string()), (number, expected));
        seals += 1;
    }
    assert_eq!(seals, 1 + 201 / SEALED_EVERY);
}

#[test]
fn a_log_is_whole_with_its_summary() {
    for records in [0, 1, 63, 64, 65, 1000] {
        let verified = verify(&log(records)).expect("whole");
        assert_eq!(verified.end, End::Summary);
        assert_eq!(verified.sealed, verified.lines);
    }
}

#[test]
fn what_is_cut_is_good_up_to_the_cut() {
    let log = log(150);
    for length in (0..log.len()).step_by(11) {
        let cut = &log[..length];
        let lines = cut.iter().filter(|byte| **byte == b'\n').count() as u64;
        if lines == 0 {
            assert!(matches!(verify(cut), Err(VerifyError::Read(_))) || length > 0);
            continue;
        }
        let verified = verify(cut).expect("cut is not altered");
        assert_eq!(verified.lines, lines);
        match cut.last() {
            Some(b'\n') => assert_eq!(verified.end, End::Line),
            _ => assert!(matches!(verified.end, End::Midst { line, .. } if line == lines + 1)),
        }
        assert!(verified.lines - verified.sealed < SEALED_EVERY + 1);
    }
}

#[test]
fn what_is_altered_is_told_where() {
    let log = log(200);
    let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    let text = |lines: &[&[u8]]| lines.concat();
    // A line is left out.
    let mut without = lines.clone();
    without.remove(100);
    let gone = i128::try_from(lines[100].len()).expect("small");
    match altered(&text(&without)) {
        Altered::Lines { lines, moved, .. } => {
            assert!(lines.contains(&100) && *lines.start() > 64, "{lines:?}");
            assert_eq!(moved, -gone);
        }
        other => panic!("{other}"),
    }
    // Two lines change places.
    let mut swapped = lines.clone();
    swapped.swap(10, 11);
    assert_eq!(
        altered(&text(&swapped)).to_string(),
        format!(
            "lines 1 to 65 (from byte 0 to byte {}) are not as they were written",
            text(&lines[..65]).len()
        )
    );
    // A line is no record any more.
    let mut broken = lines.clone();
    broken[20] = b"nothing\n";
    match altered(&text(&broken)) {
        Altered::Record { line, offset, .. } => {
            assert_eq!((line, offset), (21, text(&lines[..20]).len() as u64));
        }
        other => panic!("{other}"),
    }
    // Something follows the end.
    let mut longer = lines.clone();
    longer.push(lines[3]);
    assert!(matches!(altered(&text(&longer)), Altered::AfterEnd { .. }));
    let mut longer = log.clone();
    longer.extend_from_slice(b"{\"ty");
    assert!(matches!(altered(&longer), Altered::AfterEnd { .. }));
}

#[test]
fn the_summary_is_sealed_as_well() {
    let log = String::from_utf8(log(3)).expect("text");
    let other = log.replace("\"messages\":0", "\"messages\":9");
    assert_ne!(log, other);
    assert!(matches!(altered(other.as_bytes()), Altered::Lines { .. }));
}

#[test]
fn a_chain_goes_on_in_the_next_file() {
    let (mut chain, mut first, mut second) = (Chain::new(), Vec::new(), Vec::new());
    chain.write_line(&Record::Header(Box::new(header())), &mut first);
    chain.write_line(&loss(1), &mut first);
    let next = chain.rotate(&header(), "audit.2.jsonl", &mut first);
    chain.write_line(&Record::Header(Box::new(next)), &mut second);
    chain.write_line(&summary(), &mut second);
    let first = verify(&first).expect("whole");
    let second = verify(&second).expect("whole");
    assert_eq!(first.end, End::Next("audit.2.jsonl".into()));
    assert_eq!((first.part, second.part), (1, 2));
    assert_eq!(second.previous, first.seal.map(|seal| seal.sha256));
    assert_eq!(second.end, End::Summary);
}

proptest! {
    #[test]
    fn any_byte_that_changes_is_noticed(
        events in prop::collection::vec(any_observed(), 0..100),
        place in any::<prop::sample::Index>(),
        byte: u8,
    ) {
        let (mut chain, mut log) = (Chain::new(), Vec::new());
        chain.write_line(&Record::Header(Box::new(header())), &mut log);
        for event in &events {
            chain.write_line(&Record::from(event), &mut log);
        }
        chain.write_line(&summary(), &mut log);
        prop_assert_eq!(verify(&log).expect("whole").end, End::Summary);
        let place = place.index(log.len());
        prop_assume!(log[place] != byte);
        log[place] = byte;
        // It is altered, or no log, or, where the last seal is no seal any more, not whole.
        let whole = verify(&log).is_ok_and(|told| told.end == End::Summary);
        prop_assert!(!whole);
    }
}
