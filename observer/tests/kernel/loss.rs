//! What is lost is counted, and located.

use observer::capture::ebpf::{Control, Options, Probe, ProbeError, SMALLEST_RING, Scope};
use observer::capture::{CaptureEvent, GapReason, StreamId, StreamKind};

use crate::child::is_content;
use crate::watch::{Moved, Watch};

#[test]
fn a_ring_that_is_too_small_leaves_gaps_that_add_up() {
    for what in [
        "blocks pipe write 20 1000000",
        "blocks socketpair sendto 20 1000000",
    ] {
        let Some(watch) = Watch::with_ring(what, SMALLEST_RING) else {
            return;
        };
        let Moved {
            seen,
            arrived,
            total,
            ..
        } = watch.moved();
        let missing = arrived.assert_tiles(total, is_content);
        assert!(missing > 0, "20 MB do not fit into {SMALLEST_RING} bytes");
        assert_eq!(
            missing, seen.loss.ring_full,
            "gaps are what the kernel counted"
        );
        assert!(
            arrived
                .gaps
                .iter()
                .all(|(_, _, reason)| *reason == GapReason::RingFull)
        );
        assert!(!seen.loss.complete());
        seen.assert_reconciles();
        let told = seen.select(|event| matches!(event, CaptureEvent::Loss(_)).then_some(()));
        assert!(!told.is_empty(), "the loss is told");
    }
}

#[test]
fn a_stream_that_was_given_up_is_counted_and_not_copied() {
    let Some(mut watch) = Watch::start("given-up") else {
        return;
    };
    watch.step();
    let name = watch.line();
    watch.line();
    let object = name
        .strip_prefix("socket:[")
        .unwrap()
        .strip_suffix(']')
        .unwrap();
    let stream = StreamId {
        kind: StreamKind::Socket,
        object: object.parse().unwrap(),
        scope: 0,
    };
    watch
        .wait_for(|event| matches!(event, CaptureEvent::Chunk { stream: at, .. } if *at == stream));
    watch.handle.send(Control::GiveUp(stream));
    // Long enough for the probe to hear of it; it answers nothing that could be waited for.
    std::thread::sleep(std::time::Duration::from_millis(300));
    for _ in 0..2 {
        watch.step();
        watch.line();
    }
    watch.step();
    let seen = watch.finish();
    let arrived = seen.stream(&name);
    assert_eq!(
        arrived.assert_tiles(1000, is_content),
        0,
        "only the first message"
    );
    assert_eq!(seen.loss.filtered, 2000);
    assert!(
        seen.loss.complete(),
        "what was left out on purpose is no loss"
    );
    seen.assert_reconciles();
}

#[test]
fn bytes_that_nobody_in_the_scope_has_written_become_a_gap() {
    let Some(mut watch) = Watch::start("borrowed") else {
        return;
    };
    watch.step();
    for _ in 0..500 {
        watch.step();
    }
    let stream = watch.line();
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    watch.step();
    let seen = watch.finish();
    let arrived = seen.stream(&stream);
    assert!(arrived.read >= 500);
    assert!(
        matches!(arrived.gaps.as_slice(), [(0, bytes, GapReason::UnsupportedSyscall), ..] if *bytes >= 500),
        "{:?}",
        arrived.gaps
    );
}

#[test]
fn a_ring_of_an_impossible_size_is_refused() {
    for ring_bytes in [0, 4096, SMALLEST_RING - 1, SMALLEST_RING + 4096, 3 << 20] {
        let options = Options {
            ring_bytes,
            ..Options::new(Scope::Machine)
        };
        assert!(
            matches!(Probe::load(&options), Err(ProbeError::RingSize(_))),
            "{ring_bytes}"
        );
    }
}

#[test]
fn a_write_that_blocks_for_long_is_no_gap() {
    let Some(watch) = Watch::start("slow-reader") else {
        return;
    };
    let Moved { arrived, total, .. } = watch.moved();
    assert_eq!(
        arrived.assert_tiles(total, is_content),
        0,
        "{:?}",
        arrived.gaps
    );
}
