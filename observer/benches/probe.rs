//! What the kernel probe costs those that it watches, and those that it does not.
//!
//! `cargo bench --bench probe`, as root, on two cores or more. Prints times and ratios; asserts
//! nothing, because a machine that is busy would fail for no fault of the code. Host and server are
//! put on cores: where the scheduler puts them makes more of a difference than any probe. The cases
//! take turns, and the best turn of each counts.

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
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use nix::sched::{CpuSet, sched_setaffinity};
    use nix::unistd::Pid as Own;
    use observer::capture::Pid;
    use observer::capture::ebpf::{Options, Probe, Scope};

    const MESSAGE: usize = 2048;
    const ROUNDS: u32 = 10_000;
    const REPEATS: usize = 3;
    const TURNS: usize = 5;

    /// One getppid; a round trip on one core; one between two.
    type Times = [Duration; 3];

    pub(super) fn main() {
        let words: Vec<String> = std::env::args().collect();
        match words.get(1).map(String::as_str) {
            Some("echo") => echo(words[2].parse().unwrap()),
            Some("host") => host(),
            _ => compare(),
        }
    }

    fn compare() {
        let mut best = [[Duration::MAX; 3]; 3];
        for _ in 0..TURNS {
            for (case, best) in best.iter_mut().enumerate() {
                let probe = (case > 0).then(|| Probe::load(&Options::new(Scope::Pids(Vec::new()))));
                let probe = match probe.transpose() {
                    Ok(probe) => probe.map(|probe| (probe, case == 2)),
                    Err(error) => return println!("skipped: {error}"),
                };
                for (best, time) in best.iter_mut().zip(measure(probe)) {
                    *best = (*best).min(time);
                }
            }
        }
        println!(
            "{:<20}{:>20}{:>22}{:>22}",
            "", "getppid", "2 kB, one core", "2 kB, two cores"
        );
        let names = ["no probe", "probe, not watched", "probe, watched"];
        for (name, times) in names.iter().zip(&best) {
            print(name, times, &best[0]);
        }
    }

    fn print(name: &str, times: &Times, alone: &Times) {
        let cell = |i: usize| {
            let ratio = times[i].as_secs_f64() / alone[i].as_secs_f64();
            format!("{} ns ({ratio:.2} x)", times[i].as_nanos())
        };
        println!("{name:<20}{:>20}{:>22}{:>22}", cell(0), cell(1), cell(2));
    }

    fn measure(probe: Option<(Probe, bool)>) -> Times {
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
        [0; 3].map(|_| Duration::from_nanos(nanos.next().unwrap()))
    }

    /// The watched side: measures, and prints what it found.
    fn host() {
        std::io::stdin().read_exact(&mut [0]).unwrap();
        stay_on(0);
        let getppid = best(|| {
            std::hint::black_box(std::os::unix::process::parent_id());
        });
        let times = [getppid, round_trips(0), round_trips(1)];
        let nanos = times.map(|time| time.as_nanos().to_string());
        println!("{}", nanos.join(" "));
    }

    fn stay_on(core: usize) {
        let mut cores = CpuSet::new();
        cores.set(core).unwrap();
        sched_setaffinity(Own::from_raw(0), &cores).unwrap();
    }

    /// With a server on that core.
    fn round_trips(core: usize) -> Duration {
        let mut server = Command::new(std::env::current_exe().unwrap())
            .args(["echo", &core.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut to, mut from) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
        let (message, mut answer) = (vec![b'm'; MESSAGE], vec![0; MESSAGE]);
        let time = best(|| {
            to.write_all(&message).unwrap();
            from.read_exact(&mut answer).unwrap();
        });
        drop(to);
        server.wait().unwrap();
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
    fn echo(core: usize) {
        stay_on(core);
        let (mut stdin, mut stdout) = (std::io::stdin().lock(), std::io::stdout().lock());
        let mut message = vec![0; MESSAGE];
        while stdin.read_exact(&mut message).is_ok() {
            stdout.write_all(&message).unwrap();
            stdout.flush().unwrap();
        }
    }
}
