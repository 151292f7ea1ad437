//! `GET /api/v1/form/{form_id}`: one form.

use shared::prelude::*;

pub type ReadForm = Read<Form>;
