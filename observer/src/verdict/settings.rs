//! All that changes a verdict, in one value: it stands in the log's header, so that a replay can
//! judge as the live run did.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::host::KnownHost;

/// The judge's settings. In JSON and TOML every duration is a number of seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// How long a host may take to send the cancellation after an interrupt or a time limit.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub grace: Duration,
    /// Time limits that the user knows the host to have, by tool name. `*` stands for every tool
    /// that is not named.
    #[serde(with = "seconds_by_name")]
    #[schemars(with = "BTreeMap<String, f64>")]
    pub deadlines: BTreeMap<String, Duration>,
    /// How far the records of two processes may be out of order: an answer may be recorded this
    /// long before its request, or after the request that followed it.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub reorder: Duration,
    /// Equal calls that are sent within this time of each other are one burst, not a retry.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub burst: Duration,
    /// After this time an equal call is a retry also where nothing is known of the host.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub retry: Duration,
    /// How long a cancellation may lag behind the retry that it belongs to.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub lag: Duration,
    /// How long answers, progress and cancellations may cross each other on their way.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub race: Duration,
    /// How long after Ctrl-C a host may take to leave before its calls count as abandoned.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub shutdown: Duration,
    /// How long a server may live on after its stdin was closed.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub orphan: Duration,
    /// How long a host may leave a server's request open once the call it belonged to is over.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub nested: Duration,
    /// How soon after a teardown a new server counts as the old one's replacement.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub restart: Duration,
    /// How long a task may go without a poll, at least.
    #[serde(with = "seconds")]
    #[schemars(with = "f64")]
    pub task: Duration,
    /// Hosts that the user describes, before those that the observer knows itself.
    pub hosts: Vec<KnownHost>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(2),
            deadlines: BTreeMap::new(),
            reorder: Duration::from_millis(250),
            burst: Duration::from_millis(1500),
            retry: Duration::from_secs(5),
            lag: Duration::from_millis(500),
            race: Duration::from_millis(500),
            shutdown: Duration::from_secs(5),
            orphan: Duration::from_secs(10),
            nested: Duration::from_secs(5),
            restart: Duration::from_secs(30),
            task: Duration::from_secs(60),
            hosts: Vec::new(),
        }
    }
}

impl Settings {
    /// The time limit that the user knows for a tool.
    pub fn deadline(&self, tool: &str) -> Option<Duration> {
        self.deadlines
            .get(tool)
            .or_else(|| self.deadlines.get("*"))
            .copied()
    }
}

/// A duration as a number of seconds.
pub(super) mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(in super::super) fn serialize<S: Serializer>(
        duration: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        Duration::try_from_secs_f64(f64::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// A duration as a number of seconds, or nothing.
pub(super) mod seconds_or_none {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(in super::super) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        duration
            .map(|duration| duration.as_secs_f64())
            .serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Option::<f64>::deserialize(deserializer)?
            .map(|seconds| Duration::try_from_secs_f64(seconds).map_err(D::Error::custom))
            .transpose()
    }
}

/// Durations by name, as numbers of seconds.
mod seconds_by_name {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(
        durations: &BTreeMap<String, Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let seconds: BTreeMap<&str, f64> = durations
            .iter()
            .map(|(name, limit)| (name.as_str(), limit.as_secs_f64()))
            .collect();
        seconds.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<String, Duration>, D::Error> {
        BTreeMap::<String, f64>::deserialize(deserializer)?
            .into_iter()
            .map(|(name, seconds)| {
                let limit = Duration::try_from_secs_f64(seconds).map_err(D::Error::custom)?;
                Ok((name, limit))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_the_header() {
        let settings = Settings {
            grace: Duration::from_millis(1500),
            deadlines: BTreeMap::from([("slow".into(), Duration::from_secs(30))]),
            ..Settings::default()
        };
        let json = serde_json::to_string(&settings).unwrap();
        assert!(
            json.contains(r#""grace":1.5"#) && json.contains(r#""slow":30.0"#),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<Settings>(&json).unwrap(), settings);
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let settings: Settings = serde_json::from_str(r#"{"deadlines":{"*":2}}"#).unwrap();
        assert_eq!(settings.grace, Duration::from_secs(2));
        assert_eq!(settings.deadline("any"), Some(Duration::from_secs(2)));
    }

    #[test]
    fn a_negative_duration_is_refused() {
        assert!(serde_json::from_str::<Settings>(r#"{"grace":-1}"#).is_err());
    }
}
