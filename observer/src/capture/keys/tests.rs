//! Which bytes that a terminal sends are a key, and which only look like one.

use proptest::prelude::*;

use super::*;

const E: InterruptKind = InterruptKind::KeyEsc;
const C: InterruptKind = InterruptKind::KeyCtrlC;

fn ms(ms: u64) -> Timestamp {
    Timestamp::from_nanos(ms * 1_000_000)
}

/// Reads at these milliseconds, then silence for good.
fn timed(reads: &[(u64, &[u8])]) -> Vec<(Timestamp, InterruptKind)> {
    let (mut keys, mut out) = (KeyParser::new(), Vec::new());
    for (at, bytes) in reads {
        keys.push(ms(*at), bytes, &mut out);
    }
    while let Some(deadline) = keys.deadline() {
        keys.poll(deadline, &mut out);
    }
    out
}

fn keys(bytes: &[u8]) -> Vec<InterruptKind> {
    timed(&[(0, bytes)])
        .into_iter()
        .map(|(_, key)| key)
        .collect()
}

/// Every form in which a terminal writes a key, read at once, and byte by byte.
const TABLE: &[(&str, &[u8], &[InterruptKind])] = &[
    ("nothing", b"", &[]),
    ("text", b"hello \xc3\xa9 \xf0\x9f\x8e\x89\r\t\x7f", &[]),
    ("escape", b"\x1b", &[E]),
    ("escape twice", b"\x1b\x1b", &[E, E]),
    ("escape three times", b"\x1b\x1b\x1b", &[E, E, E]),
    ("escape after text", b"abc\x1b", &[E]),
    ("ctrl-c", b"\x03", &[C]),
    ("ctrl-c twice in text", b"a\x03b\x03c", &[C, C]),
    ("other control keys", b"\x01\x02\x04\x1a\x1c\x1d", &[]),
    ("arrow up", b"\x1b[A", &[]),
    ("arrow up, application mode", b"\x1bOA", &[]),
    ("alt and arrow up, rxvt", b"\x1b\x1b[A", &[]),
    ("alt and F1", b"\x1b\x1bOP", &[]),
    ("arrow, then escape", b"\x1b[A\x1b", &[E]),
    ("arrow, then ctrl-c", b"\x1b[A\x03", &[C]),
    ("shift-tab", b"\x1b[Z", &[]),
    ("control and arrow", b"\x1b[1;5C", &[]),
    ("F1", b"\x1bOP", &[]),
    ("F5", b"\x1b[15~", &[]),
    ("F12 with modifiers", b"\x1b[24;5~", &[]),
    ("linux console F1", b"\x1b[[A", &[]),
    ("delete", b"\x1b[3~", &[]),
    ("alt and a letter", b"\x1bx", &[]),
    ("alt and ctrl-c", b"\x1b\x03", &[]),
    ("alt and backspace", b"\x1b\x7f", &[]),
    ("escape, then alt and a letter", b"\x1b\x1bx", &[E]),
    ("alt and [", b"\x1b[", &[]),
    ("alt and [, then escape", b"\x1b[\x1b", &[E]),
    ("alt and [, then ctrl-c", b"\x1b[\x03", &[C]),
    ("alt and O, then ctrl-c", b"\x1bO\x03", &[C]),
    ("alt and ], then escape", b"\x1b]\x1b", &[E]),
    ("kitty escape", b"\x1b[27u", &[E]),
    ("kitty escape, no modifiers", b"\x1b[27;1u", &[E]),
    ("kitty escape, press", b"\x1b[27;1:1u", &[E]),
    ("kitty escape, repeat", b"\x1b[27;1:2u", &[E]),
    ("kitty escape, release", b"\x1b[27;1:3u", &[]),
    (
        "kitty escape, press and release",
        b"\x1b[27;1:1u\x1b[27;1:3u",
        &[E],
    ),
    ("kitty escape, empty modifiers", b"\x1b[27;:1u", &[E]),
    ("kitty escape, caps lock", b"\x1b[27;65u", &[E]),
    ("kitty escape, num lock", b"\x1b[27;129u", &[E]),
    ("kitty escape, both locks, release", b"\x1b[27;193:3u", &[]),
    ("kitty shift-escape", b"\x1b[27;2u", &[]),
    ("kitty alt-escape", b"\x1b[27;3u", &[]),
    ("kitty escape with text", b"\x1b[27;1;27u", &[E]),
    ("kitty ctrl-c", b"\x1b[99;5u", &[C]),
    ("kitty ctrl-c, press", b"\x1b[99;5:1u", &[C]),
    ("kitty ctrl-c, repeat", b"\x1b[99;5:2u", &[C]),
    ("kitty ctrl-c, release", b"\x1b[99;5:3u", &[]),
    ("kitty ctrl-c, num lock", b"\x1b[99;133u", &[C]),
    ("kitty ctrl-c, caps lock", b"\x1b[99;69u", &[C]),
    ("kitty ctrl-shift-c", b"\x1b[99:67;6u", &[]),
    ("kitty super-c", b"\x1b[99;9u", &[]),
    ("kitty c", b"\x1b[99u", &[]),
    (
        "kitty ctrl-c on a Russian keyboard",
        b"\x1b[1089::99;5u",
        &[C],
    ),
    ("kitty ctrl-d", b"\x1b[100;5u", &[]),
    ("kitty left control", b"\x1b[57442;5u", &[]),
    ("kitty zero modifiers", b"\x1b[27;0u", &[]),
    ("kitty flags reply", b"\x1b[?27u", &[]),
    ("modifyOtherKeys ctrl-c", b"\x1b[27;5;99~", &[C]),
    ("modifyOtherKeys escape", b"\x1b[27;1;27~", &[E]),
    ("modifyOtherKeys ctrl-shift-c", b"\x1b[27;6;67~", &[]),
    ("modifyOtherKeys cut short", b"\x1b[27;5~", &[]),
    ("focus in and out", b"\x1b[I\x1b[O", &[]),
    ("mouse, SGR", b"\x1b[<0;27;5M\x1b[<0;27;5m", &[]),
    (
        "mouse, X10, position of a key's value",
        b"\x1b[M \x1b\x03",
        &[],
    ),
    ("mouse, X10, then escape", b"\x1b[M !!\x1b", &[E]),
    ("mouse, urxvt", b"\x1b[32;27;5M", &[]),
    ("cursor position", b"\x1b[27;5R", &[]),
    ("device attributes", b"\x1b[?64;1;27c", &[]),
    ("colour reply, BEL", b"\x1b]11;rgb:0303/1b1b/0000\x07", &[]),
    ("colour reply, ST", b"\x1b]11;rgb:0303/1b1b/0000\x1b\\", &[]),
    (
        "colour reply, then escape",
        b"\x1b]11;rgb:0/0/0\x1b\\\x1b",
        &[E],
    ),
    ("control bytes in a reply", b"\x1bP1$r\x03\x1b\\", &[]),
    ("version reply", b"\x1bP>|XTerm(390)\x1b\\", &[]),
    ("application reply", b"\x1b_Gi=31;OK\x1b\\", &[]),
    ("paste", b"\x1b[200~a\x03b\x1bc\x1b[27u\x1b[201~", &[]),
    ("paste, then ctrl-c", b"\x1b[200~x\x1b[201~\x03", &[C]),
    (
        "paste with half an end in it",
        b"\x1b[200~\x1b[20\x1b[201\x03\x1b\x1b[201~\x1b",
        &[E],
    ),
    ("stray paste end", b"\x1b[201~\x1b", &[E]),
    ("control sequence cut by a key", b"\x1b[1;\x1b[27u", &[E]),
    ("no digits", b"\x1b[+27u\x1b[ 27u\x1b[;u\x1b[u", &[]),
    (
        "a number too large",
        b"\x1b[99999999999999999999u\x1b",
        &[E],
    ),
    (
        "parameters too long to keep",
        b"\x1b[27;1;27:27:27:27:27:27:27:27:27:27:27:27:27:27:27:27u",
        &[],
    ),
];

