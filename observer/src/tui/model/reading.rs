//! The pages of text: what each of them shows.

use std::collections::BTreeSet;

use super::doc::{Fold, Ink, Line, Page};
use super::{Model, details, diff};
use crate::session::ConnId;
use crate::tui::keys::{KEYS, Place};

use super::query::FIELDS;

/// What a page is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Call(u32),
    Finding(u32),
    Frame(u32),
    Connection(ConnId),
    /// The marked message, and another.
    Compare(u32, u32),
    Help,
}

/// No line of prose is longer than this; it would be hard to read.
const WIDEST: usize = 110;

impl Model {
    /// The lines of a page as it is now.
    pub(crate) fn page(&self, subject: Subject, folded: &BTreeSet<Fold>) -> Vec<Line> {
        let columns = usize::from(self.size.0).saturating_sub(2).clamp(20, WIDEST);
        let mut page = Page::new(columns);
        match subject {
            Subject::Call(number) => details::call(&mut page, self, number, folded),
            Subject::Finding(at) => details::finding(&mut page, self, at, folded),
            Subject::Frame(number) => details::frame(&mut page, self, number, folded),
            Subject::Connection(conn) => details::connection(&mut page, self, conn),
            Subject::Compare(one, other) => diff::compare(&mut page, &self.ledger, one, other),
            Subject::Help => help(&mut page),
        }
        page.lines
    }

    /// What a page is called.
    pub(crate) fn page_title(&self, subject: Subject) -> String {
        match subject {
            Subject::Call(_) => "Call".into(),
            Subject::Finding(at) => {
                let found = self.ledger.findings.get(at as usize);
                found.map_or("Finding".into(), |found| {
                    format!("Finding {}", found.finding.number)
                })
            }
            Subject::Frame(_) => "Frame".into(),
            Subject::Connection(conn) => format!("Connection {conn}"),
            Subject::Compare(..) => "Comparison".into(),
            Subject::Help => "Help".into(),
        }
    }

    /// The frames whose text a page shows.
    pub(crate) fn frames_of(&self, subject: Subject) -> Vec<u32> {
        match subject {
            Subject::Call(number) => self.ledger.calls.get(number).map_or(Vec::new(), |call| {
                [call.request, call.answer, call.cancellation]
                    .into_iter()
                    .flatten()
                    .collect()
            }),
            Subject::Finding(at) => {
                let call = self
                    .ledger
                    .findings
                    .get(at as usize)
                    .and_then(|found| found.call);
                call.map_or(Vec::new(), |call| self.frames_of(Subject::Call(call)))
            }
            Subject::Frame(number) => vec![number],
            Subject::Compare(one, other) => vec![one, other],
            Subject::Connection(_) | Subject::Help => Vec::new(),
        }
    }
}

fn help(page: &mut Page) {
    page.prose(
        0,
        Ink::Plain,
        "Observer shows the calls between MCP hosts and servers, and how each of them ended. It \
         only looks: nothing that you do here reaches the observed programs.",
    );
    for place in Place::ALL {
        page.heading(place.title());
        for binding in KEYS.iter().filter(|binding| binding.place == place) {
            let names = format!("{:<22}", binding.names());
            let help = binding.help.into();
            page.hanging(2, 24, vec![(Ink::Key, names), (Ink::Plain, help)]);
        }
    }
    page.heading("The filter");
    page.prose(
        2,
        Ink::Plain,
        "Terms are separated by blanks, and all of them must hold. A word is looked for in names, \
         ids, outcomes, rules. field:value asks for a field, commas separate alternatives, - \
         before a term turns it round, quotes hold words together.",
    );
    page.prose(
        2,
        Ink::Text,
        "outcome:abandoned,failed -tool:slow took>5s \"two words\"",
    );
    for (field, meaning) in FIELDS {
        let name = format!("{field:<12}");
        page.hanging(2, 14, vec![(Ink::Key, name), (Ink::Plain, meaning.into())]);
    }
}
