//! The live view's options, and when it is shown instead of lines.

use std::io::{self, IsTerminal, PipeReader};
use std::path::{Path, PathBuf};

use super::size::parse_size;
use super::{Exit, Failure, Job};
use crate::capture::Clock;
#[cfg(target_os = "linux")]
use crate::capture::spawn::Streams;
use crate::pipeline::Output;
use crate::record::{Header, Scope};
use crate::tui::{Feed, LogPlace, Options, Pace, Source, TerminalError, Theme};

/// About so much memory is used for what was observed.
const MEMORY: usize = 512 << 20;

/// Whether the live view is shown.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Live view")]
pub(super) struct ViewArgs {
    /// Show the live view (watch and attach do so by themselves on a terminal)
    #[arg(long, conflicts_with_all = ["no_tui", "quiet", "verbose"])]
    tui: bool,
    /// Print lines, on a terminal too
    #[arg(long)]
    no_tui: bool,
    /// How much memory the live view may use for what it has seen [default: 512MiB]
    ///
    /// The oldest messages leave memory first. With --log, and in a replay, they are read back
    /// from the log when they are looked at.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    tui_memory: Option<usize>,
}

/// The live view, where one is wanted.
pub(super) enum View {
    /// Lines are wanted.
    None,
    /// What is observed is not known yet.
    Wanted(Wanted),
    /// It has the terminal.
    Shown(Feed),
}

/// A view that is to be shown.
pub(super) struct Wanted {
    options: Options,
    title: String,
    printed: Option<PipeReader>,
}

impl ViewArgs {
    /// Does not show the view by itself.
    pub(super) const fn prefer_lines(&mut self) {
        self.no_tui = !self.tui;
    }

    /// Whether, and how, the view is to be shown. `plain` says that lines were asked for in
    /// another way, `log` which log is written.
    ///
    /// # Errors
    /// Where it is asked for, and there is no terminal.
    pub(super) fn open(&self, job: Job, plain: bool, log: Option<&Path>) -> Result<View, Failure> {
        let terminal = io::stdout().is_terminal();
        let by_itself = job == Job::Live && terminal && !plain && io::stderr().is_terminal();
        if !self.tui && (self.no_tui || !by_itself) {
            return Ok(View::None);
        }
        if !terminal {
            let exit = if job == Job::Run {
                Exit::ObserverFailed
            } else {
                Exit::Failed
            };
            return Err(Failure::new(exit, TerminalError::None)
                .with_remedy("leave out --tui, or run it on a terminal"));
        }
        let memory = self.tui_memory.unwrap_or(MEMORY);
        let options = Options {
            theme: theme(),
            memory,
            log: log.map(Path::to_path_buf),
        };
        Ok(View::Wanted(Wanted {
            options,
            title: String::new(),
            printed: None,
        }))
    }
}

impl View {
    /// Names the log that is read.
    pub(super) fn read_from(&mut self, path: &Path) {
        if let Self::Wanted(wanted) = self {
            let name = path.file_name().unwrap_or(path.as_os_str());
            wanted.title = name.to_string_lossy().into_owned();
            wanted.options.log = Some(path)
                .filter(|path| *path != Path::new("-"))
                .map(PathBuf::from);
        }
    }

    /// Where the standard streams of the command that is run must lead: into the view, which has
    /// the terminal.
    ///
    /// # Errors
    /// Where no pipe can be made.
    #[cfg(target_os = "linux")]
    pub(super) fn streams(&mut self) -> io::Result<Streams> {
        let Self::Wanted(wanted) = self else {
            return Ok(Streams::Ours);
        };
        let (reader, writer) = io::pipe()?;
        wanted.printed = Some(reader);
        Ok(Streams::Printed(writer))
    }

    /// Takes the terminal, where it is wanted. `clock` tells the time of what goes on.
    ///
    /// # Errors
    /// Where the terminal cannot be had.
    pub(super) fn begin(
        &mut self,
        header: &Header,
        clock: Option<Clock>,
    ) -> Result<(), TerminalError> {
        let Self::Wanted(wanted) = std::mem::replace(self, Self::None) else {
            return Ok(());
        };
        let title = match &header.scope {
            Some(Scope::Run { command }) if wanted.title.is_empty() => command.join(" "),
            _ => wanted.title,
        };
        let source = Source {
            header: header.clone(),
            title,
            live: clock.is_some(),
        };
        let pace = if source.live {
            Pace::Skipping
        } else {
            Pace::Whole
        };
        let clock = clock.map(|clock| Box::new(move || clock.now()) as _);
        let feed = Feed::start(source, wanted.options, pace, clock)?;
        if let Some(reader) = wanted.printed {
            feed.print_from(reader)?;
        }
        *self = Self::Shown(feed);
        Ok(())
    }

    /// Whether it takes the place of the lines.
    pub(super) const fn is_shown(&self) -> bool {
        matches!(self, Self::Shown(_))
    }

    /// Whether the user has left it.
    pub(super) fn is_left(&mut self) -> bool {
        match self {
            Self::Shown(feed) => feed.is_closed(),
            Self::None | Self::Wanted(_) => false,
        }
    }

    pub(super) fn handle_output(&mut self, output: &Output, place: Option<LogPlace>) {
        if let Self::Shown(feed) = self {
            feed.handle_output(output, place);
        }
    }

    /// Says where the log that is read breaks off.
    pub(super) fn note_cut(&mut self, cut: String) {
        if let Self::Shown(feed) = self {
            feed.note_cut(cut);
        }
    }

    pub(super) fn flush(&mut self) {
        if let Self::Shown(feed) = self {
            feed.flush();
        }
    }

    /// Shows what is there until the user leaves, or ends at once.
    ///
    /// # Errors
    /// What went wrong with the terminal.
    pub(super) fn close(&mut self, why: Option<String>, leave: bool) -> Result<(), TerminalError> {
        match std::mem::replace(self, Self::None) {
            Self::Shown(mut feed) => feed.close(why, leave),
            Self::Wanted(_) | Self::None => Ok(()),
        }
    }
}

/// What the environment says about colours and characters.
fn theme() -> Theme {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
    let utf8 = |locale: String| {
        locale
            .to_ascii_lowercase()
            .replace('-', "")
            .contains("utf8")
    };
    Theme {
        colors: set("NO_COLOR").is_none(),
        // sudo and containers often leave no locale; their terminals have Unicode all the same.
        unicode: locale.is_none_or(utf8),
        light: set("COLORFGBG").is_some_and(|colors| is_light(&colors)),
    }
}

/// Whether `COLORFGBG` names a light background: `0;15`, or `0;default;15`, foreground first. Many
/// terminals set it (rxvt, Konsole, iTerm2), the others are taken for dark ones.
fn is_light(colors: &str) -> bool {
    matches!(colors.rsplit(';').next(), Some("7" | "15"))
}

#[cfg(test)]
mod tests {
    use super::is_light;

    #[test]
    fn the_background_is_the_last_colour() {
        assert!(is_light("0;15") && is_light("0;default;7"));
        assert!(!is_light("15;0") && !is_light("15;default") && !is_light("12;8"));
    }
}
