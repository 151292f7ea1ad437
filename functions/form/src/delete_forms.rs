//! `DELETE /api/v1/form/multiple`: deletes up to 500 forms, each as `delete-form` does. The answer has a result for each.

use shared::prelude::*;

pub type DeleteForms = DeleteMany<Form>;
