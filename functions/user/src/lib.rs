//! The operations of the record `user`. Written by `UPDATE=1 cargo test`.

mod get_agent_list;
mod read_user;

pub use get_agent_list::GetAgentList;
pub use read_user::ReadUser;
