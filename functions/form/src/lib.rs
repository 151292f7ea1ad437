//! The operations of the record `form`. Written by `UPDATE=1 cargo test`.

mod delete_form;

pub use delete_form::DeleteForm;
