//! The role `workout`: what a tracer could spoil, and what it must look like to the program.
//!
//! Prints a line for each, the same every time.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::thread;

use crate::moving::{channel, check};

pub(crate) fn play() -> i32 {
    println!("real-time signals came as {:?}", queued_signals());
    println!("a child that stops: {:?}", stopped_child());
    println!("round trips of eight threads: {}", round_trips());
    println!("exec from another thread: {:#x}", exec_from_a_thread());
    println!("killed with all its threads: {:#x}", killed_threads());
    println!("a read that a timer interrupts: {}", interrupted_read(0));
    println!(
        "a read that goes on: {}",
        interrupted_read(libc::SA_RESTART)
    );
    let spawned = Command::new("sh").args(["-c", "exit 4"]).status().unwrap();
    println!("a program: {spawned}");
    println!("ended by a signal of its own: {:#x}", own_signals());
    0
}

static VALUES: [AtomicI32; 5] = [const { AtomicI32::new(-1) }; 5];
static NEXT: AtomicUsize = AtomicUsize::new(0);

extern "C" fn note(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo_t, of a signal that sigqueue sent.
    let value = unsafe { (*info).si_value().sival_ptr.addr() };
    let at = NEXT.fetch_add(1, Ordering::SeqCst);
    VALUES[at].store(value as i32, Ordering::SeqCst);
}

fn handle(signal: i32, handler: usize, flags: i32) {
    // SAFETY: all zeros are a valid sigaction, and the handlers touch atomics alone.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        check(libc::sigaction(signal, &raw const action, ptr::null_mut()) as isize);
    }
}

/// A signal that nix and the standard library have no name for, five times, each with its value.
fn queued_signals() -> Vec<i32> {
    let signal = libc::SIGRTMIN() + 3;
    handle(signal, note as *const () as usize, libc::SA_SIGINFO);
    for value in 0..5_usize {
        let value = libc::sigval {
            sival_ptr: ptr::without_provenance_mut(value * 7),
        };
        // SAFETY: it takes numbers.
        check(unsafe { libc::sigqueue(libc::getpid(), signal, value) } as isize);
    }
    VALUES
        .iter()
        .map(|value| value.load(Ordering::SeqCst))
        .collect()
}

fn fork(child: impl FnOnce() -> i32) -> i32 {
    // SAFETY: this process has one thread now, but for those that wait in a system call.
    match check(unsafe { libc::fork() } as isize) {
        0 => {
            let status = child();
            // SAFETY: it does not return; what the parent has not printed yet is not printed twice.
            unsafe { libc::_exit(status) }
        }
        pid => pid as i32,
    }
}

fn wait(pid: i32, options: i32) -> i32 {
    let mut status = 0;
    // SAFETY: `status` is valid for writes.
    check(unsafe { libc::waitpid(pid, &raw mut status, options) } as isize);
    status
}

fn kill(pid: i32, signal: i32) {
    // SAFETY: two numbers.
    check(unsafe { libc::kill(pid, signal) } as isize);
}

/// Its parent learns of each step, as a shell with job control does.
fn stopped_child() -> [bool; 4] {
    let (reader, writer) = channel("pipe");
    let child = fork(|| {
        // SAFETY: a number.
        unsafe { libc::raise(libc::SIGSTOP) };
        // Until its parent has seen that it was resumed.
        5 * i32::from(byte(reader)[0])
    });
    let stopped = wait(child, libc::WUNTRACED);
    // What comes while it is stopped waits for it.
    kill(child, libc::SIGURG);
    kill(child, libc::SIGCONT);
    let resumed = wait(child, libc::WCONTINUED);
    send(writer, 1);
    let ended = wait(child, 0);
    [
        libc::WIFSTOPPED(stopped),
        libc::WSTOPSIG(stopped) == libc::SIGSTOP,
        libc::WIFCONTINUED(resumed),
        libc::WIFEXITED(ended) && libc::WEXITSTATUS(ended) == 5,
    ]
}

