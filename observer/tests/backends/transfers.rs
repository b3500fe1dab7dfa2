//! Every system call that moves bytes, through pipes and sockets: not a byte is missed.

use observer::capture::Fate;

use crate::moving::{Random, content};
use crate::observe::observe;
use crate::roles::role;

fn transfer(kind: &str, write: &str, read: &str, len: usize, seed: u64, longest: usize) {
    let name = format!("{kind} {write} {read} {len} {seed} {longest}");
    let own = std::env::current_exe().unwrap();
    let seen = observe(&role(&own, &format!("transfer {name}")));
    assert_eq!(seen.fate, Fate::Code(0), "{name}");
    let streams = seen.streams();
    let expected = content(len, seed);
    let unseen = matches!(write, "splice" | "sendfile");
    let found = streams.values().find(|stream| {
        if unseen {
            stream.gaps == len as u64
        } else {
            stream.bytes == expected
        }
    });
    let sizes: Vec<_> = streams
        .iter()
        .map(|(name, s)| (name, s.bytes.len(), s.gaps, s.read, s.ended))
        .collect();
    let found = found.unwrap_or_else(|| panic!("{name}: {sizes:?}"));
    assert_eq!(
        (found.read, found.ended, found.refused),
        (len as u64, true, false),
        "{name}"
    );
    let loss = seen.loss;
    assert_eq!(
        loss.seen,
        loss.submitted + loss.unreadable + loss.filtered,
        "{loss:?}"
    );
    assert_eq!(loss.complete(), !unseen, "{loss:?}");
}

#[test]
fn all_calls_on_pipes() {
    for write in [
        "write", "writev", "pwritev2", "vmsplice", "splice", "sendfile",
    ] {
        for read in ["read", "readv", "preadv2"] {
            transfer("pipe", write, read, 100_000, 7, 9_000);
        }
    }
}
#[test]
fn all_calls_on_sockets() {
    for write in [
        "write", "writev", "sendto", "sendmsg", "sendmmsg", "splice", "sendfile",
    ] {
        for read in ["read", "readv", "recvfrom", "recvmsg", "recvmmsg"] {
            transfer("socket", write, read, 100_000, 7, 9_000);
        }
    }
}

#[test]
fn any_size_split_anywhere() {
    let mut chance = Random::new(4);
    for (len, longest) in [(1, 1), (4096, 1 + chance.below(5000)), (3 << 20, 1 << 20)] {
        let seed = chance.next() >> 32;
        transfer("pipe", "write", "read", len, seed, longest);
        transfer("pipe", "writev", "readv", len, seed, longest);
        transfer("socket", "sendmsg", "recvmsg", len, seed, longest);
    }
}
