//! The operations of the record `user`. Written by `cargo generate`.

mod get_agent_list;
mod read_own_user;

pub use get_agent_list::GetAgentList;
pub use read_own_user::ReadOwnUser;
