//! How fast a large log is judged, and in how much memory, beside `wc -l` and `jq -c .` in the same
//! run: `cargo bench --bench check`. The log's size in MB can be given:
//! `cargo bench --bench check -- 1000`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use observer::record::{Chain, parse_line};

/// Whatever it says: only its seal is looked at.
const SUMMARY: &str = r#"{"type":"summary","t":0,"calls":{},"findings":{},"messages":0,"bytes":0,"gaps":0,"complete":true,"loss":null}"#;

/// So often a program's size is looked at.
const LOOK: Duration = Duration::from_millis(10);

fn main() -> io::Result<()> {
    let given = std::env::args().filter_map(|arg| arg.parse().ok()).next();
    let megabytes: u64 = given.unwrap_or(256);
    let folder = tempfile::tempdir()?;
    let log = folder.path().join("audit.jsonl");
    write_log(&log, megabytes * 1_000_000)?;
    let observer = env!("CARGO_BIN_EXE_observer");
    println!("{:44}{:>10}{:>10}{:>14}", "", "s", "MB/s", "resident MB");
    // Once unseen: the log is in the page cache then for all of them alike.
    run(Command::new("wc").arg("-l").arg(&log))?;
    for (title, program, args) in [
        ("wc -l", "wc", &["-l"][..]),
        ("jq -c .", "jq", &["-c", "."]),
        ("observer check", observer, &["check", "--quiet"]),
        (
            "observer report, text",
            observer,
            &["report", "--format", "text=/dev/null"],
        ),
        (
            "observer report, six formats",
            observer,
            &[
                "report",
                "--format",
                "html=html.html",
                "--format",
                "junit=junit.xml",
                "--format",
                "sarif=observer.sarif",
                "--format",
                "csv=calls.csv",
                "--format",
                "perfetto=calls.trace",
                "--format",
                "json=report.json",
            ],
        ),
    ] {
        let mut command = Command::new(program);
        command.args(args).arg(&log).current_dir(folder.path());
        match run(&mut command) {
            Ok((took, resident)) => {
                let seconds = took.as_secs_f64();
                #[expect(clippy::cast_precision_loss, reason = "a rate has three digits")]
                let rate = megabytes as f64 / seconds;
                println!("{title:44}{seconds:>10.2}{rate:>10.0}{resident:>14}");
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                println!("{title:44}{:>10}", "not here");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Runs a program to its end; how long it took, and how large it was at most, in MB.
fn run(command: &mut Command) -> io::Result<(Duration, u64)> {
    let started = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn()?;
    let mut largest = 0;
    loop {
        largest = largest.max(resident(&child));
        if let Some(status) = child.try_wait()? {
            // `check` says with 1 or 3 what it found.
            if status.code() == Some(2) {
                return Err(io::Error::other(format!("{command:?}: {status}")));
            }
            return Ok((started.elapsed(), largest));
        }
        thread::sleep(LOOK);
    }
}

fn resident(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1_000
}

/// A log of calls of twenty tools, each with an answer of 1 kB, sealed as any that is observed.
fn write_log(path: &Path, size: u64) -> io::Result<()> {
    let mut log = BufWriter::new(File::create(path)?);
    let (mut chain, mut lines) = (Chain::new(), Vec::new());
    let mut add = |line: &str| {
        let record = parse_line(line.as_bytes()).map_err(io::Error::other)?;
        chain.write_line(&record.ok_or(io::ErrorKind::InvalidInput)?, &mut lines);
        log.write_all(&lines)?;
        let written = lines.len() as u64;
        lines.clear();
        io::Result::Ok(written)
    };
    add(
        r#"{"type":"header","t":0,"schema":"observer/1","observer":"0.1.0","started":"2026-01-01T00:00:00Z"}"#,
    )?;
    let text = "x".repeat(1_000);
    let mut written = 0;
    let mut id = 0_u64;
    while written < size {
        id += 1;
        let t = id * 4;
        written += add(&format!(
            r#"{{"type":"message","t":{t},"conn":1,"from":"client","bytes":110,"json":{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"tool{}","arguments":{{"n":{id}}}}}}}}}"#,
            id % 20,
        ))?;
        written += add(&format!(
            r#"{{"type":"message","t":{},"conn":1,"from":"server","bytes":1100,"json":{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}}}"#,
            t + 1
        ))?;
    }
    add(SUMMARY)?;
    log.flush()
}
