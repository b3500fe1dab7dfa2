//! What is beyond the wire: signals, keys, the network.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::pty::{OpenptyResult, openpty};
use observer::capture::{CaptureEvent, InterruptKind, Pid};

use crate::child::{say, wait};
use crate::watch::{Seen, Watch};

/// The children of this file.
pub(crate) fn single(step: &str) {
    match step {
        "waits" => {
            say("ready");
            wait();
        }
        "terminal" => terminal(false),
        "raw-terminal" => terminal(true),
        "network" => network(),
        other => panic!("no such child: {other}"),
    }
}

/// Opens a terminal as its controlling one, types into it, and reads what was typed.
fn terminal(raw: bool) {
    let OpenptyResult { master, slave } = openpty(None, None).unwrap();
    nix::unistd::setsid().unwrap();
    // SAFETY: the descriptor is a terminal's, and 0 asks for no force.
    let taken = unsafe { libc::ioctl(slave.as_raw_fd(), libc::TIOCSCTTY, 0) };
    assert_eq!(taken, 0, "{}", std::io::Error::last_os_error());
    if raw {
        type_raw(master, slave);
    } else {
        // SAFETY: the handler stores a flag and does nothing else.
        unsafe { libc::signal(libc::SIGINT, interrupted as *const () as libc::sighandler_t) };
        let mut master = std::fs::File::from(master);
        master.write_all(b"\x03").unwrap();
        // The terminal handles what was typed in its own time.
        while !INTERRUPTED.load(Ordering::Relaxed) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        say("typed");
        wait();
    }
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn interrupted(_signal: i32) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

fn type_raw(master: OwnedFd, slave: OwnedFd) {
    let mut settings = nix::sys::termios::tcgetattr(&slave).unwrap();
    nix::sys::termios::cfmakeraw(&mut settings);
    nix::sys::termios::tcsetattr(&slave, nix::sys::termios::SetArg::TCSANOW, &settings).unwrap();
    let (mut master, mut slave) = (std::fs::File::from(master), std::fs::File::from(slave));
    for keys in [
        b"hello".as_slice(),
        b"\x1b[A",
        b"\x1b[99;5u",
        b"\x03",
        b"\x1b",
    ] {
        master.write_all(keys).unwrap();
        let mut buffer = [0; 64];
        assert_eq!(slave.read(&mut buffer).unwrap(), keys.len());
    }
    say("typed");
    wait();
}

fn network() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    say(listener.local_addr().unwrap());
    let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    stream.write_all(&[0; 1234]).unwrap();
    let receiver = UdpSocket::bind("[::1]:0").unwrap();
    say(receiver.local_addr().unwrap());
    let sender = UdpSocket::bind("[::1]:0").unwrap();
    sender
        .send_to(&[0; 567], receiver.local_addr().unwrap())
        .unwrap();
}

/// A child of this file that has done what it does, and waits; and its pid.
fn ready(what: &str) -> Option<(Watch, Pid)> {
    let mut watch = Watch::start(what)?;
    watch.step();
    watch.line();
    let child = watch.pid();
    Some((watch, child))
}

fn interrupts(seen: &Seen) -> Vec<(Pid, InterruptKind, Option<Pid>)> {
    seen.select(|event| match event {
        CaptureEvent::Interrupt { pid, kind, sender } => Some((*pid, *kind, *sender)),
        _ => None,
    })
}

#[test]
fn a_signal_is_told_with_its_sender() {
    let Some((watch, child)) = ready("waits") else {
        return;
    };
    let target = nix::unistd::Pid::from_raw(child.0.cast_signed());
    nix::sys::signal::kill(target, nix::sys::signal::Signal::SIGTERM).unwrap();
    let seen = watch.finish();
    let sender = Some(Pid(std::process::id()));
    assert_eq!(interrupts(&seen), [(child, InterruptKind::Sigterm, sender)]);
}

#[test]
fn a_signal_from_the_terminal_has_no_sender() {
    let Some((mut watch, child)) = ready("terminal") else {
        return;
    };
    watch.step();
    let seen = watch.finish();
    // When the child ends, so does its terminal, and the kernel hangs up.
    assert_eq!(interrupts(&seen)[0], (child, InterruptKind::Sigint, None));
}

#[test]
fn escape_and_control_c_are_told_and_nothing_else_that_is_typed() {
    let Some((mut watch, child)) = ready("raw-terminal") else {
        return;
    };
    watch.step();
    let seen = watch.finish();
    let keys: Vec<_> = interrupts(&seen)
        .into_iter()
        .filter(|(_, kind, _)| matches!(kind, InterruptKind::KeyEsc | InterruptKind::KeyCtrlC))
        .collect();
    assert_eq!(
        keys,
        [
            (child, InterruptKind::KeyCtrlC, None),
            (child, InterruptKind::KeyCtrlC, None),
            (child, InterruptKind::KeyEsc, None),
        ]
    );
    let typed = b"hello";
    let leaked = seen.select(|event| match event {
        CaptureEvent::Chunk { bytes, .. } => bytes
            .windows(typed.len())
            .any(|window| window == typed)
            .then_some(()),
        _ => None,
    });
    assert!(leaked.is_empty(), "what was typed stays in the capture");
}

#[test]
fn what_goes_to_the_network_is_told_by_size_and_peer() {
    let Some(mut watch) = Watch::start("network") else {
        return;
    };
    watch.step();
    let (tcp, udp) = (watch.line().parse().unwrap(), watch.line().parse().unwrap());
    let child = watch.pid();
    let seen = watch.finish();
    let sent = seen.select(|event| match event {
        CaptureEvent::NetSend { pid, bytes, peer } => Some((*pid, *bytes, *peer)),
        _ => None,
    });
    assert_eq!(sent, [(child, 1234, Some(tcp)), (child, 567, Some(udp))]);
}
