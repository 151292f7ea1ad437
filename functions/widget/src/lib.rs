//! The operations of the record `widget`. Written by `cargo generate`.

mod update_widget;

pub use update_widget::UpdateWidget;
