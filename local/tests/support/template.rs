//! The template as a JSON value.

use std::sync::LazyLock;

use local::template::document;
use repository::read;
use serde_json::Value;

/// The whole template. To parse it takes a tenth of a second.
pub static TEMPLATE: LazyLock<Value> = LazyLock::new(|| document(&read("template.yaml")).unwrap());
