//! The operations of the record `user`. Written by `cargo generate`.

mod create_user;
mod delete_user;
mod get_agent_list;
mod read_user;
mod update_user;

pub use create_user::CreateUser;
pub use delete_user::DeleteUser;
pub use get_agent_list::GetAgentList;
pub use read_user::ReadUser;
pub use update_user::UpdateUser;
