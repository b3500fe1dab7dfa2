//! What becomes of a command that is started: its status, its signals, its user, what it inherits.

use std::fs;
use std::time::{Duration, Instant};

use super::*;

fn paused(words: &[&str], owner: &Owner, signals: InheritedSignals) -> Result<Paused, SpawnError> {
    let (program, arguments) = words.split_first().unwrap();
    let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
    Paused::spawn(program.into(), &arguments, owner, signals, Streams::Ours)
}

fn spawn(words: &[&str]) -> Result<Child, SpawnError> {
    paused(words, &Owner::Same, InheritedSignals::read(&[]))?.release()
}

/// Waits, at most half a minute, for something to become of the child.
fn next_change(child: &Child) -> ChildChange {
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        match child.poll().unwrap() {
            ChildChange::None if Instant::now() < patience => {
                thread::sleep(Duration::from_millis(2));
            }
            change => return change,
        }
    }
}

fn comm(pid: Pid) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/comm")).ok()
}

#[test]
fn the_status_comes_through() {
    for (script, fate) in [("exit 0", Fate::Code(0)), ("exit 41", Fate::Code(41))] {
        assert_eq!(
            next_change(&spawn(&["sh", "-c", script]).unwrap()),
            ChildChange::Ended(fate)
        );
    }
    let killed = spawn(&["sh", "-c", "kill -TERM $$"]).unwrap();
    assert_eq!(
        next_change(&killed),
        ChildChange::Ended(Fate::Signal(libc::SIGTERM))
    );
}

#[test]
fn the_child_waits_to_be_released() {
    let paused = paused(&["sleep", "0"], &Owner::Same, InheritedSignals::read(&[])).unwrap();
    let pid = paused.pid();
    assert_ne!(comm(pid).unwrap().trim(), "sleep");
    let child = paused.release().unwrap();
    assert_eq!(child.pid(), pid);
    assert_eq!(next_change(&child), ChildChange::Ended(Fate::Code(0)));
}

#[test]
fn a_child_that_is_not_released_ends() {
    let paused = paused(&["sleep", "60"], &Owner::Same, InheritedSignals::read(&[])).unwrap();
    let pid = paused.pid();
    let Paused { go, spawning, .. } = paused;
    drop(go);
    assert_eq!(
        join(spawning).unwrap_err().raw_os_error(),
        Some(libc::ECANCELED)
    );
    assert_eq!(comm(pid), None);
}

#[test]
fn what_cannot_run_is_told_apart() {
    assert!(matches!(
        spawn(&["/nonexistent/program"]),
        Err(SpawnError::NotFound { .. })
    ));
    assert!(matches!(
        spawn(&["no-such-program-here"]),
        Err(SpawnError::NotFound { .. })
    ));
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    assert!(matches!(spawn(&[path]), Err(SpawnError::Exec { .. })));
    assert!(matches!(spawn(&["/"]), Err(SpawnError::Exec { .. })));
}

#[test]
fn stopping_is_seen_and_signals_reach_it() {
    let child = spawn(&["sleep", "60"]).unwrap();
    child.signal(Signal::SIGSTOP);
    assert_eq!(next_change(&child), ChildChange::Stopped);
    child.signal(Signal::SIGCONT);
    child.signal(Signal::SIGTERM);
    assert_eq!(
        next_change(&child),
        ChildChange::Ended(Fate::Signal(libc::SIGTERM))
    );
}

#[test]
fn the_child_gets_the_signals_as_they_were() {
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGUSR2);
    let signals = InheritedSignals {
        mask,
        ignored: vec![Signal::SIGQUIT],
    };
    // What this process ignores itself (SIGHUP under nohup) is ignored as well.
    let program = "/^SigBlk:.*0800$/ { mask = 1 } /^SigIgn:.*[4-7c-f]$/ { ignored = 1 } \
                   END { exit mask && ignored ? 7 : 1 }";
    let words = ["awk", program, "/proc/self/status"];
    let child = paused(&words, &Owner::Same, signals)
        .unwrap()
        .release()
        .unwrap();
    assert_eq!(next_change(&child), ChildChange::Ended(Fate::Code(7)));
}

#[test]
fn the_child_runs_as_the_user_and_nobody_else() {
    if !nix::unistd::Uid::effective().is_root() {
        println!("skipped: needs root to become another user");
        return;
    }
    let nobody = Identity::named("nobody").unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let script = format!(
        "test \"$(id -un) $USER $HOME\" = \"nobody nobody $(getent passwd nobody | cut -d: -f6)\" \
         && grep -q '^CapPrm:.*0000000000000000$' /proc/$$/status \
         && grep -q '^NoNewPrivs:.*0$' /proc/$$/status \
         && test \"$(id -G)\" = \"$(id -G nobody)\" \
         && ! test -r {path}"
    );
    let words = ["sh", "-c", script.as_str()];
    let owner = Owner::Other(nobody);
    let child = paused(&words, &owner, InheritedSignals::read(&[]))
        .unwrap()
        .release()
        .unwrap();
    assert_eq!(next_change(&child), ChildChange::Ended(Fate::Code(0)));
}
