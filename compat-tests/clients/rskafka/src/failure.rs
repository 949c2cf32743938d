//! Why an operation failed, in the shape that the tests read.

use std::fmt::Debug;

use rskafka::client::error::{Error, ProtocolError};
use serde_json::{Value, json};

#[derive(Debug)]
pub struct Failure {
    kind: String,
    code: Option<i16>,
    message: String,
}

impl Failure {
    pub fn new(kind: &str, message: String) -> Self {
        Self {
            kind: kind.to_owned(),
            code: None,
            message,
        }
    }

    pub fn to_json(&self) -> Value {
        json!({"kind": self.kind, "code": self.code, "message": self.message})
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::ServerError { protocol_error, .. } => code_of(*protocol_error),
            _ => None,
        };
        Self {
            kind: "rskafka".to_owned(),
            code,
            message: error.to_string(),
        }
    }
}

/// Return Kafka's number, of which the library only makes errors and never the other way.
fn code_of(error: ProtocolError) -> Option<i16> {
    (-1..=200).find(|code| ProtocolError::new(*code) == Some(error))
}

impl From<std::num::TryFromIntError> for Failure {
    fn from(error: std::num::TryFromIntError) -> Self {
        Self::new("Number", error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new("Pipe", error.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new("Json", error.to_string())
    }
}