fn byte(fd: i32) -> [u8; 1] {
    let mut byte = [0];
    // SAFETY: the buffer has one byte.
    check(unsafe { libc::read(fd, byte.as_mut_ptr().cast(), 1) });
    byte
}

fn send(fd: i32, byte: u8) {
    // SAFETY: the buffer has one byte.
    check(unsafe { libc::write(fd, [byte].as_ptr().cast(), 1) });
}

fn round_trips() -> u64 {
    let pair = || {
        let (there, back) = (channel("pipe"), channel("socket"));
        let echo = thread::spawn(move || (0..100).for_each(|_| send(back.1, byte(there.0)[0])));
        let ask = thread::spawn(move || {
            let trip = |n: u8| {
                send(there.1, n);
                u64::from(byte(back.0)[0])
            };
            (0..100).map(trip).sum::<u64>()
        });
        (echo, ask)
    };
    let pairs: Vec<_> = (0..4).map(|_| pair()).collect();
    let sum = pairs.into_iter().map(|(echo, ask)| {
        echo.join().unwrap();
        ask.join().unwrap()
    });
    sum.sum()
}

/// Threads that wait for what never comes.
fn waiting_threads() {
    for _ in 0..4 {
        thread::spawn(|| byte(channel("pipe").0));
    }
}

fn exec_from_a_thread() -> i32 {
    let child = fork(|| {
        waiting_threads();
        let exec = || Command::new("sh").args(["-c", "exit 6"]).exec();
        let error = thread::spawn(exec).join();
        panic!("{error:?}");
    });
    wait(child, 0)
}

fn killed_threads() -> i32 {
    let (ready, tell) = channel("pipe");
    let child = fork(|| {
        waiting_threads();
        send(tell, 1);
        i32::from(byte(channel("pipe").0)[0])
    });
    byte(ready);
    kill(child, libc::SIGKILL);
    wait(child, 0)
}

/// Where the timer's handler puts a byte, if anywhere.
static FEED: AtomicI32 = AtomicI32::new(-1);

extern "C" fn feed(_: libc::c_int) {
    let fd = FEED.load(Ordering::SeqCst);
    if fd >= 0 {
        // SAFETY: the buffer has one byte, and a handler may make this call.
        unsafe { libc::write(fd, [1_u8].as_ptr().cast(), 1) };
    }
}

/// Reads while a timer goes off, until it does: a read that goes on gets what the handler wrote.
fn interrupted_read(flags: i32) -> &'static str {
    handle(libc::SIGALRM, feed as *const () as usize, flags);
    let (reader, writer) = channel("pipe");
    let goes_on = flags & libc::SA_RESTART != 0;
    FEED.store(if goes_on { writer } else { -1 }, Ordering::SeqCst);
    let every = libc::timeval {
        tv_sec: 0,
        tv_usec: 20_000,
    };
    let (timer, never) = (
        libc::itimerval {
            it_interval: every,
            it_value: every,
        },
        // SAFETY: all zeros are a timer that is off.
        unsafe { std::mem::zeroed::<libc::itimerval>() },
    );
    let set = |timer: &libc::itimerval| {
        // SAFETY: the timer is valid.
        check(unsafe { libc::setitimer(libc::ITIMER_REAL, timer, ptr::null_mut()) } as isize);
    };
    let mut byte = [0_u8];
    set(&timer);
    // SAFETY: the buffer has one byte.
    let result = unsafe { libc::read(reader, byte.as_mut_ptr().cast(), 1) };
    let error = std::io::Error::last_os_error();
    set(&never);
    match result {
        1 => "read",
        _ if error.raw_os_error() == Some(libc::EINTR) => "interrupted",
        _ => "failed",
    }
}

fn own_signals() -> i32 {
    let child = fork(|| {
        // SAFETY: a number. The signal has its default action, which ends the process.
        unsafe { libc::raise(libc::SIGRTMIN() + 5) };
        0
    });
    wait(child, 0)
}
