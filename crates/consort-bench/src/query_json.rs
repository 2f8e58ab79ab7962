//! Queries about calls, as text and as JSON.

use std::{fmt::Display, str::FromStr};

use consort::{
    sync_modes::SyncModes,
    tune::{Collective, Query},
};
use consort_fabric::OperatorClass;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// Returns a query about a call; if it combines, it sums.
pub fn sums(
    collective: Collective,
    sync: SyncModes,
    pes: u32,
    bytes: usize,
    symmetric: bool,
) -> Query {
    let operator = OperatorClass::Commutative;
    Query { collective, sync, pes, bytes: bytes as u64, operator, symmetric }
}

/// Reads a value from its text.
pub fn read<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
}

/// Optional values, as their texts.
pub mod optional {
    use super::{Deserialize, Deserializer, Display, Error, FromStr, Serialize, Serializer};

    /// Serializes a value as its text.
    pub fn serialize<T: Display, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().map(ToString::to_string).serialize(serializer)
    }

    /// Reads a value from its text.
    pub fn deserialize<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

/// Serializes a value as its text.
pub fn shown<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// The JSON form of a query.
#[derive(Deserialize, Serialize)]
#[serde(remote = "Query")]
pub struct QueryJson {
    #[serde(serialize_with = "shown", deserialize_with = "read")]
    collective: Collective,
    #[serde(serialize_with = "shown", deserialize_with = "read")]
    sync: SyncModes,
    pes: u32,
    bytes: u64,
    #[serde(serialize_with = "shown", deserialize_with = "read")]
    operator: OperatorClass,
    symmetric: bool,
}
