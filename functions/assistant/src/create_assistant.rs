//! `POST /api/v1/assistant`: creates an assistant. Give it widgets, data sources and intents afterwards.

use shared::prelude::*;

pub type CreateAssistant = Create<Assistant>;
