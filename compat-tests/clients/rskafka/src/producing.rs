//! The operations that produce.

use std::collections::BTreeMap;
use std::sync::Arc;

use rskafka::client::partition::{Compression, PartitionClient};
use rskafka::record::Record;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::{Driver, wire};

impl Driver {
    /// Send one batch to each partition; return [partition, offset] of each record. Without a partition it is 0.
    pub async fn produce(&mut self, topic: &str, arguments: &Value) -> Result<Value, Failure> {
        let compression = match arguments["compression"].as_str() {
            None => Compression::NoCompression,
            Some("gzip") => Compression::Gzip,
            Some("snappy") => Compression::Snappy,
            Some("lz4") => Compression::Lz4,
            Some("zstd") => Compression::Zstd,
            Some(other) => return Err(Failure::new("Codec", other.to_owned())),
        };
        let mut batches: BTreeMap<i32, Vec<Record>> = BTreeMap::new();
        let mut order = Vec::new();
        for value in arguments["records"].as_array().into_iter().flatten() {
            let partition = wire::int(&value["partition"])?.unwrap_or(0);
            batches
                .entry(partition)
                .or_default()
                .push(wire::record(value));
            order.push(partition);
        }
        let mut offsets = BTreeMap::new();
        for (index, records) in batches {
            let sent = self
                .partition(topic, index)
                .await?
                .produce(records, compression)
                .await?;
            offsets.insert(index, sent.into_iter());
        }
        let in_order = order
            .iter()
            .map(|index| json!([index, offsets.get_mut(index).and_then(Iterator::next)]));
        Ok(in_order.collect())
    }
}

/// Produces numbered values, one at a time, until told to stop, and keeps what was acknowledged.
pub struct Background {
    acknowledged: watch::Receiver<Vec<Value>>,
    stopping: watch::Sender<bool>,
    task: JoinHandle<Result<(), Failure>>,
}

impl Background {
    pub fn start(partition: Arc<PartitionClient>) -> Self {
        let (publish, acknowledged) = watch::channel(Vec::new());
        let (stopping, stop) = watch::channel(false);
        let task = tokio::spawn(async move {
            for number in 0.. {
                if *stop.borrow() {
                    break;
                }
                let value = format!("number {number}");
                let record = Record {
                    key: None,
                    value: Some(value.clone().into_bytes()),
                    headers: BTreeMap::new(),
                    timestamp: wire::now(),
                };
                let offsets = partition
                    .produce(vec![record], Compression::NoCompression)
                    .await?;
                publish
                    .send_modify(|all| all.push(json!([partition.partition(), offsets[0], value])));
            }
            Ok(())
        });
        Self {
            acknowledged,
            stopping,
            task,
        }
    }

    /// Wait until `more` further records are acknowledged; return how many are in all.
    pub async fn wait_for(&mut self, more: usize) -> Result<Value, Failure> {
        let wanted = self.acknowledged.borrow().len() + more;
        let waited = self.acknowledged.wait_for(|all| all.len() >= wanted).await;
        let all = waited.map_err(|_| Failure::new("ProducerEnded", format!("before {wanted}")))?;
        Ok(json!(all.len()))
    }

    /// Stop, wait for what is in flight and return [partition, offset, value] of all acknowledged records.
    pub async fn finish(&mut self) -> Result<Value, Failure> {
        self.stopping.send_replace(true);
        (&mut self.task)
            .await
            .map_err(|error| Failure::new("Task", error.to_string()))??;
        Ok(Value::Array(self.acknowledged.borrow().clone()))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.task.abort();
    }
}
