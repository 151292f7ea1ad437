//! The operations of the record `widget`. Written by `cargo generate`.

mod create_widget;
mod delete_widget;
mod list_widgets;
mod read_widget;
mod update_widget;

pub use create_widget::CreateWidget;
pub use delete_widget::DeleteWidget;
pub use list_widgets::ListWidgets;
pub use read_widget::ReadWidget;
pub use update_widget::UpdateWidget;
