//! The programs that the tests observe: this same binary, in another role.
//!
//! A role is played before `main`, in a process with one thread and no test harness.

use std::path::Path;

use crate::moving::{channel, content, read_all, write_all};
use crate::{conversation, workout};

/// The variable that names the role, and its arguments after it.
pub(crate) const ROLE: &str = "OBSERVER_TEST_ROLE";

/// The words that start `program`, a copy of this binary, in a role.
pub(crate) fn role(program: &Path, words: &str) -> Vec<String> {
    let program = program.to_string_lossy().into_owned();
    vec!["env".into(), format!("{ROLE}={words}"), program]
}

/// How long a role may take, in seconds: an end of file that is lost must fail a test, not hang it.
const LONGEST: u32 = 300;

/// Called by the C library before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static PLAY: extern "C" fn() = play;

extern "C" fn play() {
    let Ok(words) = std::env::var(ROLE) else {
        return;
    };
    // SAFETY: it has no pointers; the signal's default action ends the process.
    unsafe { libc::alarm(LONGEST) };
    let words: Vec<&str> = words.split(' ').collect();
    let status = match words[0] {
        "transfer" => transfer(&words[1..]),
        "workout" => workout::play(),
        "host" => conversation::host(&words[1..]),
        "server" => conversation::server(&words[1..]),
        other => panic!("no role {other}"),
    };
    std::process::exit(status);
}

/// `transfer KIND WRITE READ LEN SEED LONGEST`: writes to a child of its own, in pieces of at most
/// LONGEST bytes. The child exits with 0 if it has read just these bytes.
fn transfer(words: &[&str]) -> i32 {
    let [kind, write, read, len, seed, longest] = words else {
        panic!("six words")
    };
    let (len, seed): (usize, u64) = (len.parse().unwrap(), seed.parse().unwrap());
    let longest: usize = longest.parse().unwrap();
    let (reader, writer) = channel(kind);
    // SAFETY: this process has one thread.
    if unsafe { libc::fork() } == 0 {
        // SAFETY: nobody else uses the descriptor.
        unsafe { libc::close(writer) };
        let received = read_all(read, reader, longest, seed + 1);
        std::process::exit(i32::from(received != content(len, seed)));
    }
    // SAFETY: nobody else uses the descriptor.
    unsafe { libc::close(reader) };
    write_all(write, writer, &content(len, seed), longest, seed + 2);
    // SAFETY: nobody else uses the descriptor.
    unsafe { libc::close(writer) };
    let mut status = 0;
    // SAFETY: `status` is valid for writes.
    unsafe { libc::wait(&raw mut status) };
    libc::WEXITSTATUS(status)
}
