//! The operations of the record `widget`. Written by `cargo generate`.

mod create_widget;
mod rotate_widget_secret;
mod update_widget;

pub use create_widget::CreateWidget;
pub use rotate_widget_secret::RotateWidgetSecret;
pub use update_widget::UpdateWidget;
