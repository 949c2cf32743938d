//! The operations that read, or change where reading begins.

use rskafka::client::partition::OffsetAt;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::{Driver, TIMEOUT_MS, wire};

const MAX_WAIT_MS: i32 = 500;
const MAX_FETCH_BYTES: i32 = 4 << 20;

impl Driver {
    /// Return every record between the beginning and the end of the topic, by partition and offset.
    pub async fn read_all(&mut self, topic: &str) -> Result<Value, Failure> {
        let mut all = Vec::new();
        for index in 0..self.count_partitions(topic).await? {
            let partition = self.partition(topic, index).await?;
            let mut offset = partition.get_offset(OffsetAt::Earliest).await?;
            let end = partition.get_offset(OffsetAt::Latest).await?;
            while offset < end {
                let (records, _) = partition
                    .fetch_records(offset, 1..MAX_FETCH_BYTES, MAX_WAIT_MS)
                    .await?;
                all.extend(
                    records
                        .iter()
                        .map(|record| wire::shown(topic, index, record)),
                );
                offset = records.last().map_or(offset, |record| record.offset + 1);
            }
        }
        Ok(Value::Array(all))
    }

    /// Return [beginning, end] of each partition.
    pub async fn offset_range(&mut self, topic: &str) -> Result<Value, Failure> {
        let mut ranges = Vec::new();
        for index in 0..self.count_partitions(topic).await? {
            let partition = self.partition(topic, index).await?;
            let earliest = partition.get_offset(OffsetAt::Earliest).await?;
            let latest = partition.get_offset(OffsetAt::Latest).await?;
            ranges.push(json!([earliest, latest]));
        }
        Ok(Value::Array(ranges))
    }

    /// Delete what lies before an offset; return the partition's new beginning.
    pub async fn delete_records(
        &mut self,
        topic: &str,
        arguments: &Value,
    ) -> Result<Value, Failure> {
        let index = wire::int(&arguments["partition"])?.unwrap_or_default();
        let partition = self.partition(topic, index).await?;
        let before = arguments["before"].as_i64().unwrap_or_default();
        partition.delete_records(before, TIMEOUT_MS).await?;
        Ok(json!(partition.get_offset(OffsetAt::Earliest).await?))
    }
}
