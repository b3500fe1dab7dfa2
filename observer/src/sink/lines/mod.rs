//! The human lines: what happens as it happens, and what it amounts to at the end.
//!
//! A row is `time  connection  word  text`; the word says what happened, in the audit log's
//! terms. [`View`](view::View) renders, without any I/O; [`Lines`] writes. Everything observed is
//! printed escaped and cut to a length.

mod finding;
mod message;
mod palette;
mod process;
mod row;
mod ruling;
mod view;

#[cfg(test)]
mod tests;

use std::time::Instant;

use super::{Outlet, WriteError};
use crate::pipeline::Output;
use crate::policy::Ruling;
use crate::verdict::Summary;
use palette::Palette;
use view::View;

/// How much is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Findings and the summary.
    Quiet,
    /// Connections, calls and how they end, and what disturbs them.
    #[default]
    Normal,
    /// Every message, and the evidence of the findings.
    Verbose,
}

/// Whether the lines are coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// With ANSI escapes.
    Ansi,
    /// Plain text.
    Plain,
}

/// Writes the human lines.
pub struct Lines {
    outlet: Outlet,
    view: View,
}

impl Lines {
    /// Lines that go to `outlet`.
    pub fn new(outlet: Outlet, detail: Detail, color: Color) -> Self {
        let palette = match color {
            Color::Ansi => Palette::ANSI,
            Color::Plain => Palette::PLAIN,
        };
        Self {
            outlet,
            view: View::new(detail, palette),
        }
    }

    /// Lines for rulings alone.
    pub fn rulings(outlet: Outlet, color: Color) -> Self {
        Self::new(outlet, Detail::Quiet, color)
    }

    /// Takes what came out of the pipeline.
    ///
    /// # Errors
    /// As [`Outlet::append`].
    pub fn handle_output(&mut self, output: &Output) -> Result<(), WriteError> {
        self.outlet.append(|lines| self.view.render(output, lines))
    }

    /// Takes an output that the live view shows: nothing is printed of it before [`Self::conclude`].
    pub fn pass_over(&mut self, output: &Output) {
        self.view.pass_over(output);
    }

    /// Prints what was passed over amounts to: the summary with its findings.
    ///
    /// # Errors
    /// As [`Outlet::append`].
    pub fn conclude(&mut self) -> Result<(), WriteError> {
        self.outlet.append(|lines| self.view.conclude(lines))
    }

    /// What a policy makes of the run, after its summary.
    ///
    /// # Errors
    /// As [`Outlet::append`].
    pub fn handle_ruling(&mut self, ruling: &Ruling) -> Result<(), WriteError> {
        self.outlet
            .append(|lines| ruling::after_summary(ruling, &self.view.palette, lines))
    }

    /// What a policy makes of a whole log, under a title.
    ///
    /// # Errors
    /// As [`Outlet::append`].
    pub fn append_ruling(
        &mut self,
        title: &str,
        summary: &Summary,
        ruling: &Ruling,
    ) -> Result<(), WriteError> {
        self.outlet
            .append(|lines| ruling::of_log(title, summary, ruling, &self.view.palette, lines))
    }

    /// See [`Outlet::flush_due`].
    ///
    /// # Errors
    /// As [`Outlet::flush`].
    pub fn flush_due(&mut self, now: Instant) -> Result<(), WriteError> {
        self.outlet.flush_due(now)
    }

    /// See [`Outlet::flush`].
    ///
    /// # Errors
    /// As [`Outlet::flush`].
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.outlet.flush()
    }
}