#[test]
fn finds_the_two_keys_and_nothing_else() {
    for (name, bytes, expected) in TABLE {
        assert_eq!(keys(bytes), *expected, "{name}");
        let singly: Vec<_> = bytes.chunks(1).map(|byte| (0, byte)).collect();
        let found: Vec<_> = timed(&singly).into_iter().map(|(_, key)| key).collect();
        assert_eq!(found, *expected, "{name}, byte by byte");
    }
}

#[test]
fn time_tells_a_key_from_a_sequence() {
    assert_eq!(timed(&[(0, b"\x1b"), (49, b"[A")]), []);
    assert_eq!(timed(&[(0, b"\x1b"), (50, b"[A")]), [(ms(0), E)]);
    assert_eq!(
        timed(&[(0, b"\x1b"), (50, b"\x1b")]),
        [(ms(0), E), (ms(50), E)]
    );
    assert_eq!(
        timed(&[(0, b"\x1b"), (20, b"\x1b")]),
        [(ms(0), E), (ms(20), E)]
    );
    assert_eq!(timed(&[(7, b"\x1b[27"), (99, b"u")]), [(ms(99), E)]);
    assert_eq!(timed(&[(0, b"\x1b["), (500, b"27u")]), []);
    assert_eq!(timed(&[(0, b"\x1b]"), (500, b"\x03")]), [(ms(500), C)]);
    assert_eq!(
        timed(&[(0, b"\x1b[200~x"), (1_999, b"\x03"), (3_998, b"\x1b")]),
        []
    );
    assert_eq!(
        timed(&[(0, b"\x1b[200~x"), (2_000, b"\x03")]),
        [(ms(2_000), C)]
    );
}

#[test]
fn waits_only_while_a_key_is_undecided() {
    let (mut keys, mut out) = (KeyParser::new(), Vec::new());
    keys.push(ms(3), b"text", &mut out);
    assert_eq!(keys.deadline(), None);
    keys.push(ms(5), b"\x1b", &mut out);
    assert_eq!(keys.deadline(), Some(ms(55)));
    keys.poll(ms(54), &mut out);
    assert_eq!(out, []);
    keys.poll(ms(55), &mut out);
    assert_eq!(out, [(ms(5), E)]);
    assert_eq!(keys.deadline(), None);
}

proptest! {
    #[test]
    fn no_input_finds_more_keys_than_it_has_bytes(input: Vec<u8>) {
        prop_assert!(keys(&input).len() <= input.len());
    }

    /// A program that reads in other portions types the same keys.
    #[test]
    fn any_split_finds_the_same_keys(
        picks in prop::collection::vec(0..TABLE.len(), 0..8),
        cuts in prop::collection::vec(1..9_usize, 1..64),
    ) {
        let input: Vec<u8> = picks.iter().flat_map(|&i| TABLE[i].1).copied().collect();
        let (mut reads, mut rest) = (Vec::new(), &input[..]);
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (head, tail) = rest.split_at((*cut).min(rest.len()));
            reads.push((0, head));
            rest = tail;
        }
        let found: Vec<_> = timed(&reads).into_iter().map(|(_, key)| key).collect();
        prop_assert_eq!(found, keys(&input));
    }
}
