//! `GET /api/v1/form/{form_id}`: a form.

use shared::prelude::*;

pub type ReadForm = Read<Form>;
