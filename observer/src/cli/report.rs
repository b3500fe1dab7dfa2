//! `observer report`: what logs amount to, as documents for people and for machines.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::gate::Gate;
use super::{Exit, Failure, GateArgs, LogFile, SettingsArgs, judge, say};
use crate::pipeline::Output;
use crate::policy::nearest;
use crate::report::{self, Format, Rendering, Source, Standing};
use crate::sink::{Outlet, WriteError};

/// Where a workflow step's summary goes, by GitHub's own word.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// Make reports from audit logs, for people and for machines
///
/// Judges each log anew, and writes what it found in as many formats as are asked for. The reports
/// tell what a policy makes of it: the one of --policy, else the built-in one of `check`. The exit
/// code does so only with --policy, --fail-on or --strict.
///
/// Formats: text, markdown (for a page or a job's summary), junit (one case a rule), sarif (for
/// code scanning), html (one file, for a browser), csv (one row a call), perfetto (for
/// ui.perfetto.dev), json (for programs), github (annotations in a workflow's log, and the markdown
/// in the step's summary).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  observer report audit.jsonl
  observer report --format html=report.html --format junit=junit.xml logs/*.jsonl
  observer report --policy observer.toml --format github --format sarif=observer.sarif audit.jsonl
  observer report --format csv audit.jsonl | sqlite3 -csv calls.db '.import /dev/stdin calls'")]
pub(super) struct Report {
    /// The audit logs (`-`: stdin)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// A format, and the file to write it to (`-`, or none: stdout) [default: text]
    ///
    /// Can be given several times. All files are opened before any log is read.
    #[arg(long, short, value_name = "FORMAT[=PATH]", help_heading = "Output")]
    format: Vec<Target>,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten, next_help_heading = "Output")]
    gate: GateArgs,
}

/// One `--format`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    format: Format,
    /// `None` for stdout.
    path: Option<PathBuf>,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, path) = text.split_once('=').unwrap_or((text, "-"));
        let known = || Format::ALL.into_iter().map(Format::name);
        let Some(format) = Format::from_name(name) else {
            return Err(match nearest(name, known()) {
                Some(meant) => format!("no such format; did you mean {meant}?"),
                None => format!("give one of {}", known().collect::<Vec<_>>().join(", ")),
            });
        };
        match path {
            "" => Err(format!("give a file: {name}=PATH, or - for stdout")),
            "-" => Ok(Self { format, path: None }),
            _ => Ok(Self {
                format,
                path: Some(path.into()),
            }),
        }
    }
}

impl Report {
    pub(super) fn execute(mut self) -> Result<Exit, Failure> {
        // A policy that is none is told before any file is touched.
        self.gate.open_or_default()?;
        if self.format.is_empty() {
            self.format.push(Target {
                format: Format::Text,
                path: None,
            });
        }
        self.refuse_clashes()?;
        let mut sheets = self.open_sheets()?;
        let mut report = report::Report::new();
        let mut exit = Exit::Clean;
        for file in &self.files {
            exit = exit.worse(self.read(file, &mut report, &mut sheets)?);
        }
        for mut sheet in sheets {
            exit = exit.worse(sheet.finish(&report));
        }
        Ok(exit)
    }

    /// Judges one log into the report.
    fn read(
        &self,
        file: &Path,
        report: &mut report::Report,
        sheets: &mut [Sheet],
    ) -> Result<Exit, Failure> {
        let mut gate = self.gate.open_or_default()?;
        let (log, header) = match LogFile::open(file) {
            Ok(opened) => opened,
            Err(error) => {
                say(Failure::from(error));
                return Ok(Exit::Failed);
            }
        };
        report.begin_log(Source {
            name: judge::name(file).display().to_string(),
            header: header.clone(),
        });
        let judged = judge::judge_open(log, header, &self.settings, |line, output| {
            gate.handle_output(output);
            report.begin_line(line);
            report.handle_output(output);
            for sheet in &mut *sheets {
                sheet.handle_output(report, output);
            }
        });
        let mut faults = Vec::new();
        if let Some(shortfall) = judged.shortfall {
            let shortfall = format!("{}: {shortfall}", judge::name(file).display());
            say(&shortfall);
            faults.push(shortfall);
            gate.note_incomplete();
        }
        let mut exit = match gate.exit() {
            Some(exit) if self.gate.is_given() => exit,
            _ if gate.lacks_evidence() => Exit::Incomplete,
            _ => Exit::Clean,
        };
        let mut standing = standing(&gate);
        if let Some(error) = judged.damage {
            faults.push(error.to_string());
            say(Failure::from(error));
            exit = Exit::Failed;
            if standing == Standing::Passed {
                standing = Standing::NotShown;
            }
        }
        report.end_log(gate.ruling().clone(), standing, &faults);
        for sheet in sheets {
            sheet.end_log(report);
        }
        Ok(exit)
    }

    /// A file has room for one report, and a log is not to be overwritten by what is made of it.
    fn refuse_clashes(&self) -> Result<(), Failure> {
        let identity = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
        let logs: Vec<_> = self
            .files
            .iter()
            .filter_map(|file| identity(file))
            .collect();
        for (place, target) in self.format.iter().enumerate() {
            let name = target.format.name();
            if self.format[..place]
                .iter()
                .any(|one| one.path == target.path)
            {
                let path = target.path.as_deref().unwrap_or(Path::new("-"));
                let message = format_args!("--format {name}={} is taken", path.display());
                return Err(Failure::new(Exit::Failed, message)
                    .with_remedy("give each format a file of its own"));
            }
            let Some(path) = &target.path else { continue };
            if identity(path).is_some_and(|one| logs.contains(&one)) {
                let message =
                    format_args!("--format {name}={} is a log that is read", path.display());
                return Err(Failure::new(Exit::Failed, message).with_remedy("give another file"));
            }
        }
        Ok(())
    }

    fn open_sheets(&self) -> Result<Vec<Sheet>, Failure> {
        let unwritable = |error: WriteError| {
            Failure::new(Exit::Failed, error)
                .with_remedy("give --format a path that you may write, or - for stdout")
        };
        let mut sheets = Vec::new();
        for target in &self.format {
            let outlet = match &target.path {
                Some(path) => Outlet::create(path).map_err(unwritable)?,
                None => Outlet::stdout(),
            };
            sheets.push(Sheet::new(target.format, outlet));
        }
        let annotates = self
            .format
            .iter()
            .any(|target| target.format == Format::Github);
        let summary = std::env::var_os(STEP_SUMMARY).filter(|path| !path.is_empty());
        if let Some(path) = summary.filter(|_| annotates) {
            sheets.push(Sheet::new(
                Format::Markdown,
                step_summary(&path).map_err(unwritable)?,
            ));
        }
        Ok(sheets)
    }
}

/// The file of a workflow step's summary, which may have something in it already.
fn step_summary(path: &OsStr) -> Result<Outlet, WriteError> {
    let file = OpenOptions::new().create(true).append(true).open(path);
    match file {
        Ok(file) => Ok(Outlet::new(path.into(), Box::new(file))),
        Err(source) => Err(WriteError {
            operation: "open",
            path: path.into(),
            source,
        }),
    }
}

fn standing(gate: &Gate) -> Standing {
    match gate.exit() {
        None => Standing::Passed,
        Some(Exit::Findings) => Standing::Denied,
        Some(_) => Standing::NotShown,
    }
}

/// One report on its way to its file.
struct Sheet {
    rendering: Rendering,
    outlet: Outlet,
    exit: Exit,
}

impl Sheet {
    fn new(format: Format, outlet: Outlet) -> Self {
        let mut sheet = Self {
            rendering: Rendering::new(format),
            outlet,
            exit: Exit::Clean,
        };
        let rendering = &mut sheet.rendering;
        let written = sheet.outlet.append(|out| rendering.begin(out));
        sheet.note(written);
        sheet
    }

    fn handle_output(&mut self, report: &report::Report, output: &Output) {
        let rendering = &mut self.rendering;
        let written = self
            .outlet
            .append(|out| rendering.handle_output(report, output, out));
        self.note(written);
    }

    fn end_log(&mut self, report: &report::Report) {
        let rendering = &mut self.rendering;
        let written = self.outlet.append(|out| rendering.end_log(report, out));
        self.note(written);
    }

    fn finish(&mut self, report: &report::Report) -> Exit {
        let rendering = &self.rendering;
        let written = self.outlet.append(|out| rendering.finish(report, out));
        let written = written.and_then(|()| self.outlet.flush());
        self.note(written);
        self.exit
    }

    /// Whoever reads our stdout may have seen enough.
    fn note(&mut self, written: Result<(), WriteError>) {
        if let Err(error) = written
            && !error.is_closed_pipe()
        {
            say(error);
            self.exit = Exit::Failed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_has_a_file_or_is_for_stdout() {
        let target = |text: &str| text.parse::<Target>();
        let html = Target {
            format: Format::Html,
            path: Some("a=b.html".into()),
        };
        assert_eq!(target("html=a=b.html"), Ok(html));
        for text in ["csv", "csv=-"] {
            assert_eq!(target(text).map(|target| target.path), Ok(None));
        }
        assert_eq!(
            target("jnit=x"),
            Err("no such format; did you mean junit?".into())
        );
        assert!(target("html=").is_err() && target("pdf=x").is_err());
    }
}
