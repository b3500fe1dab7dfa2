//! What each backend costs a host and its server: round trips of several sizes, in one run, as
//! ratios of what they take unobserved. `strace` is there for comparison.
//!
//! `cargo bench --bench backends`; eBPF as root. Prints, and asserts nothing: a machine that is
//! busy would fail for no fault of the code.

#![expect(
    clippy::unwrap_used,
    reason = "a bench has nobody to report an error to"
)]

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Bytes of a message, and how many round trips are measured.
const SIZES: [(usize, u32); 4] = [(200, 2000), (2_000, 2000), (200_000, 200), (1_000_000, 50)];

/// The best of so many runs counts.
const RUNS: usize = 3;

/// The variable that tells the host what to put before its server's command.
const RELAY: &str = "OBSERVER_BENCH_RELAY";

fn main() {
    let words: Vec<String> = std::env::args().collect();
    match words.get(1).map(String::as_str) {
        Some("host") => host(),
        Some("server") => server(),
        _ => compare(),
    }
}

fn compare() {
    let observer = env!("CARGO_BIN_EXE_observer");
    let run = |backend: &'static str| vec![observer, "run", "--quiet", "--backend", backend, "--"];
    let calls = "read,write,readv,writev,sendto,recvfrom,sendmsg,recvmsg";
    let trace = format!("trace={calls}");
    // The relay stands before the server; all others before the host.
    let relay = format!("{RELAY}={observer}");
    let ways: [(&str, Vec<&str>); 5] = [
        ("unobserved", vec![]),
        ("eBPF", run("ebpf")),
        ("ptrace", run("ptrace")),
        ("relay", vec!["env", &relay]),
        (
            "strace -f",
            vec!["strace", "-f", "-o", "/dev/null", "-e", &trace],
        ),
    ];
    let mut line = format!("{:<12}", "");
    for (size, _) in SIZES {
        let _ = write!(line, "{:>22}", format!("{size} B"));
    }
    println!("{line}");
    let mut alone = None;
    for (name, words) in ways {
        let Some(times) = best(&words) else {
            println!("skipped: {name} does not run here");
            continue;
        };
        let mut line = format!("{name:<12}");
        let base = *alone.get_or_insert(times);
        for (time, base) in times.iter().zip(base) {
            let ratio = time.as_secs_f64() / base.as_secs_f64();
            let micros = time.as_secs_f64() * 1e6;
            let _ = write!(line, "{:>22}", format!("{micros:.1} µs ({ratio:.2} x)"));
        }
        println!("{line}");
    }
}

/// The best time of each size, where the host can be started so.
fn best(before: &[&str]) -> Option<[Duration; SIZES.len()]> {
    let mut best = [Duration::MAX; SIZES.len()];
    for _ in 0..RUNS {
        let own = std::env::current_exe().unwrap();
        let own = own.to_str().unwrap();
        let words: Vec<&str> = before.iter().copied().chain([own, "host"]).collect();
        let output = Command::new(words[0])
            .args(&words[1..])
            .stderr(Stdio::null())
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        let text = String::from_utf8(output.stdout).unwrap();
        let times = text.split_whitespace().map(|time| time.parse().unwrap());
        for (best, nanos) in best.iter_mut().zip(times) {
            *best = (*best).min(Duration::from_nanos(nanos));
        }
    }
    Some(best)
}

/// Sends messages to a server that sends them back, and prints what a round trip takes.
fn host() {
    let own = std::env::current_exe().unwrap();
    let mut server = match std::env::var_os(RELAY) {
        Some(observer) => {
            let mut relay = Command::new(observer);
            relay.args(["relay", "--log", "/dev/null", "--"]).arg(own);
            relay
        }
        None => Command::new(own),
    };
    let mut server = server
        .arg("server")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut to, mut from) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
    let mut line = String::new();
    for (size, rounds) in SIZES {
        let message = message(size);
        let mut answer = vec![0; size];
        let start = Instant::now();
        for _ in 0..rounds {
            to.write_all(&message).unwrap();
            from.read_exact(&mut answer).unwrap();
        }
        let _ = write!(line, "{} ", (start.elapsed() / rounds).as_nanos());
    }
    println!("{line}");
    drop(to);
    server.wait().unwrap();
}

/// A request of so many bytes: a stream that shows no JSON-RPC would be given up on.
fn message(size: usize) -> Vec<u8> {
    let head = br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"text":""#;
    let tail = b"\"}}\n";
    let filler = vec![b'x'; size - head.len() - tail.len()];
    [&head[..], &filler, tail].concat()
}

/// Reads lines, and sends each back.
fn server() {
    let (mut stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
    let (mut line, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    while let Ok(read @ 1..) = stdin.read(&mut buffer) {
        line.extend_from_slice(&buffer[..read]);
        if line.ends_with(b"\n") {
            stdout.write_all(&line).unwrap();
            stdout.flush().unwrap();
            line.clear();
        }
    }
}
