//! What a policy makes of a run.

use std::collections::BTreeMap;

use super::{Allowance, Level, Policy};
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

/// What a policy objects to in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ruling {
    /// What is denied and what is told, in order of time, cut to the first thousand.
    pub objections: Vec<Objection>,
    /// How many are denied.
    pub denied: u64,
    /// How many are told.
    pub warned: u64,
    /// What should have been seen and was not.
    pub uncovered: Vec<String>,
}

/// Something that a policy does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// Whether it fails the run, or is told.
    pub level: Level,
    /// What it is about.
    pub subject: Subject,
    /// The finding, where it is about one.
    pub finding: Option<u32>,
    /// Which request, and how sure: ` #2 (confirmed)`; often empty.
    pub detail: String,
    /// One English sentence.
    pub message: String,
}

/// What a policy can object to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A finding of this rule.
    Rule(&'static str),
    /// A call that was pending too long.
    Pending,
    /// A server that worked on too long.
    Wasted,
    /// A server that may not be started.
    Server,
}

impl Subject {
    /// The rule's name, or the limit's: `limits.pending`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rule(name) => name,
            Self::Pending => "limits.pending",
            Self::Wasted => "limits.wasted",
            Self::Server => "limits.servers",
        }
    }

    /// All that there are.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let rules = verdict::rules().map(|rule| Self::Rule(rule.name));
        rules.chain([Self::Pending, Self::Wasted, Self::Server])
    }
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

impl Ruling {
    fn count(&mut self, objection: &Objection) {
        match objection.level {
            Level::Deny => self.denied += 1,
            Level::Warn => self.warned += 1,
            Level::Allow => {}
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::capture::Timestamp;
    use crate::jsonrpc::Frame;
    use crate::session::{Event, Observed};
    use crate::verdict::{Confidence, Culprit, Outcome, Severity};

    fn hello() -> Vec<Output> {
        let frames = [
            (
                Side::Client,
                r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientInfo":{"name":"codex-mcp-client","version":"1"}}}"#,
            ),
            (
                Side::Server,
                r#"{"jsonrpc":"2.0","id":0,"result":{"serverInfo":{"name":"files","version":"2"}}}"#,
            ),
        ];
        let frame = |text: &str| Frame::parse(Bytes::copy_from_slice(text.as_bytes()));
        let message = |(from, text)| {
            let event = Event::Message {
                conn: ConnId(1),
                from,
                offset: None,
                bytes: 1,
                frame: frame(text).expect("a frame"),
            };
            Output::Observed(Observed {
                at: Timestamp::ZERO,
                event,
            })
        };
        frames.into_iter().map(message).collect()
    }

    fn finding(confidence: Confidence) -> Output {
        Output::Derived(verdict::Output::Finding(Finding {
            at: Timestamp::ZERO,
            number: 1,
            rule: "abandoned-call",
            severity: Severity::Warning,
            confidence,
            side: Culprit::Host,
            conn: Some(ConnId(1)),
            id: Some(Id::Number("2".into())),
            method: Some("tools/call".into()),
            name: Some("slow".into()),
            message: "it did".into(),
            evidence: Vec::new(),
            spec: None,
            supersedes: None,
        }))
    }

    fn call(pending: u64, wasted: u64) -> Output {
        let at = Timestamp::from_nanos(pending * 1_000_000_000);
        Output::Derived(verdict::Output::Call(CallRecord {
            at,
            conn: ConnId(1),
            from: Side::Client,
            id: Id::Number("2".into()),
            method: "tools/call".into(),
            name: Some("slow".into()),
            sent: Timestamp::ZERO,
            ended: Some(at),
            outcome: Outcome::Abandoned,
            wasted: Some(std::time::Duration::from_secs(wasted)),
            request_bytes: 1,
            response_bytes: None,
            progress: 0,
            cancel: None,
        }))
    }

    fn rule(policy: &str, outputs: &[Output]) -> Ruling {
        let policy = Policy::parse(policy).expect("a policy");
        let mut inspection = Inspection::new(policy);
        for output in hello().iter().chain(outputs) {
            inspection.handle_output(output);
        }
        inspection.conclude()
    }

    fn level(policy: &str) -> Option<Level> {
        let ruling = rule(policy, &[finding(Confidence::Probable)]);
        ruling.objections.first().map(|objection| objection.level)
    }

    #[test]
    fn a_rule_goes_before_its_severity_and_confidence_softens_it() {
        assert_eq!(level(""), Some(Level::Warn));
        assert_eq!(level("[severity]\nwarning = \"deny\""), Some(Level::Deny));
        assert_eq!(level("[severity]\nwarning = \"allow\""), None);
        let deny = "[rules.abandoned-call]\nlevel = \"deny\"\n";
        assert_eq!(level(deny), Some(Level::Deny));
        assert_eq!(
            level(&format!("{deny}confidence = \"probable\"")),
            Some(Level::Deny)
        );
        assert_eq!(
            level(&format!("{deny}confidence = \"confirmed\"")),
            Some(Level::Warn)
        );
    }

    #[test]
    fn an_entry_allows_what_matches_all_that_it_names() {
        for (entry, allowed) in [
            ("", true),
            ("rule = \"abandoned-call\"", true),
            ("rule = \"late-cancel\"", false),
            (
                "host = \"codex*\"\nserver = \"files\"\ntool = \"s*w\"",
                true,
            ),
            ("host = \"codex*\"\nserver = \"other\"", false),
            ("tool = \"fast\"", false),
        ] {
            let policy = format!("[[allow]]\n{entry}");
            assert_eq!(level(&policy).is_none(), allowed, "{entry}");
        }
    }

    #[test]
    fn limits_are_denied_when_exceeded() {
        let limits = "[limits]\npending = 5\nwasted = \"2s\"\n";
        let subjects = |policy: &str, pending, wasted| {
            let ruling = rule(policy, &[call(pending, wasted)]);
            let subjects = ruling.objections.iter().map(|one| one.subject);
            (ruling.denied, subjects.collect::<Vec<_>>())
        };
        assert_eq!(subjects(limits, 5, 2), (0, vec![]));
        assert_eq!(
            subjects(limits, 6, 3),
            (2, vec![Subject::Pending, Subject::Wasted])
        );
        let allowed = format!("{limits}[[allow]]\nrule = \"limits.wasted\"");
        assert_eq!(subjects(&allowed, 6, 3), (1, vec![Subject::Pending]));
        assert_eq!(subjects("", 6_000, 6_000), (0, vec![]));
    }

    #[test]
    fn a_server_that_may_not_be_started_is_denied() {
        let ruling = rule("[limits]\nservers = [\"web\"]", &[]);
        assert_eq!(
            ruling.objections[0].message,
            "the server of connection 1, files 2, is not among those that may be started"
        );
        assert_eq!(rule("[limits]\nservers = [\"f*\"]", &[]), Ruling::default());
    }

    #[test]
    fn silence_is_not_success() {
        let summary = |messages, complete| {
            Output::Derived(verdict::Output::Summary(Summary {
                messages,
                complete,
                ..Summary::default()
            }))
        };
        assert_eq!(rule("", &[summary(0, true)]).uncovered.len(), 1);
        assert_eq!(rule("", &[summary(1, false)]).uncovered.len(), 0);
        let complete = "[coverage]\ncomplete = true";
        assert_eq!(rule(complete, &[summary(1, false)]).uncovered.len(), 1);
    }
}
