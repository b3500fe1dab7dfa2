//! One HTML file, complete in itself: no script, no network, light or dark as the reader has it.

mod tables;
mod timeline;

use std::fmt::{self, Display, Write};

use super::build::Report;
use super::model::{Log, Standing, heading};
use crate::policy::Level;
use crate::record::Word;
use crate::verdict::{Finding, Outcome, Severity};
use crate::wording::{count, observed, size, span, time};

const STYLE: &str = include_str!("style.css");

/// So many findings are shown.
const FINDINGS: usize = 500;

pub(super) fn render(report: &Report, out: &mut Vec<u8>) {
    let mut page = String::new();
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>MCP calls: {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
        report.standing().word()
    );
    let _ = writeln!(
        page,
        "<header>\n<h1>MCP calls {}</h1>\n{}</header>\n<main>",
        badge(report.standing()),
        contents(report)
    );
    for (place, log) in report.logs.iter().enumerate() {
        section(place, log, &mut page);
    }
    let _ = writeln!(
        page,
        "</main>\n<footer>Made by observer {} from audit logs. Times are seconds since a log's \
         beginning.</footer>\n</body>\n</html>",
        env!("CARGO_PKG_VERSION")
    );
    out.extend_from_slice(page.as_bytes());
}

/// Where there are several logs, what became of each.
fn contents(report: &Report) -> String {
    if report.logs.len() < 2 {
        return String::new();
    }
    let mut list = String::from("<ul>\n");
    for (place, log) in report.logs.iter().enumerate() {
        let _ = writeln!(
            list,
            "<li><a href=\"#log{place}\">{}</a> {} calls {}</li>",
            Escaped(&log.name),
            badge(log.standing),
            Escaped(&log.outcomes())
        );
    }
    list.push_str("</ul>\n");
    list
}

/// Writing into a String cannot fail.
fn section(place: usize, log: &Log, out: &mut String) {
    let _ = writeln!(
        out,
        "<section id=\"log{place}\">\n<h2>{} {}</h2>",
        Escaped(&log.name),
        badge(log.standing)
    );
    for fault in log.faults.iter().chain(&log.ruling.uncovered) {
        let _ = writeln!(out, "<p class=\"error\">{}</p>", Escaped(fault));
    }
    facts(log, out);
    findings(log, out);
    timeline::draw(log, out);
    tables::connections(log, out);
    tables::tools(log, out);
    tables::calls(log, out);
    tables::objections(log, out);
    tables::loss(log, out);
    out.push_str("</section>\n");
}

fn facts(log: &Log, out: &mut String) {
    let header = &log.header;
    let summary = &log.summary;
    let mut facts = vec![
        ("calls", log.outcomes()),
        (
            "traffic",
            format!(
                "{}, {}",
                count(summary.messages, "message"),
                size(summary.bytes)
            ),
        ),
        ("evidence", log.evidence()),
        ("length", span(log.length())),
        ("seen by", header.backend.word().to_owned()),
    ];
    for (title, fact) in [
        ("started", Some(&header.started)),
        ("platform", header.platform.as_ref()),
        ("kernel", header.kernel.as_ref()),
    ] {
        if let Some(fact) = fact.filter(|fact| !fact.is_empty()) {
            facts.push((title, observed(fact, 80)));
        }
    }
    out.push_str("<dl class=\"facts\">\n");
    for (title, fact) in facts {
        let _ = writeln!(
            out,
            "<div><dt>{title}</dt><dd>{}</dd></div>",
            Escaped(&fact)
        );
    }
    out.push_str("</dl>\n");
}

fn findings(log: &Log, out: &mut String) {
    out.push_str("<h3>Findings</h3>\n");
    if log.findings.is_empty() {
        out.push_str("<p class=\"good\">none</p>\n");
    }
    let findings = log.worst_first();
    for finding in findings.iter().take(FINDINGS) {
        details(log, finding, out);
    }
    let more = findings.len().saturating_sub(FINDINGS) as u64 + log.findings_left_out;
    tables::more(more, out);
}

/// A finding, with its evidence to unfold.
fn details(log: &Log, finding: &Finding, out: &mut String) {
    let (class, word) = (severity_class(finding.severity), finding.severity.word());
    let level = match log.level(finding.number) {
        Level::Deny => " <span class=\"badge error\">denied</span>",
        Level::Warn | Level::Allow => "",
    };
    let open = match finding.severity {
        Severity::Error => " open",
        Severity::Warning | Severity::Info => "",
    };
    let _ = writeln!(
        out,
        "<details id=\"finding{}\"{open}>\n<summary><span class=\"badge {class}\">{word}</span> \
         <strong>{}</strong>{level} {}</summary>\n<div>",
        finding.number,
        Escaped(&heading(finding)),
        Escaped(&finding.message)
    );
    if let Some(sides) = finding.conn.and_then(|conn| log.sides(conn)) {
        let _ = writeln!(out, "<p class=\"dim\">{}</p>", Escaped(&sides));
    }
    if !finding.evidence.is_empty() {
        out.push_str("<table>\n<tbody>\n");
        for evidence in &finding.evidence {
            let _ = writeln!(
                out,
                "<tr><td class=\"number\">{}</td><th scope=\"row\">{}</th><td>{}</td></tr>",
                time(evidence.at),
                Escaped(evidence.kind),
                Escaped(&evidence.detail)
            );
        }
        out.push_str("</tbody>\n</table>\n");
    }
    if let Some(spec) = &finding.spec {
        let _ = writeln!(out, "<p class=\"dim\">MCP {}</p>", Escaped(spec));
    }
    out.push_str("</div>\n</details>\n");
}

fn badge(standing: Standing) -> String {
    let class = match standing {
        Standing::Passed => "good",
        Standing::Denied => "error",
        Standing::NotShown => "warning",
    };
    format!("<span class=\"badge {class}\">{}</span>", standing.word())
}

const fn severity_class(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

const fn outcome_class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Answered => "good",
        Outcome::Abandoned => "error",
        Outcome::Failed | Outcome::Unknown => "warning",
        Outcome::Cancelled | Outcome::TornDown | Outcome::Pending => "note",
    }
}

/// Text that a browser shows as it is, in an element and in a quoted attribute.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            f.write_str(&rest[..at])?;
            f.write_str(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'"' => "&quot;",
                _ => "&#39;",
            })?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observed_text_is_never_markup() {
        assert_eq!(
            Escaped("<img src=x onerror='a(\"&\")'>é").to_string(),
            "&lt;img src=x onerror=&#39;a(&quot;&amp;&quot;)&#39;&gt;é"
        );
    }
}
