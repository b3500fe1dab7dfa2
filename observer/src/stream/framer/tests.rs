//! The framer's unit and property tests.

use proptest::prelude::*;

use super::*;

const LIMIT: usize = 64;

fn pieces(framer: &mut Framer) -> Vec<Piece> {
    std::iter::from_fn(|| framer.poll()).collect()
}

fn line(offset: u64, text: &'static str) -> Piece {
    let bytes = text.len() as u64 + 1;
    Piece::Line {
        offset,
        bytes,
        text: Bytes::from_static(text.as_bytes()),
        after: None,
    }
}

fn gap(offset: u64, bytes: impl Into<Option<u64>>, reason: GapReason) -> Piece {
    Piece::Gap {
        offset,
        bytes: bytes.into(),
        reason,
    }
}

fn torn(piece: Piece, reason: GapReason) -> Piece {
    let Piece::Line {
        offset,
        bytes,
        text,
        ..
    } = piece
    else {
        panic!("no line: {piece:?}")
    };
    Piece::Line {
        offset,
        bytes,
        text,
        after: Some(reason),
    }
}

fn push(framer: &mut Framer, offset: u64, text: &'static str) {
    framer.push(offset, Bytes::from_static(text.as_bytes()));
}

/// The extent of a piece, for those whose size is known.
fn extent(piece: &Piece) -> (u64, u64) {
    match *piece {
        Piece::Line { offset, bytes, .. }
        | Piece::Oversized { offset, bytes, .. }
        | Piece::Unterminated { offset, bytes, .. } => (offset, bytes),
        Piece::Gap { offset, bytes, .. } => (offset, bytes.unwrap_or(0)),
    }
}

#[test]
fn lines_over_chunks_and_in_chunks() {
    let mut framer = Framer::new(LIMIT);
    push(&mut framer, 0, "one\ntwo\n\nth");
    push(&mut framer, 11, "re");
    push(&mut framer, 13, "e\r\n");
    let expected = [
        line(0, "one"),
        line(4, "two"),
        line(8, ""),
        line(9, "three\r"),
    ];
    assert_eq!(pieces(&mut framer), expected);
    framer.eof();
    assert_eq!(pieces(&mut framer), []);
    push(&mut framer, 16, "x");
    framer.eof();
    let head = Bytes::from_static(b"x");
    assert_eq!(
        pieces(&mut framer),
        [Piece::Unterminated {
            offset: 16,
            bytes: 1,
            head
        }]
    );
}

#[test]
fn a_line_inside_a_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"one\ntwo\n");
    let mut framer = Framer::new(LIMIT);
    framer.push(0, chunk.clone());
    let [_, Piece::Line { text, .. }] = &pieces(&mut framer)[..] else {
        panic!("two lines")
    };
    assert_eq!(text.as_ptr(), chunk[4..].as_ptr());
}

#[test]
fn a_gap_takes_the_torn_line_with_it_and_marks_the_next() {
    let mut framer = Framer::new(LIMIT);
    push(&mut framer, 0, "one\ntw");
    framer.gap(6, Some(10), GapReason::RingFull);
    push(&mut framer, 16, "ail\nfour\n");
    let tail = torn(line(16, "ail"), GapReason::RingFull);
    let expected = [
        line(0, "one"),
        gap(4, 12, GapReason::RingFull),
        tail,
        line(20, "four"),
    ];
    assert_eq!(pieces(&mut framer), expected);
}

#[test]
fn a_hole_nobody_told_of_is_a_gap() {
    let mut framer = Framer::new(LIMIT);
    push(&mut framer, 5, "x\n");
    push(&mut framer, 9, "y\n");
    let expected = [
        gap(0, 5, GapReason::MidStream),
        torn(line(5, "x"), GapReason::MidStream),
        gap(7, 2, GapReason::RingFull),
        torn(line(9, "y"), GapReason::RingFull),
    ];
    assert_eq!(pieces(&mut framer), expected);
}

#[test]
fn a_gap_of_unknown_length_ends_where_the_next_chunk_is() {
    let mut framer = Framer::new(LIMIT);
    framer.gap(0, None, GapReason::MidStream);
    framer.gap(0, None, GapReason::MidStream);
    push(&mut framer, 1000, "x\ny\n");
    let tail = torn(line(1000, "x"), GapReason::MidStream);
    assert_eq!(
        pieces(&mut framer),
        [gap(0, None, GapReason::MidStream), tail, line(1002, "y")]
    );
}

#[test]
fn what_was_seen_is_not_seen_again() {
    let mut framer = Framer::new(LIMIT);
    push(&mut framer, 0, "one\nt");
    push(&mut framer, 2, "e\ntwo\n");
    push(&mut framer, 0, "one\n");
    framer.gap(3, Some(2), GapReason::Unreadable);
    assert_eq!(pieces(&mut framer), [line(0, "one"), line(4, "two")]);
}

