//! Ends of file, closed pipes, and the exit status, as they are without the relay.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::process::Stdio;

use nix::sys::stat::Mode;

use super::{Bench, End, alike, is_alive, python, wait_for};

#[test]
fn the_exit_status_is_the_servers() {
    for code in [0, 1, 7, 125, 255] {
        let script = format!("exit {code}");
        alike(&End::Code(code), |bench| {
            bench.start(&["sh", "-c", &script]).wait()
        });
    }
}

#[test]
fn the_signal_that_ends_the_server_ends_the_relay() {
    for (name, number) in [
        ("TERM", 15),
        ("KILL", 9),
        ("SEGV", 11),
        ("HUP", 1),
        ("PIPE", 13),
    ] {
        let script = format!("ulimit -c 0; kill -{name} $$");
        alike(&End::Signal(number), |bench| {
            bench.start(&["sh", "-c", &script]).wait()
        });
    }
}

#[test]
fn a_command_that_cannot_be_started_is_told_as_env_tells_it() {
    let bench = Bench::relayed();
    for (program, code) in [
        ("/no/such/program", 127),
        ("no-such-program-anywhere", 127),
        ("/dev/null", 126),
    ] {
        let output = bench.command(&[program]).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{program}");
        assert_eq!(output.stdout, b"");
        assert!(
            String::from_utf8(output.stderr)
                .unwrap()
                .starts_with(&format!("observer: cannot start {program}: "))
        );
    }
    let usage = bench
        .command_with(&["--no-such-option"], &["true"])
        .output()
        .unwrap();
    assert_eq!((usage.status.code(), usage.stdout), (Some(125), vec![]));
}

#[test]
fn the_end_of_the_hosts_input_does_not_end_the_servers_output() {
    alike(
        &("line\nafter the end\n".to_owned(), End::Code(3)),
        |bench| {
            let mut running = bench.start(&["sh", "-c", "cat; echo after the end; exit 3"]);
            running
                .child
                .stdin
                .take()
                .unwrap()
                .write_all(b"line\n")
                .unwrap();
            (running.rest(), running.wait())
        },
    );
}

#[test]
fn a_server_that_closes_its_stdout_lives_on() {
    alike(&(String::new(), End::Code(4)), |bench| {
        let mut running = bench.start(&[
            "sh",
            "-c",
            "exec 1>&-; read line; test \"$line\" = on && exit 4",
        ]);
        let rest = running.rest();
        running
            .child
            .stdin
            .take()
            .unwrap()
            .write_all(b"on\n")
            .unwrap();
        (rest, running.wait())
    });
}

#[test]
fn a_server_that_closes_its_stdin_refuses_what_the_host_writes() {
    alike(&(ErrorKind::BrokenPipe, End::Code(5)), |bench| {
        let release = bench.path("release");
        nix::unistd::mkfifo(&release, Mode::S_IRWXU).unwrap();
        let mut running = bench.start(&[
            "sh",
            "-c",
            "exec 0<&-; echo closed; read line < release; exit 5",
        ]);
        assert_eq!(running.line(), "closed");
        let stdin = running.child.stdin.as_mut().unwrap();
        let refused = wait_for(|| stdin.write(b"anybody there?\n").err());
        fs::write(&release, "go\n").unwrap();
        (refused.kind(), running.wait())
    });
}

#[test]
fn a_host_that_closes_its_reading_end_is_noticed_by_a_server_that_writes() {
    alike(&End::Signal(13), |bench| {
        close_after(bench, &["yes"], "y\n")
    });
}

#[test]
fn a_host_that_closes_its_reading_end_is_noticed_by_a_server_that_waits() {
    // It never writes: it asks whether anybody reads.
    let script = "import select\np=select.poll(); p.register(1, 0)\nprint('waiting')\np.poll(); raise SystemExit(6)";
    alike(&End::Code(6), |bench| {
        close_after(bench, &python(script), "waiting\n")
    });
}

/// A host that closes its reading end when it has read `words`: how the server ends.
fn close_after(bench: &Bench, server: &[&str], words: &str) -> End {
    let mut command = bench.command(server);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut read = vec![0; words.len()];
    stdout.read_exact(&mut read).unwrap();
    assert_eq!(read, words.as_bytes());
    drop(stdout);
    End::of(child.wait().unwrap())
}

#[test]
fn grandchildren_that_hold_stdout_neither_delay_the_exit_nor_lose_their_words() {
    alike(&(End::Code(8), "early\nlate\n".to_owned()), |bench| {
        let release = bench.path("release");
        nix::unistd::mkfifo(&release, Mode::S_IRWXU).unwrap();
        let script = "(read line < release; echo late) & echo early; exit 8";
        let mut running = bench.start(&["sh", "-c", script]);
        let end = running.wait();
        fs::write(&release, "go\n").unwrap();
        (end, running.rest())
    });
}

#[test]
fn all_that_the_server_wrote_can_be_read_when_its_exit_is_seen() {
    // As a host does that waits for the exit first, and takes what is in the pipe then.
    alike(&vec![b'x'; 60_000], |bench| {
        let script = "head -c 60000 /dev/zero | tr '\\0' x";
        let mut running = bench.start(&["sh", "-c", script]);
        running.wait();
        let mut all = Vec::new();
        running.stdout.read_to_end(&mut all).unwrap();
        all
    });
}

#[test]
fn a_server_whose_host_died_sees_its_parent_die() {
    if !std::path::Path::new("/proc/self/stat").exists() {
        println!("skipped: there is no /proc here");
        return;
    }
    // Servers that do not end at the end of file may watch for this instead.
    let server = "import os,time\nparent=os.getppid()\nopen('began','w').write(str(os.getpid()))\nwhile os.getppid()==parent: time.sleep(.01)\nopen('orphaned','w').write('x')";
    alike(&true, |bench| {
        let server = bench.command(&python(server));
        let words = std::iter::once(server.get_program()).chain(server.get_args());
        let words: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
        // The host: holds the server's stdin open, and dies by `kill -9`.
        let host = "import subprocess,sys,time\np=subprocess.Popen(sys.argv[1:],stdin=subprocess.PIPE)\ntime.sleep(600)";
        let mut command = std::process::Command::new("python3");
        command
            .args(["-c", host])
            .args(words)
            .current_dir(bench.folder.path());
        let mut host = command.stdin(Stdio::null()).spawn().unwrap();
        let began = || {
            fs::read_to_string(bench.path("began"))
                .ok()
                .filter(|pid| !pid.is_empty())
        };
        let server: u32 = wait_for(began).parse().unwrap();
        host.kill().unwrap();
        host.wait().unwrap();
        wait_for(|| bench.path("orphaned").exists().then_some(()));
        wait_for(|| (!is_alive(server)).then_some(true))
    });
}
