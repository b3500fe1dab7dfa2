//! The `observer` binary: arguments in, an exit code out.

use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use observer::cli::{Cli, Exit, is_run, say};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let panicked = if is_run(&args) {
        Exit::ObserverFailed
    } else {
        Exit::Failed
    };
    // The panic's own message is on stderr by then; only the exit code is ours to choose.
    catch_unwind(AssertUnwindSafe(|| observe(&args)))
        .unwrap_or(panicked)
        .into()
}

fn observe(args: &[OsString]) -> Exit {
    let cli = match Cli::parse_args(args) {
        Ok(cli) => cli,
        Err((error, exit)) => {
            // Help that nobody reads any more is no fault.
            let _ = error.print();
            return exit;
        }
    };
    cli.execute().unwrap_or_else(|failure| {
        say(&failure);
        failure.exit()
    })
}
