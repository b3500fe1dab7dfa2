//! Programs behave under ptrace as they do without: the same output, the same status.

use std::process::{Command, Output};

use crate::roles::role;
use crate::stage::{Stage, runs};

/// What each is about, and what it does; for bash.
pub(crate) const SCRIPTS: [(&str, &str); 4] = [
    (
        "pipes",
        "seq 3000 | sed s/1/x/ | sort | uniq -c | sort -rn | head -n 40 | cksum
         yes | head -c 300000 | cksum
         (echo a; exit 3) | cat | (read -r a; echo $a; exit 4); echo ${PIPESTATUS[*]}
         cat <(echo one) <(echo two); exec 3< <(echo three); read -r x <&3; echo $x",
    ),
    (
        "job control",
        "set -m
         stopped() { until [[ $(jobs -s) ]]; do sleep 0.01; done; echo stopped; }
         sleep 60 & kill -STOP %1; stopped; kill -CONT %1; kill -TERM %1; wait %1; echo $?
         (kill -TSTP $BASHPID; echo resumed; exit 7) & stopped; kill -CONT %%; wait $!; echo $?
         (kill -TTIN $BASHPID; kill -STOP $BASHPID; echo resumed twice) & stopped; kill -CONT %%
         stopped; kill -CONT %%; wait $!; echo $?",
    ),
    (
        "signals",
        "trap 'echo usr1' USR1; trap 'echo term' TERM; trap 'echo child' CHLD
         kill -USR1 $$; kill -TERM $$; (kill -USR1 $$); trap - CHLD
         for signal in HUP INT QUIT SEGV KILL TERM RTMIN RTMIN+3 RTMAX; do
           bash -c \"kill -$signal \\$\\$\" 2>/dev/null; echo $signal $?
         done
         timeout -s INT 0.1 sleep 9; echo $?
         trap '' INT; bash -c 'kill -INT $$; echo ignored'",
    ),
    (
        "ends",
        "bash -c 'exit 41'; echo $?; exec bash -c 'echo executed; exit 42'",
    ),
];

#[test]
fn programs_do_not_notice_that_they_are_traced() {
    let stage = Stage::set();
    for (name, script) in SCRIPTS {
        same(&stage, name, &["bash".into(), "-c".into(), script.into()]);
    }
    same(&stage, "workout", &role(&stage.roles(), "workout"));
}

fn same(stage: &Stage, name: &str, words: &[String]) {
    let alone = outcome(stage.command(&words[0]).args(&words[1..]));
    assert!(!alone.1.is_empty(), "{name}: {alone:?}");
    for run in 0..runs(3) {
        let traced = outcome(stage.run("ptrace").arg("--").args(words));
        assert_eq!(alone, traced, "{name}, run {run}");
    }
}

/// The status, and what was printed.
fn outcome(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stdout, .. } = command.output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap())
}
