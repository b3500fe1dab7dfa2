//! Options that change a verdict, shared by all subcommands that judge.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use crate::verdict::{KnownHost, Settings};
use crate::wording::parse_duration;

/// Options that change a verdict. They stand in the log's header.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Verdicts")]
pub struct SettingsArgs {
    /// How long a host may take to cancel after an interrupt or a time limit [default: 2s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    pub grace: Option<Duration>,
    /// A time limit that you know the host to have for a tool (`*`: for every other tool)
    ///
    /// A call that is pending beyond it without a cancellation counts as evidence. Can be given
    /// several times.
    #[arg(long, value_name = "TOOL=DURATION", value_parser = parse_deadline)]
    pub deadline: Vec<(String, Duration)>,
    /// Hosts that you know more of, in the form of the observer's own `hosts.toml`
    ///
    /// They come before the built-in ones. Can be given several times.
    #[arg(long, value_name = "FILE", value_parser = read_hosts)]
    pub hosts: Vec<Arc<[KnownHost]>>,
    /// Everything that changes a verdict, as TOML; the other options come after it
    #[arg(long, value_name = "FILE", value_parser = read_settings)]
    pub settings: Option<Box<Settings>>,
}

impl SettingsArgs {
    /// Whether a file was given.
    pub(super) fn reads_files(&self) -> bool {
        !self.hosts.is_empty() || self.settings.is_some()
    }

    /// The same again, as words of a command line; without what was read from files.
    pub(super) fn words(&self) -> impl Iterator<Item = OsString> + '_ {
        let seconds = |limit: Duration| format!("{}s", limit.as_secs_f64());
        let grace = self.grace.map(|grace| ["--grace".into(), seconds(grace)]);
        let deadlines = self
            .deadline
            .iter()
            .map(move |(tool, limit)| ["--deadline".into(), format!("{tool}={}", seconds(*limit))]);
        grace
            .into_iter()
            .chain(deadlines)
            .flatten()
            .map(OsString::from)
    }

    /// `base`, with what was given here in its place.
    pub fn apply(&self, mut base: Settings) -> Settings {
        if let Some(settings) = &self.settings {
            base = Settings::clone(settings);
        }
        base.hosts.splice(
            0..0,
            self.hosts.iter().flat_map(|hosts| hosts.iter().cloned()),
        );
        if let Some(grace) = self.grace {
            base.grace = grace;
        }
        base.deadlines.extend(self.deadline.iter().cloned());
        base
    }
}

fn read_hosts(file: &str) -> Result<Arc<[KnownHost]>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let hosts = KnownHost::read_all(&text).map_err(|error| error.to_string())?;
    Ok(hosts.into())
}

fn read_settings(file: &str) -> Result<Box<Settings>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    toml::from_str(&text)
        .map(Box::new)
        .map_err(|error| error.to_string())
}

fn parse_deadline(text: &str) -> Result<(String, Duration), String> {
    match text.rsplit_once('=') {
        Some((tool, limit)) if !tool.is_empty() => Ok((tool.into(), parse_duration(limit)?)),
        _ => Err("give a tool and a duration: slow=30s".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_names_its_tool() {
        assert_eq!(
            parse_deadline("a=b=2s"),
            Ok(("a=b".into(), Duration::from_secs(2)))
        );
        for text in ["slow", "=2s", "slow=", "slow=soon"] {
            assert!(parse_deadline(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_given_takes_the_place_of_what_was() {
        let base = Settings {
            deadlines: [("a".into(), Duration::ZERO)].into(),
            ..Settings::default()
        };
        let args = SettingsArgs {
            grace: None,
            deadline: vec![
                ("a".into(), Duration::from_secs(1)),
                ("b".into(), Duration::ZERO),
            ],
            ..SettingsArgs::default()
        };
        let settings = args.apply(base.clone());
        assert_eq!(settings.grace, base.grace);
        assert_eq!(settings.deadlines["a"], Duration::from_secs(1));
        assert_eq!(settings.deadlines.len(), 2);
    }

    #[test]
    fn files_describe_hosts_and_settings() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let host = "[[host]]\nname = \"mine\"\ntitle = \"Mine\"\nlimit = 9\n";
        let args = SettingsArgs {
            hosts: vec![read_hosts(&file("hosts.toml", host)).unwrap()],
            settings: read_settings(&file(
                "settings.toml",
                "grace = 3\n[deadlines]\nslow = 30\n",
            ))
            .ok(),
            ..SettingsArgs::default()
        };
        let settings = args.apply(Settings::default());
        assert_eq!(settings.grace, Duration::from_secs(3));
        assert_eq!(settings.deadlines["slow"], Duration::from_secs(30));
        assert_eq!(settings.hosts[0].title, "Mine");
        assert!(
            read_hosts(&file("bad.toml", &format!("{host}nickname = 1\n")))
                .unwrap_err()
                .contains("nickname")
        );
        assert!(read_settings("/nowhere/at/all").is_err());
    }
}
