//! `GET /api/v1/assistant/{assistant_id}`: one assistant.

use shared::prelude::*;

pub type ReadAssistant = Read<Assistant>;
