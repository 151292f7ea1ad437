//! `PUT /api/v1/form/{form_id}`: changes a form; absent fields keep their values.

use shared::prelude::*;

pub type UpdateForm = Update<Form>;
