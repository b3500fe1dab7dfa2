//! Running the program on traces, and the logs that nobody would record.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A trace in which a host abandons two calls.
pub(crate) const ABANDONS: &str = "made/codex-0.163-retry.jsonl";

/// Text that is markup, a formula, a command or a break-out, wherever it is taken for one.
pub(crate) const HOSTILE: &str =
    "<script>alert(1)</script>]]>\"'&|`::error::x%0A=1+1\u{1b}[2J\u{202e}\n::error::y";

/// A folder to be in.
pub(crate) struct Lab(pub(crate) TempDir);

/// How a program ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Lab {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a file")
    }

    pub(crate) fn observer(&self, args: &[&str]) -> Ended {
        end(observer(args).current_dir(self.0.path()))
    }
}

/// The program, as a workflow's runner that wants no summary would start it.
pub(crate) fn observer(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_observer"));
    command.args(args).env_remove("GITHUB_STEP_SUMMARY");
    command
}

pub(crate) fn end(command: &mut Command) -> Ended {
    let output = command.output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Ended {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

pub(crate) fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces")
}

/// A log whose every name and text is [`HOSTILE`].
pub(crate) fn hostile_log() -> String {
    let text = serde_json::to_string(HOSTILE).expect("a string");
    let mut lines = vec![
        r#"{"type":"header","t":0,"schema":"observer/1","started":T,"kernel":T}"#.to_owned(),
        r#"{"type":"process","t":0,"pid":7,"event":"seen","argv":[T,T]}"#.into(),
        r#"{"type":"connection","t":0,"event":"open","client":{"pid":7,"exe":T},"server":{"pid":8,"exe":T}}"#.into(),
        message(0, "client", r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":T,"version":T}}}"#),
        message(1, "server", r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":T,"capabilities":{},"serverInfo":{"name":T,"version":T}}}"#),
    ];
    for id in 1..4 {
        lines.push(message(id + 1, "client", &format!(
            r#"{{"jsonrpc":"2.0","id":"{id}-x","method":"tools/call","params":{{"name":T,"arguments":{{}}}}}}"#
        )));
    }
    lines.push(message(6, "client", r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1-x","reason":T}}"#));
    lines.push(message(
        7,
        "server",
        r#"{"jsonrpc":"2.0","id":T,"result":{}}"#,
    ));
    lines.push(message(
        8,
        "server",
        r#"{"jsonrpc":"2.0","id":"2-x","error":{"code":-1,"message":T}}"#,
    ));
    lines.push(r#"{"type":"noise","t":8,"from":"server","bytes":9,"kind":"text","text":T}"#.into());
    lines.push(r#"{"type":"interrupt","t":8.5,"pid":7,"kind":"sigint"}"#.into());
    lines.push(
        r#"{"type":"gap","t":9,"from":"server","offset":9,"bytes":null,"reason":"ring-full"}"#
            .into(),
    );
    let log = lines.join("\n") + "\n";
    log.replace(":T", &format!(":{text}"))
        .replace("[T,T]", &format!("[{text},{text}]"))
}

fn message(t: u32, from: &str, json: &str) -> String {
    format!(r#"{{"type":"message","t":{t},"from":"{from}","bytes":100,"json":{json}}}"#)
}