#[test]
fn a_line_without_end_costs_no_more_than_the_limit() {
    let mut framer = Framer::new(LIMIT);
    let chunk = Bytes::from(vec![b'a'; 10_000]);
    for index in 0..1000 {
        framer.push(index * 10_000, chunk.clone());
        assert_eq!(framer.poll(), None);
        assert!(
            framer.partial.capacity() <= 2 * HEAD,
            "held: {}",
            framer.partial.capacity()
        );
    }
    push(&mut framer, 10_000_000, "\nok\n");
    let head = Bytes::from(vec![b'a'; HEAD]);
    let oversized = Piece::Oversized {
        offset: 0,
        bytes: 10_000_001,
        head,
    };
    assert_eq!(pieces(&mut framer), [oversized, line(10_000_001, "ok")]);
}

#[test]
fn the_limit_is_inclusive() {
    for (length, fits) in [(LIMIT, true), (LIMIT + 1, false)] {
        for split in [0, 1, LIMIT, length] {
            let text = vec![b'a'; length];
            let mut framer = Framer::new(LIMIT);
            framer.push(0, Bytes::copy_from_slice(&text[..split]));
            framer.push(split as u64, Bytes::from([&text[split..], b"\n"].concat()));
            let got = pieces(&mut framer);
            assert_eq!(
                matches!(got[..], [Piece::Line { .. }]),
                fits,
                "{length} {split}"
            );
            assert_eq!(
                matches!(got[..], [Piece::Oversized { .. }]),
                !fits,
                "{length} {split}"
            );
        }
    }
}

#[test]
fn offsets_at_the_end_of_the_world_do_not_overflow() {
    let mut framer = Framer::new(LIMIT);
    push(&mut framer, u64::MAX, "a\nb");
    framer.gap(u64::MAX - 1, Some(u64::MAX), GapReason::RingFull);
    framer.gap(u64::MAX, None, GapReason::RingFull);
    push(&mut framer, u64::MAX - 2, "a\nb\n");
    framer.eof();
    pieces(&mut framer);
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![4 => any::<u8>(), 1 => Just(b'\n'), 1 => Just(b'a')];
    prop::collection::vec(byte, 0..400)
}

/// Pushes a text in pieces that end at the cuts.
fn split(framer: &mut Framer, text: &[u8], cuts: &[prop::sample::Index]) {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    for pair in cuts.windows(2) {
        framer.push(
            pair[0] as u64,
            Bytes::copy_from_slice(&text[pair[0]..pair[1]]),
        );
    }
}

fn cuts() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop::collection::vec(any::<prop::sample::Index>(), 0..12)
}

proptest! {
    #[test]
    fn any_split_gives_the_same_pieces(text in text(), cuts in cuts()) {
        let mut whole = Framer::new(LIMIT);
        whole.push(0, Bytes::copy_from_slice(&text));
        whole.eof();
        let mut parts = Framer::new(LIMIT);
        split(&mut parts, &text, &cuts);
        parts.eof();
        let expected = pieces(&mut whole);
        prop_assert_eq!(&pieces(&mut parts), &expected);
        let lines = text.split(|&byte| byte == b'\n').count();
        let ended = text.last().is_none_or(|&byte| byte == b'\n');
        prop_assert_eq!(expected.len(), lines - usize::from(ended));
    }

    #[test]
    fn pieces_tile_the_stream(
        events in prop::collection::vec((0..4u8, 0..600u64, text(), 0..80u64), 0..12)
    ) {
        let mut framer = Framer::new(LIMIT);
        let mut got = Vec::new();
        for (kind, offset, text, bytes) in events {
            match kind {
                0 | 1 => framer.push(offset, text.into()),
                2 => framer.gap(offset, Some(bytes), GapReason::RingFull),
                _ => framer.eof(),
            }
            got.extend(pieces(&mut framer));
        }
        let mut position = 0;
        for piece in &got {
            let (offset, bytes) = extent(piece);
            prop_assert_eq!(offset, position, "{:?}", got);
            position += bytes;
        }
        prop_assert_eq!(position, framer.start);
    }

    #[test]
    fn a_gap_changes_only_the_lines_it_touches(
        text in text(), from in any::<prop::sample::Index>(), length in 1..60usize,
    ) {
        let from = from.index(text.len() + 1);
        let to = (from + length).min(text.len());
        let mut whole = Framer::new(LIMIT);
        whole.push(0, Bytes::copy_from_slice(&text));
        let mut lossy = Framer::new(LIMIT);
        lossy.push(0, Bytes::copy_from_slice(&text[..from]));
        lossy.gap(from as u64, Some((to - from) as u64), GapReason::RingFull);
        lossy.push(to as u64, Bytes::copy_from_slice(&text[to..]));
        let whole = pieces(&mut whole);
        for piece in pieces(&mut lossy) {
            let certain = matches!(
                piece, Piece::Line { after: None, .. } | Piece::Oversized { .. }
            );
            prop_assert!(!certain || whole.contains(&piece), "{:?} of {:?}", piece, whole);
        }
    }
}
