//! The formats, and what is common to making them.

use super::build::Report;
use super::calls_csv::Calls;
use super::perfetto::Trace;
use super::{github, html, json, junit, markdown, sarif, text};
use crate::pipeline::Output;

/// A form that a report can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// For a terminal.
    Text,
    /// For a page or a job's summary.
    Markdown,
    /// For CI: one case a rule.
    Junit,
    /// For code scanning: one result a finding.
    Sarif,
    /// For a browser: one file.
    Html,
    /// For a spreadsheet: one row a call.
    Csv,
    /// For ui.perfetto.dev: one slice a call.
    Perfetto,
    /// For programs.
    Json,
    /// For a workflow's log: annotations.
    Github,
}

impl Format {
    /// All that there are, in the order of the help.
    pub const ALL: [Self; 9] = [
        Self::Text,
        Self::Markdown,
        Self::Junit,
        Self::Sarif,
        Self::Html,
        Self::Csv,
        Self::Perfetto,
        Self::Json,
        Self::Github,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Markdown => "markdown",
            Self::Junit => "junit",
            Self::Sarif => "sarif",
            Self::Html => "html",
            Self::Csv => "csv",
            Self::Perfetto => "perfetto",
            Self::Json => "json",
            Self::Github => "github",
        }
    }

    /// The format of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// The making of one format.
#[derive(Debug)]
pub struct Rendering {
    format: Format,
    /// For the formats that write as the calls come.
    stream: Option<Stream>,
}

#[derive(Debug)]
enum Stream {
    Csv(Calls),
    Perfetto(Box<Trace>),
}

impl Rendering {
    /// A rendering that has seen nothing yet.
    pub fn new(format: Format) -> Self {
        let stream = match format {
            Format::Csv => Some(Stream::Csv(Calls)),
            Format::Perfetto => Some(Stream::Perfetto(Box::default())),
            _ => None,
        };
        Self { format, stream }
    }

    /// What stands before everything. To be called once, before any log begins.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        match &mut self.stream {
            Some(Stream::Csv(calls)) => calls.begin(out),
            Some(Stream::Perfetto(trace)) => trace.begin(out),
            None => {}
        }
    }

    /// Takes what came out of the pipeline, after the report did.
    pub fn handle_output(&mut self, report: &Report, output: &Output, out: &mut Vec<u8>) {
        let (Some(stream), Some(open)) = (&mut self.stream, report.open()) else {
            return;
        };
        match stream {
            Stream::Csv(calls) => calls.handle_output(open, output, out),
            Stream::Perfetto(trace) => trace.handle_output(open, output, out),
        }
    }

    /// Says that the report's last log has ended.
    pub fn end_log(&mut self, report: &Report, out: &mut Vec<u8>) {
        if let (Some(Stream::Perfetto(trace)), Some(log)) = (&mut self.stream, report.logs.last()) {
            trace.end_log(log, out);
        }
    }

    /// What remains to be written, when all logs have ended.
    pub fn finish(&self, report: &Report, out: &mut Vec<u8>) {
        match self.format {
            Format::Text => text::render(report, out),
            Format::Markdown => markdown::render(report, out),
            Format::Junit => junit::render(report, out),
            Format::Sarif => sarif::render(report, out),
            Format::Html => html::render(report, out),
            Format::Json => json::render(report, out),
            Format::Github => github::render(report, out),
            Format::Csv => {}
            Format::Perfetto => Trace::finish(out),
        }
    }
}
