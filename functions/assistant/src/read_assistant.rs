//! `GET /api/v1/assistant/{assistant_id}`: an assistant.

use shared::prelude::*;

pub type ReadAssistant = Read<Assistant>;
