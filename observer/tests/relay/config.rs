//! `--print-config` starts nothing, and prints what starts the relay.

use std::process::Command;

use serde_json::{Value, json};

#[test]
fn the_snippet_starts_this_program() {
    let output = Command::new(env!("CARGO_BIN_EXE_observer"))
        .args([
            "relay",
            "--print-config",
            "claude-code",
            "files",
            "--log",
            "logs",
            "--grace",
            "1500ms",
            "--deadline",
            "slow=1min",
            "-v",
            "--",
            "npx",
            "-y",
            "x",
        ])
        .current_dir("/")
        .output()
        .unwrap();
    assert!(output.status.success());
    let snippet: Value = serde_json::from_slice(&output.stdout).unwrap();
    let server = &snippet["mcpServers"]["files"];
    assert_eq!(server["command"], env!("CARGO_BIN_EXE_observer"));
    assert_eq!(
        server["args"],
        json!([
            "relay",
            "--name",
            "files",
            "--log",
            "/logs",
            "--grace",
            "1.5s",
            "--deadline",
            "slow=60s",
            "--verbose",
            "--",
            "npx",
            "-y",
            "x"
        ])
    );
}
