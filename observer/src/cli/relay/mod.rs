//! `observer relay`: stands before a server's command in a host's configuration.
//!
//! Arguments and glue. What is passed on, and how, is [`capture::relay`](crate::capture::relay)'s;
//! nothing here can hold it up or end it.

mod collect;
mod incoming;
mod observe;
mod place;
mod send;
mod snippet;
mod together;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

pub use collect::{CollectError, Collector};
pub(super) use together::watch;

use super::output::parse_full;
use super::{Exit, Failure, PayloadArgs, SettingsArgs, say};
use crate::capture::relay::{self, Role, StartError};
use snippet::Host;

/// Stand before a server's command in a host's configuration
///
/// Passes everything on as if it were not there, bytes, end of file, signals and exit status, and
/// writes the audit log beside. Works without privileges on any Unix. Without --log and --to, each
/// run of a server leaves a log of its own in `$XDG_STATE_HOME/observer/relay`
/// (`~/.local/state/observer/relay`).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  observer relay -- npx -y @modelcontextprotocol/server-everything
  observer relay --log audit.jsonl -- python3 server.py
  observer relay --print-config codex files -- npx -y @modelcontextprotocol/server-filesystem /tmp
  observer relay --to -- python3 server.py     # and elsewhere: observer watch --relay")]
pub(super) struct Relay {
    /// Write the audit log to FILE, or into it where it is a folder
    ///
    /// A file that is there already is kept: the log is then FILE with a number before its
    /// extension, as hosts start a server again and again.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Go on in another file whenever one has reached SIZE: after audit.jsonl in audit.2.jsonl
    ///
    /// `observer replay audit.jsonl` reads all of them.
    #[arg(long, value_name = "SIZE", value_parser = parse_full)]
    rotate: Option<u64>,
    /// What the server is called in the log's file name [default: the command's]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Send the records to the socket of `observer watch --relay` as well
    ///
    /// Without SOCKET it is `$XDG_RUNTIME_DIR/observer/relay.sock`. Nothing is held up where nobody
    /// listens there.
    #[arg(long, value_name = "SOCKET", num_args = 0..=1)]
    to: Option<Option<PathBuf>>,
    /// Show on stderr, where the server's own messages go, what happens; twice: every message
    #[arg(long, short, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Print what to write into this host's configuration, for the server `CONFIG_NAME`, and end
    #[arg(long, value_name = "HOST", value_enum, requires = "config_name")]
    print_config: Option<Host>,
    /// With --print-config: what the server is called in the configuration
    #[arg(value_name = "CONFIG_NAME", requires = "print_config")]
    config_name: Option<String>,
    /// The server's command, after `--`
    #[arg(last = true, required = true, value_name = "SERVER")]
    server: Vec<OsString>,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    payload: PayloadArgs,
}

impl Relay {
    /// Returns only in the process that passes the bytes on, whose exit code nobody sees, and
    /// where nothing was started.
    pub(super) fn execute(self) -> Result<Exit, Failure> {
        if let (Some(host), Some(name)) = (self.print_config, &self.config_name) {
            return self.print_config(host, name);
        }
        let (program, args) = self.server.split_first().ok_or_else(|| {
            Failure::new(Exit::ObserverFailed, "no server to start")
                .with_remedy("give its command after --")
        })?;
        match relay::start(program.clone(), args.to_vec()).map_err(unstarted)? {
            Role::Front(front) => front.follow(),
            Role::Passer(passer) => {
                passer.run(|feed| observe::observe(feed, &self));
                Ok(Exit::Clean)
            }
        }
    }

    fn print_config(&self, host: Host, name: &str) -> Result<Exit, Failure> {
        if self.settings.reads_files() {
            let message = "--hosts and --settings were read, and are not put into a configuration";
            return Err(Failure::new(Exit::ObserverFailed, message)
                .with_remedy("leave them out, and add them to what is printed, with whole paths"));
        }
        let observer = std::env::current_exe().map_err(|error| {
            Failure::new(
                Exit::ObserverFailed,
                format_args!("cannot find this program's own path: {error}"),
            )
        })?;
        let words = self.words(name).map_err(|word| {
            Failure::new(
                Exit::ObserverFailed,
                format_args!("{} is no UTF-8", Path::new(&word).display()),
            )
            .with_remedy("configurations hold text: rename the file")
        })?;
        let observer = observer.to_string_lossy();
        say(format_args!("this goes into {}:", host.place()));
        match io::Write::write_all(
            &mut io::stdout(),
            host.snippet(name, &observer, &words).as_bytes(),
        ) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(
                Exit::ObserverFailed,
                format_args!("cannot write to stdout: {error}"),
            )),
            _ => Ok(Exit::Clean),
        }
    }

    /// The arguments that a configuration needs after `observer`; the first word that is no text.
    fn words(&self, name: &str) -> Result<Vec<String>, OsString> {
        let mut words: Vec<OsString> = ["relay", "--name", name].map(OsString::from).into();
        let path = |option: &str, path: &Path| {
            // A host starts servers in folders of its own choice.
            let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
            [OsString::from(option), path.into()]
        };
        if let Some(log) = &self.log {
            words.extend(path("--log", log));
        }
        if let Some(size) = self.rotate {
            words.extend(["--rotate".into(), size.to_string().into()]);
        }
        match &self.to {
            Some(Some(socket)) => words.extend(path("--to", socket)),
            Some(None) => words.push("--to".into()),
            None => {}
        }
        words.extend(self.payload.words());
        words.extend(self.settings.words());
        words.extend((0..self.verbose).map(|_| "--verbose".into()));
        words.push("--".into());
        words.extend(self.server.iter().cloned());
        words.into_iter().map(OsString::into_string).collect()
    }

    /// What the log's file is called after.
    fn name(&self) -> String {
        let command = || {
            let program = self.server.first().map(Path::new).and_then(Path::file_name);
            program.map(|name| name.to_string_lossy().into_owned())
        };
        self.name
            .clone()
            .or_else(command)
            .unwrap_or_else(|| "server".into())
    }
}

fn unstarted(error: StartError) -> Failure {
    match &error {
        StartError::Server { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            Failure::new(Exit::NotFound, error).with_remedy(
                "check the path; hosts may start servers with another PATH than your shell's",
            )
        }
        StartError::Server { .. } => Failure::new(Exit::CannotInvoke, error),
        StartError::System { .. } => Failure::new(Exit::ObserverFailed, error),
    }
}
