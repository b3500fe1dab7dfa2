//! What the kernel probe costs those that it watches, and those that it does not.
//!
//! `cargo bench --bench probe`, as root. Prints times and ratios; asserts nothing, because a
//! machine that is busy would fail for no fault of the code.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a bench has nobody to report an error to"
)]

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("skipped: the kernel probe needs Linux");
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{Read, Write};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use observer::capture::Pid;
    use observer::capture::ebpf::{Options, Probe, Scope};

    const MESSAGE: usize = 2048;
    const ROUNDS: u32 = 20_000;
    const REPEATS: usize = 7;

    pub(super) fn main() {
        if std::env::args().any(|argument| argument == "echo") {
            return echo();
        }
        if std::env::args().any(|argument| argument == "host") {
            return host();
        }
        let alone = measure(None);
        println!("{:<24}{:>14}{:>18}", "", "getppid", "2 kB round trip");
        print("no probe", &alone, &alone);
        for (name, watched) in [("probe, not watched", false), ("probe, watched", true)] {
            match Probe::load(&Options::new(Scope::Pids(Vec::new()))) {
                Ok(probe) => print(name, &measure(Some((probe, watched))), &alone),
                Err(error) => println!("skipped: {error}"),
            }
        }
    }

    fn print(name: &str, times: &[Duration; 2], alone: &[Duration; 2]) {
        let cell = |i: usize| {
            let ratio = times[i].as_secs_f64() / alone[i].as_secs_f64();
            format!("{} ns ({ratio:.2} x)", times[i].as_nanos())
        };
        println!("{name:<24}{:>18}{:>22}", cell(0), cell(1));
    }

    /// The times of one getppid and of one round trip: the best of several repeats.
    fn measure(probe: Option<(Probe, bool)>) -> [Duration; 2] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut host = command
            .arg("host")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the bench starts itself");
        let running = probe.map(|(mut probe, watched)| {
            if watched {
                probe.watch_pid(Pid(host.id())).unwrap();
            }
            let handle = probe.handle();
            let (sender, mut receiver) = tokio::sync::mpsc::channel(64);
            let drain = std::thread::spawn(move || while receiver.blocking_recv().is_some() {});
            let run = std::thread::spawn(move || probe.run(sender).unwrap());
            (handle, run, drain)
        });
        host.stdin.take().unwrap().write_all(b"\n").unwrap();
        let mut line = String::new();
        host.stdout
            .take()
            .unwrap()
            .read_to_string(&mut line)
            .unwrap();
        host.wait().unwrap();
        if let Some((handle, run, drain)) = running {
            handle.stop();
            let loss = run.join().unwrap();
            assert!(
                loss.complete(),
                "the bench must not lose anything: {loss:?}"
            );
            drain.join().unwrap();
        }
        let mut nanos = line
            .split_whitespace()
            .map(|number| number.parse().unwrap());
        [0; 2].map(|_| Duration::from_nanos(nanos.next().unwrap()))
    }

    /// The watched side: measures, and prints what it found.
    fn host() {
        std::io::stdin().read_exact(&mut [0]).unwrap();
        let mut server = Command::new(std::env::current_exe().unwrap())
            .arg("echo")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let getppid = best(|| {
            std::hint::black_box(std::os::unix::process::parent_id());
        });
        let round = round_trips(&mut server);
        drop(server.stdin.take());
        server.wait().unwrap();
        println!("{} {}", getppid.as_nanos(), round.as_nanos());
    }

    fn round_trips(server: &mut Child) -> Duration {
        let (mut to, mut from) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
        let (message, mut answer) = (vec![b'm'; MESSAGE], vec![0; MESSAGE]);
        let time = best(|| {
            to.write_all(&message).unwrap();
            from.read_exact(&mut answer).unwrap();
        });
        server.stdin = Some(to);
        time
    }

    fn best(mut step: impl FnMut()) -> Duration {
        let repeats = (0..REPEATS).map(|_| {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                step();
            }
            start.elapsed() / ROUNDS
        });
        repeats.min().unwrap()
    }

    /// The other side of the round trip.
    fn echo() {
        let (mut stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
        let mut message = vec![0; MESSAGE];
        while stdin.read_exact(&mut message).is_ok() {
            stdout.write_all(&message).unwrap();
            stdout.flush().unwrap();
        }
    }
}
