//! Between the JSON of the requests and replies and the library's records.

use std::time::{Duration, SystemTime};

use rskafka::chrono::{DateTime, Utc};
use rskafka::record::{Record, RecordAndOffset};
use serde_json::{Value, json};

use crate::failure::Failure;

/// Return the time as records carry it; rskafka takes its clock from whoever uses it.
pub fn now() -> DateTime<Utc> {
    SystemTime::UNIX_EPOCH
        .elapsed()
        .ok()
        .and_then(millis)
        .unwrap_or_default()
}

fn millis(since_epoch: Duration) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(i64::try_from(since_epoch.as_millis()).ok()?)
}

/// Return a number that may be left out.
pub fn int(value: &Value) -> Result<Option<i32>, Failure> {
    Ok(value.as_i64().map(i32::try_from).transpose()?)
}

/// Return the bytes that a Latin-1 text stands for.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    value
        .as_str()
        .map(|text| text.chars().map(|character| character as u8).collect())
}

/// Return the Latin-1 text that stands for bytes.
fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Make a record; rskafka keeps headers in a map, so that of several with one name the last stays.
pub fn record(value: &Value) -> Record {
    let timestamp = value["timestamp"]
        .as_i64()
        .and_then(DateTime::from_timestamp_millis);
    let headers = value["headers"].as_array().into_iter().flatten();
    Record {
        key: bytes(&value["key"]),
        value: bytes(&value["value"]),
        headers: headers
            .map(|pair| {
                (
                    pair[0].as_str().unwrap_or_default().to_owned(),
                    bytes(&pair[1]).unwrap_or_default(),
                )
            })
            .collect(),
        timestamp: timestamp.unwrap_or_else(now),
    }
}

pub fn shown(topic: &str, partition: i32, read: &RecordAndOffset) -> Value {
    let record = &read.record;
    let headers = record
        .headers
        .iter()
        .map(|(name, value)| json!([name, text(value)]));
    json!({
        "topic": topic,
        "partition": partition,
        "offset": read.offset,
        "timestamp": record.timestamp.timestamp_millis(),
        "key": record.key.as_deref().map(text),
        "value": record.value.as_deref().map(text),
        "headers": headers.collect::<Value>(),
    })
}
