//! `DELETE /api/v1/form/{form_id}`: deletes a form and its links to tags.

use shared::prelude::*;

pub type DeleteForm = Delete<Form>;
