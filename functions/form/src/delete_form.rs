//! `DELETE /api/v1/form/{form_id}`: removes a form.

use shared::prelude::*;

pub type DeleteForm = Delete<Form>;
