//! `POST /api/v1/assistant`: makes an assistant.

use shared::prelude::*;

pub type CreateAssistant = Create<Assistant>;
