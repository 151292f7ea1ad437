//! The operations of the record `event`. Written by `cargo generate`.

mod list_event_types;
mod list_events;
mod read_event;

pub use list_event_types::ListEventTypes;
pub use list_events::ListEvents;
pub use read_event::ReadEvent;
