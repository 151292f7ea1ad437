//! The operations of the record `form`. Written by `cargo generate`.

mod delete_forms;

pub use delete_forms::DeleteForms;
