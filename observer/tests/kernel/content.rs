//! Every byte, whatever moves it.

use observer::capture::{CaptureEvent, GapReason};

use crate::child::is_content;
use crate::watch::{Moved, Watch};

/// Runs a child that moves messages, and demands that everything arrived.
fn assert_complete(what: &str) {
    let Some(watch) = Watch::start(what) else {
        return;
    };
    let Moved {
        seen,
        arrived,
        total,
        ..
    } = watch.moved();
    assert_eq!(
        arrived.assert_tiles(total, is_content),
        0,
        "no gaps: {:?}",
        arrived.gaps
    );
    assert_eq!(arrived.read, total, "the reader's end is known");
    assert!(arrived.eof, "the reader met the end");
    assert!(seen.loss.complete(), "{:?}", seen.loss);
    seen.assert_reconciles();
}

#[test]
fn every_call_over_a_pipe() {
    assert_complete("move pipe 1 1,2,63,64,65,1000,4096,32768,32769,100000,1048576");
}

#[test]
fn every_call_over_a_socket_pair() {
    assert_complete("move socketpair 2 1,2,63,64,65,1000,4096,32768,32769,100000,1048576");
}

#[test]
fn twenty_messages_of_a_megabyte_back_to_back() {
    assert_complete("blocks pipe write 20 1000000");
    assert_complete("blocks pipe writev 20 1000000");
    assert_complete("blocks socketpair sendto 20 1000000");
}

#[test]
fn sixty_four_mebibytes_in_one_call() {
    for what in [
        "blocks pipe write 1 67108864",
        "blocks socketpair sendmsg 1 67108864",
    ] {
        let Some(watch) = Watch::start(what) else {
            return;
        };
        let Moved {
            seen,
            arrived,
            total,
            ..
        } = watch.moved();
        let missing = arrived.assert_tiles(total, is_content);
        assert_eq!(
            missing, seen.loss.ring_full,
            "the gaps are what the kernel counted"
        );
        seen.assert_reconciles();
        println!("{what}: {missing} bytes missing");
    }
}

#[test]
fn short_writes_count_as_what_they_took() {
    let Some(watch) = Watch::start("short") else {
        return;
    };
    let Moved { arrived, total, .. } = watch.moved();
    assert_eq!(arrived.assert_tiles(total, is_content), 0);
    assert!(arrived.refused, "EPIPE is reported");
}

#[test]
fn positioned_calls_move_nothing_on_a_pipe() {
    let Some(watch) = Watch::start("positioned") else {
        return;
    };
    let Moved { arrived, total, .. } = watch.moved();
    assert_eq!(arrived.assert_tiles(total, is_content), 0);
    assert_eq!(arrived.read, 0);
}

#[test]
fn calls_that_show_no_bytes_leave_counted_gaps() {
    let Some(mut watch) = Watch::start("spliced") else {
        return;
    };
    watch.step();
    let (stream, other) = (watch.line(), watch.line());
    let total = watch.line().parse().unwrap();
    let seen = watch.finish();
    let arrived = seen.stream(&stream);
    assert_eq!(arrived.assert_tiles(total, is_content), 100);
    let unseen = GapReason::UnsupportedSyscall;
    assert_eq!(
        arrived.gaps,
        [(100, 30, unseen), (130, 20, unseen), (150, 50, unseen)]
    );
    assert_eq!(
        seen.stream(&other).read,
        30,
        "splice takes bytes away, tee does not"
    );
    assert_eq!(seen.loss.unreadable, 100);
    seen.assert_reconciles();
}

#[test]
fn writers_at_the_same_time_leave_no_hole() {
    let Some(watch) = Watch::start("threads") else {
        return;
    };
    let Moved { arrived, total, .. } = watch.moved();
    assert_eq!(arrived.assert_tiles(total, |_, _| true), 0);
    let bytes: Vec<u8> = arrived
        .chunks
        .into_iter()
        .flat_map(|(_, bytes)| bytes)
        .collect();
    for line in bytes
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        assert!(
            line.iter().all(|&byte| byte == line[0]),
            "a line is one thread's own"
        );
    }
}

#[test]
fn descriptors_and_writers_are_named() {
    let Some(watch) = Watch::start("positioned") else {
        return;
    };
    let Moved {
        child,
        seen,
        stream,
        ..
    } = watch.moved();
    let writers = seen.select(|event| match event {
        CaptureEvent::Chunk {
            stream: at,
            writer,
            fd,
            ..
        } if at.to_string() == stream => Some((*writer, *fd)),
        _ => None,
    });
    assert!(matches!(writers.as_slice(), [(writer, Some(fd))] if *writer == child && *fd > 2));
}
