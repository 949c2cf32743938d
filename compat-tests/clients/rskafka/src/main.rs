//! rskafka, a client in Rust alone: the loop of the driver, as `clients/serving/serving.py` describes it.
//!
//! The argument is the broker's address. rskafka has no groups, no partitioner and no settings of topics.

mod failure;
mod producing;
mod reading;
mod wire;

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

use rskafka::BackoffConfig;
use rskafka::client::partition::{PartitionClient, UnknownTopicHandling};
use rskafka::client::{Client, ClientBuilder};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::producing::Background;

const TIMEOUT_MS: i32 = 30_000;
const RETRY_FOR: Duration = Duration::from_secs(90);

/// What the operations work on: one client, and a client of each partition that was used.
struct Driver {
    client: Client,
    partitions: HashMap<(String, i32), Arc<PartitionClient>>,
    background: Option<Background>,
}

impl Driver {
    async fn open(bootstrap: String) -> Result<Self, Failure> {
        let backoff = BackoffConfig {
            max_backoff: Duration::from_millis(500),
            deadline: Some(RETRY_FOR),
            ..BackoffConfig::default()
        };
        let client = ClientBuilder::new(vec![bootstrap])
            .backoff_config(backoff)
            .build()
            .await?;
        Ok(Self {
            client,
            partitions: HashMap::new(),
            background: None,
        })
    }

    /// Return the client of a partition, which tries again where a broker that has just started knows no topic yet.
    async fn partition(
        &mut self,
        topic: &str,
        index: i32,
    ) -> Result<Arc<PartitionClient>, Failure> {
        let key = (topic.to_owned(), index);
        if let Some(partition) = self.partitions.get(&key) {
            return Ok(Arc::clone(partition));
        }
        let partition = Arc::new(
            self.client
                .partition_client(topic, index, UnknownTopicHandling::Retry)
                .await?,
        );
        self.partitions.insert(key, Arc::clone(&partition));
        Ok(partition)
    }

    async fn count_partitions(&self, topic: &str) -> Result<i32, Failure> {
        let topics = self.client.list_topics().await?;
        let found = topics.iter().find(|one| one.name == topic);
        let found = found.ok_or_else(|| Failure::new("UnknownTopic", topic.to_owned()))?;
        Ok(i32::try_from(found.partitions.len())?)
    }

    async fn run(&mut self, operation: &str, arguments: &Value) -> Result<Value, Failure> {
        let topic = arguments["topic"].as_str().unwrap_or_default();
        match operation {
            "create_topic" => {
                let partitions = wire::int(&arguments["partitions"])?.unwrap_or(1);
                self.client
                    .controller_client()?
                    .create_topic(topic, partitions, 1, TIMEOUT_MS)
                    .await?;
                Ok(Value::Null)
            }
            "delete_topic" => {
                self.client
                    .controller_client()?
                    .delete_topic(topic, TIMEOUT_MS)
                    .await?;
                Ok(Value::Null)
            }
            "list_topics" => {
                let topics = self.client.list_topics().await?;
                Ok(topics.into_iter().map(|topic| topic.name).collect())
            }
            "count_partitions" => Ok(json!(self.count_partitions(topic).await?)),
            "produce" => self.produce(topic, arguments).await,
            "start_producing" => {
                self.background = Some(Background::start(self.partition(topic, 0).await?));
                Ok(Value::Null)
            }
            "wait_acknowledged" => {
                let more = wire::int(&arguments["more"])?.unwrap_or_default();
                self.background()?.wait_for(usize::try_from(more)?).await
            }
            "finish_producing" => self.background()?.finish().await,
            "read_all" => self.read_all(topic).await,
            "offset_range" => self.offset_range(topic).await,
            "delete_records" => self.delete_records(topic, arguments).await,
            "reset" => {
                self.background = None;
                self.partitions.clear();
                Ok(Value::Null)
            }
            _ => Err(Failure::new("NoSuchOperation", operation.to_owned())),
        }
    }

    fn background(&mut self) -> Result<&mut Background, Failure> {
        self.background
            .as_mut()
            .ok_or_else(|| Failure::new("NotProducing", String::new()))
    }
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let bootstrap = std::env::args()
        .nth(1)
        .ok_or_else(|| Failure::new("NoAddress", String::new()))?;
    let mut driver = Driver::open(bootstrap).await?;
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        let operation = request["operation"].as_str().unwrap_or_default();
        let reply = match driver.run(operation, &request["arguments"]).await {
            Ok(result) => json!({"id": request["id"], "result": result}),
            Err(failure) => {
                eprintln!("{operation}: {failure:?}");
                json!({"id": request["id"], "error": failure.to_json()})
            }
        };
        let mut replies = std::io::stdout().lock();
        writeln!(replies, "{reply}")?;
        replies.flush()?;
    }
    Ok(())
}
