//! The operations of the record `user`. Written by `UPDATE=1 cargo test`.

mod get_agent_list;

pub use get_agent_list::GetAgentList;
