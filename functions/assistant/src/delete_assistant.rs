//! `DELETE /api/v1/assistant/{assistant_id}`: removes an assistant.

use shared::prelude::*;

pub type DeleteAssistant = Delete<Assistant>;
