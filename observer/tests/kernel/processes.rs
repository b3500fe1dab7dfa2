//! Processes: fork, exec, exit, and the scope that follows them.

use std::process::Command;
use std::sync::Mutex;

use observer::capture::ebpf::{Options, Scope};
use observer::capture::{CaptureEvent, Fate, Pid, ProcessChange, ProcessEvent};

use crate::watch::{Seen, Watch, load};

fn run(program: &str, args: &[&str]) -> Option<(Seen, Pid)> {
    let probe = load(&Options::new(Scope::Pids(Vec::new())))?;
    let mut watch = Watch::command(probe, Command::new(program).args(args));
    let pid = watch.pid();
    watch.step();
    Some((watch.finish(), pid))
}

fn changes(seen: &Seen) -> Vec<(Pid, ProcessChange)> {
    seen.select(|event| match event {
        CaptureEvent::Process(ProcessEvent { pid, change }) => Some((*pid, change.clone())),
        _ => None,
    })
}

fn child_of(changes: &[(Pid, ProcessChange)], parent: Pid) -> Pid {
    let child = changes.iter().find_map(|(pid, change)| match change {
        ProcessChange::Seen {
            ppid: Some(ppid),
            start: Some(_),
            ..
        } if *ppid == parent => Some(*pid),
        _ => None,
    });
    child.expect("the child's fork was seen")
}

#[test]
fn a_child_is_followed_from_fork_to_exit() {
    let script = "read go; (exec /bin/echo one 'two words'); exit 7";
    let Some((seen, shell)) = run("/bin/sh", &["-c", script]) else {
        return;
    };
    let changes = changes(&seen);
    let child = child_of(&changes, shell);
    let exec = changes.iter().find_map(|(pid, change)| match change {
        ProcessChange::Exec { exe, argv } if *pid == child => Some((exe.clone(), argv.clone())),
        _ => None,
    });
    let (exe, argv) = exec.expect("the child's exec was seen");
    // The kernel tells the path, and /proc the file, which may be one for many programs (busybox).
    let file = std::fs::canonicalize("/bin/echo").unwrap();
    let exe = exe.unwrap();
    assert!(exe == "/bin/echo" || file.to_str() == Some(&*exe), "{exe}");
    assert_eq!(argv, ["/bin/echo", "one", "two words"]);
    let exit = |pid, fate| (pid, ProcessChange::Exit { fate: Some(fate) });
    assert!(changes.contains(&exit(child, Fate::Code(0))));
    assert_eq!(changes.last(), Some(&exit(shell, Fate::Code(7))));
    let said = seen.select(|event| match event {
        CaptureEvent::Chunk { writer, bytes, .. } if *writer == child => Some(bytes.to_vec()),
        _ => None,
    });
    assert_eq!(
        said.concat(),
        b"one two words\n",
        "nothing is missed between fork and first write"
    );
}

#[test]
fn a_death_by_signal_is_told_with_its_signal() {
    let Some((seen, shell)) = run("/bin/sh", &["-c", "read go; kill -TERM $$"]) else {
        return;
    };
    let fate = Some(Fate::Signal(libc::SIGTERM));
    assert_eq!(
        changes(&seen).last(),
        Some(&(shell, ProcessChange::Exit { fate }))
    );
}

#[test]
fn threads_are_no_processes() {
    let Some(mut watch) = Watch::start("threads") else {
        return;
    };
    watch.step();
    watch.line();
    let child = watch.pid();
    let seen = watch.finish();
    let exits = changes(&seen)
        .into_iter()
        .filter(|(_, change)| matches!(change, ProcessChange::Exit { .. }));
    assert_eq!(exits.map(|(pid, _)| pid).collect::<Vec<_>>(), [child]);
}

#[test]
fn what_is_out_of_scope_is_not_seen() {
    let Some(mut watch) = Watch::start("positioned") else {
        return;
    };
    let outsider = Command::new("/bin/sh")
        .args(["-c", "echo hidden | cat"])
        .output()
        .unwrap();
    assert_eq!(outsider.stdout, b"hidden\n");
    watch.step();
    let child = watch.pid();
    let seen = watch.finish();
    let writers = seen.select(|event| match event {
        CaptureEvent::Chunk { writer, .. } => Some(*writer),
        _ => None,
    });
    assert!(writers.iter().all(|writer| *writer == child));
}

#[test]
fn a_pid_namespace_does_not_change_the_pids() {
    let script = "read go; unshare --pid --fork --mount-proc /bin/sh -c 'echo $$ | cat'";
    let Some((seen, shell)) = run("/bin/sh", &["-c", script]) else {
        return;
    };
    let changes = changes(&seen);
    let unshare = child_of(&changes, shell);
    let inner = child_of(&changes, unshare);
    let first = seen.select(|event| match event {
        CaptureEvent::Chunk { bytes, .. } if bytes == "1\n".as_bytes() => Some(()),
        _ => None,
    });
    assert!(!first.is_empty(), "the inner shell knows itself as 1");
    assert_ne!(inner, Pid(1), "and the observer knows it by its own pid");
}

#[test]
fn the_whole_machine_is_seen_but_the_observer() {
    let Some(probe) = load(&Options::new(Scope::Machine)) else {
        return;
    };
    let outsider = Command::new("/bin/sh")
        .args(["-c", "echo somebody"])
        .output()
        .unwrap();
    assert_eq!(outsider.stdout, b"somebody\n");
    let mut command = Command::new("/bin/true");
    let watch = Watch::command(probe, &mut command);
    let seen = watch.finish();
    let wrote = seen.select(|event| match event {
        CaptureEvent::Chunk { writer, bytes, .. } => Some((*writer, bytes.to_vec())),
        _ => None,
    });
    assert!(wrote.iter().any(|(_, bytes)| bytes == b"somebody\n"));
    assert!(
        wrote
            .iter()
            .all(|(writer, _)| *writer != Pid(std::process::id()))
    );
}

#[test]
fn the_probe_says_what_it_does_when_asked() {
    static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let log = Some((|line: &str| LINES.lock().unwrap().push(line.to_owned())) as fn(&str));
    let Some(probe) = load(&Options {
        log,
        ..Options::new(Scope::Pids(Vec::new()))
    }) else {
        return;
    };
    let mut watch = Watch::command(
        probe,
        Command::new("/bin/sh").args(["-c", "read go; true & wait"]),
    );
    let shell = watch.pid();
    watch.step();
    watch.wait_for(|event| {
        matches!(event, CaptureEvent::Process(ProcessEvent {
        pid, change: ProcessChange::Exit { .. }
    }) if *pid == shell)
    });
    watch.finish();
    let lines = LINES.lock().unwrap();
    let wanted = format!("probe: debug: {shell} forked ");
    assert!(
        lines.iter().any(|line| line.starts_with(&wanted)),
        "{lines:?}"
    );
}
