//! The operations of the record `form`. Written by `cargo generate`.

mod create_form;
mod delete_form;
mod list_forms;
mod read_form;
mod update_form;

pub use create_form::CreateForm;
pub use delete_form::DeleteForm;
pub use list_forms::ListForms;
pub use read_form::ReadForm;
pub use update_form::UpdateForm;
