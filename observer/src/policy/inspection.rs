//! What a policy makes of a run.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::{Allowance, Level, Objection, Policy, Ruling, Subject};
use crate::jsonrpc::Id;
use crate::pipeline::Output;
use crate::record::Word;
use crate::session::{ConnId, Side};
use crate::verdict::{self, CallRecord, Finding, Summary};
use crate::wording::{Glob, Known, Parties, Sides, observed, span};

/// So many objections keep their words; of the others only the number counts.
const WORDED: usize = 1_000;

/// Names and sentences are cut to this many characters.
const LIMIT: usize = 400;

/// Sees a run and rules on it.
#[derive(Debug)]
pub struct Inspection {
    policy: Policy,
    parties: Parties,
    /// The findings that stand and are not allowed, by number.
    findings: BTreeMap<u32, Objection>,
    /// Limits that calls have exceeded.
    calls: Vec<Objection>,
    ruling: Ruling,
}

impl Inspection {
    /// An inspection that has seen nothing yet.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            parties: Parties::default(),
            findings: BTreeMap::new(),
            calls: Vec::new(),
            ruling: Ruling::default(),
        }
    }

    /// Takes what came out of the pipeline.
    pub fn handle_output(&mut self, output: &Output) {
        match output {
            Output::Observed(observed) => self.parties.handle_event(&observed.event),
            Output::Derived(verdict::Output::Call(call)) => self.handle_call(call),
            Output::Derived(verdict::Output::Finding(finding)) => self.handle_finding(finding),
            Output::Derived(verdict::Output::Summary(summary)) => self.handle_summary(summary),
            Output::GiveUp(_) | Output::Forget(_) => {}
        }
    }

    /// What the policy objects to. To be asked at the end: the summary must have come.
    pub fn conclude(mut self) -> Ruling {
        self.inspect_servers();
        let objections = self.findings.into_values().chain(self.calls);
        let mut ruling = self.ruling;
        for objection in objections {
            ruling.count(&objection);
            if ruling.objections.len() < WORDED {
                ruling.objections.push(objection);
            }
        }
        ruling
    }

    fn handle_finding(&mut self, finding: &Finding) {
        if let Some(earlier) = finding.supersedes {
            self.findings.remove(&earlier);
        }
        let sides = finding.conn.and_then(|conn| self.parties.of(conn));
        let level = self.policy.level(finding, sides);
        if level == Level::Allow {
            return;
        }
        let worded = self.findings.len() < WORDED;
        let objection = Objection {
            level,
            subject: Subject::Rule(finding.rule),
            finding: Some(finding.number),
            detail: match worded {
                true => format!(
                    "{} ({})",
                    number(finding.id.as_ref()),
                    finding.confidence.word()
                ),
                false => String::new(),
            },
            message: match worded {
                true => observed(&finding.message, LIMIT),
                false => String::new(),
            },
        };
        self.findings.insert(finding.number, objection);
    }

    fn handle_call(&mut self, call: &CallRecord) {
        if call.from != Side::Client {
            return;
        }
        let limits = &self.policy.limits;
        let pending = call.ended.unwrap_or(call.at).since(call.sent);
        let mut exceeded = Vec::new();
        if let Some(limit) = limits.pending.filter(|limit| pending > *limit) {
            let message = format!("was pending for {}, over {}", span(pending), span(limit));
            exceeded.push((Subject::Pending, message));
        }
        if let Some((wasted, limit)) = call.wasted.zip(limits.wasted)
            && wasted > limit
        {
            let message = format!(
                "kept the server at work for {} in vain, over {}",
                span(wasted),
                span(limit)
            );
            exceeded.push((Subject::Wasted, message));
        }
        for (subject, message) in exceeded {
            let sides = self.parties.of(call.conn);
            if self.policy.allows(subject, sides, call.name.as_deref()) {
                continue;
            }
            let title = match &call.name {
                Some(name) => format!("{} {name}", call.method),
                None => call.method.clone(),
            };
            let objection = Objection {
                level: Level::Deny,
                subject,
                finding: None,
                detail: number(Some(&call.id)),
                message: format!("{} {message}", observed(&title, LIMIT)),
            };
            match self.calls.len() < WORDED {
                true => self.calls.push(objection),
                false => self.ruling.count(&objection),
            }
        }
    }

    fn handle_summary(&mut self, summary: &Summary) {
        let coverage = self.policy.coverage;
        if coverage.traffic && summary.messages == 0 {
            let missing = "no MCP message was seen: silence is not success";
            self.ruling.uncovered.push(missing.into());
        }
        if coverage.complete && !summary.complete {
            let missing = "the evidence is incomplete: something went by unseen";
            self.ruling.uncovered.push(missing.into());
        }
    }

    /// At the end: a server may tell its name late.
    fn inspect_servers(&mut self) {
        let Some(servers) = &self.policy.limits.servers else {
            return;
        };
        for (conn, sides) in self.parties.iter() {
            let known = || sides.server.names();
            if known().next().is_none()
                || servers
                    .iter()
                    .any(|glob| known().any(|name| glob.matches(name)))
                || self.policy.allows(Subject::Server, Some(sides), None)
            {
                continue;
            }
            self.calls.push(Objection {
                level: Level::Deny,
                subject: Subject::Server,
                finding: None,
                detail: String::new(),
                message: unexpected(conn, sides),
            });
        }
    }
}

impl Policy {
    fn level(&self, finding: &Finding, sides: Option<&Sides>) -> Level {
        if self.allows(Subject::Rule(finding.rule), sides, finding.name.as_deref()) {
            return Level::Allow;
        }
        if self.fail_on.iter().any(|word| word.is_reached_by(finding)) {
            return Level::Deny;
        }
        let rule = self.rules.iter().find(|(name, _)| name.0 == finding.rule);
        match rule {
            None => self.severity.level(finding.severity),
            Some((_, rule)) => match rule.confidence {
                Some(least) if finding.confidence < least => rule.level.min(Level::Warn),
                _ => rule.level,
            },
        }
    }

    fn allows(&self, subject: Subject, sides: Option<&Sides>, tool: Option<&str>) -> bool {
        self.allow
            .iter()
            .any(|entry| entry.matches(subject, sides, tool))
    }
}

impl Allowance {
    /// Whether all that it names is so. What is not known matches nothing.
    fn matches(&self, subject: Subject, sides: Option<&Sides>, tool: Option<&str>) -> bool {
        let side = |glob: &Option<Glob>, known: Option<&Known>| {
            glob.as_ref().is_none_or(|glob| {
                known.is_some_and(|known| known.names().any(|name| glob.matches(name)))
            })
        };
        self.rule.as_ref().is_none_or(|rule| rule.0 == subject)
            && side(&self.host, sides.map(|sides| &sides.host))
            && side(&self.server, sides.map(|sides| &sides.server))
            && self
                .tool
                .as_ref()
                .is_none_or(|glob| tool.is_some_and(|tool| glob.matches(tool)))
    }
}

fn number(id: Option<&Id>) -> String {
    id.map(|id| format!(" #{}", observed(&id.to_string(), 40)))
        .unwrap_or_default()
}

fn unexpected(conn: ConnId, sides: &Sides) -> String {
    let title = sides.server.title();
    let program = sides.server.program.as_ref().filter(|own| **own != title);
    let program = program.map(|own| format!(" ({own})")).unwrap_or_default();
    format!(
        "the server of connection {conn}, {title}{program}, is not among those that may be started"
    )
}
