//! The operations of the record `user`. Written by `cargo generate`.

mod get_agent_list;

pub use get_agent_list::GetAgentList;
