//! Signals reach the server exactly once, whoever they were sent to.

use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use super::{Bench, End, Running, alike, python};

/// Says each signal that it gets, and ends at the end of its input.
const TELLER: &str = "
import os, signal, sys
names = 'HUP INT QUIT TERM USR1 USR2 ALRM WINCH CONT'.split()
def told(number, frame): os.write(1, (signal.Signals(number).name + '\\n').encode())
for name in names: signal.signal(getattr(signal, 'SIG' + name), told)
os.write(1, b'ready\\n')
while os.read(0, 4096): pass
";

const ALL: [Signal; 9] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGCONT,
    Signal::SIGWINCH,
];

/// What the server says when each signal is sent, one after the other, three times.
fn told(bench: &Bench, send: impl Fn(&Running, Signal)) -> Vec<String> {
    let mut running = bench.start(&python(TELLER));
    assert_eq!(running.line(), "ready");
    let mut told = Vec::new();
    for signal in [ALL, ALL, ALL].concat() {
        send(&running, signal);
        told.push(running.line());
    }
    running.close_stdin();
    // A second copy of any of them would stand here.
    told.extend(running.rest().lines().map(str::to_owned));
    assert_eq!(running.wait(), End::Code(0));
    told
}

fn expected() -> Vec<String> {
    [ALL, ALL, ALL]
        .concat()
        .iter()
        .map(|signal| signal.as_str().to_owned())
        .collect()
}

#[test]
fn a_signal_to_the_process_reaches_the_server_once() {
    alike(&expected(), |bench| {
        told(bench, |running, signal| {
            kill(running.pid(), signal).unwrap();
        })
    });
}

#[test]
fn a_signal_to_the_group_reaches_the_server_once() {
    alike(&expected(), |bench| {
        told(bench, |running, signal| {
            killpg(running.pid(), signal).unwrap();
        })
    });
}

#[test]
fn signals_at_the_very_beginning_are_not_lost() {
    for _ in 0..20 {
        alike(&End::Signal(15), |bench| {
            let mut running = bench.start(&["sleep", "600"]);
            kill(running.pid(), Signal::SIGTERM).unwrap();
            running.wait()
        });
    }
}

#[test]
fn a_signal_that_ends_the_server_is_what_the_host_sees() {
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGQUIT,
        Signal::SIGUSR1,
    ] {
        alike(&End::Signal(signal as i32), |bench| {
            let mut running = bench.start(&["sh", "-c", "ulimit -c 0; echo ready; exec sleep 600"]);
            assert_eq!(running.line(), "ready");
            kill(running.pid(), signal).unwrap();
            running.wait()
        });
    }
}

#[test]
fn a_signal_that_the_host_ignored_stays_ignored() {
    let script = "trap '' INT; exec \"$@\"";
    alike(&End::Signal(15), |bench| {
        let teller = bench.command(&["sh", "-c", "echo ready; exec sleep 600"]);
        let words = std::iter::once(teller.get_program()).chain(teller.get_args());
        let mut command = std::process::Command::new("sh");
        command
            .args(["-c", script, "sh"])
            .args(words)
            .current_dir(bench.folder.path());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut running = Running::start(&mut command);
        assert_eq!(running.line(), "ready");
        kill(running.pid(), Signal::SIGINT).unwrap();
        kill(running.pid(), Signal::SIGTERM).unwrap();
        running.wait()
    });
}

#[test]
fn a_stop_stops_what_the_host_waits_for_and_a_continue_continues_it() {
    for to_group in [false, true] {
        alike(&("on".to_owned(), End::Code(0)), |bench| {
            let mut running = bench.start(&["sh", "-c", "echo ready; read line; echo $line"]);
            assert_eq!(running.line(), "ready");
            let send = |signal| match to_group {
                true => killpg(running.pid(), signal),
                false => kill(running.pid(), signal),
            };
            for _ in 0..2 {
                send(Signal::SIGTSTP).unwrap();
                let stopped = waitpid(running.pid(), Some(WaitPidFlag::WUNTRACED)).unwrap();
                assert!(matches!(stopped, WaitStatus::Stopped(..)), "{stopped:?}");
                send(Signal::SIGCONT).unwrap();
                let going = waitpid(running.pid(), Some(WaitPidFlag::WCONTINUED)).unwrap();
                assert!(matches!(going, WaitStatus::Continued(_)), "{going:?}");
            }
            std::io::Write::write_all(running.child.stdin.as_mut().unwrap(), b"on\n").unwrap();
            (running.line(), running.wait())
        });
    }
}
