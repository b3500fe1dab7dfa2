//! What the relay costs a host and its server: round trips with and without it.
//!
//! `cargo bench --bench relay`, as any user. Prints times and ratios; asserts nothing, because a
//! machine that is busy would fail for no fault of the code. Both ways take turns, so that what
//! disturbs one disturbs the other.

#![expect(
    clippy::unwrap_used,
    reason = "a bench has nobody to report an error to"
)]

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Sizes of a request, and of its answer, in bytes; and how many are sent one after the other.
const SIZES: [(usize, u32); 4] = [(200, 500), (2_000, 500), (200_000, 50), (1_000_000, 20)];

/// Of so many measurements the best counts: it is the one that was disturbed least.
const REPEATS: usize = 15;

/// Ids have all the same length from here on.
const FIRST_ID: u32 = 10_000_000;

fn main() {
    if std::env::args().any(|argument| argument == "server") {
        return serve();
    }
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl");
    let relay = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_observer"));
        command.args(["relay", "--log"]).arg(&log).arg("--");
        command.arg(std::env::current_exe().unwrap());
        command
    };
    let direct = || Command::new(std::env::current_exe().unwrap());
    println!(
        "{:<16}{:>12}{:>12}{:>10}",
        "round trip of", "alone", "relay", "ratio"
    );
    for (size, rounds) in SIZES {
        let mut ways = [Session::start(direct()), Session::start(relay())];
        let best = best(|| ways.each_mut().map(|way| way.round_trips(size, rounds)));
        print(&format!("{size} B"), best);
        ways.map(Session::end);
    }
    let first = best(|| [direct(), relay()].map(first_answer));
    print("first answer", first);
}

fn print(what: &str, [alone, relayed]: [Duration; 2]) {
    let micros = |time: Duration| format!("{:.1} µs", time.as_secs_f64() * 1e6);
    let ratio = relayed.as_secs_f64() / alone.as_secs_f64();
    println!(
        "{what:<16}{:>12}{:>12}{:>8.2} x",
        micros(alone),
        micros(relayed),
        ratio
    );
}

fn best(mut measure: impl FnMut() -> [Duration; 2]) -> [Duration; 2] {
    measure();
    (0..REPEATS)
        .map(|_| measure())
        .reduce(|[a, b], [c, d]| [a.min(c), b.min(d)])
        .unwrap()
}

/// From the start of the server to its answer to a small request.
fn first_answer(command: Command) -> Duration {
    let began = Instant::now();
    let mut session = Session::start(command);
    session.round_trips(200, 1);
    let took = began.elapsed();
    session.end();
    took
}

/// A host's side of a server.
struct Session {
    child: Child,
    stdout: BufReader<ChildStdout>,
    id: u32,
    line: Vec<u8>,
}

impl Session {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .arg("server")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::with_capacity(64 << 10, child.stdout.take().unwrap());
        Self {
            child,
            stdout,
            id: FIRST_ID,
            line: Vec::new(),
        }
    }

    /// How long one takes.
    fn round_trips(&mut self, size: usize, rounds: u32) -> Duration {
        let stdin = self.child.stdin.as_mut().unwrap();
        let requests: Vec<_> = (0..rounds)
            .map(|round| message(self.id + round, r#""method":"ping","params":"#, size))
            .collect();
        self.id += rounds;
        let began = Instant::now();
        for request in &requests {
            stdin.write_all(request).unwrap();
            self.line.clear();
            self.stdout.read_until(b'\n', &mut self.line).unwrap();
        }
        began.elapsed() / rounds
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

/// A line of this size.
fn message(id: u32, member: &str, size: usize) -> Vec<u8> {
    let mut line = format!(r#"{{"jsonrpc":"2.0","id":{id},{member}{{"x":""#).into_bytes();
    let end = b"\"}}\n";
    line.resize(size - end.len(), b'x');
    line.extend(end);
    line
}

/// Answers each request with as many bytes.
fn serve() {
    let mut stdin = BufReader::with_capacity(64 << 10, io::stdin());
    let mut line = Vec::new();
    while stdin.read_until(b'\n', &mut line).unwrap() > 0 {
        let id = line
            .iter()
            .copied()
            .filter(u8::is_ascii_digit)
            .skip(2)
            .take(8);
        let id = id.fold(0, |id, digit| 10 * id + u32::from(digit - b'0'));
        let answer = message(id, r#""result":"#, line.len());
        io::stdout().write_all(&answer).unwrap();
        io::stdout().flush().unwrap();
        line.clear();
    }
}
