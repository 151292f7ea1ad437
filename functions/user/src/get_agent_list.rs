//! `GET /api/v1/user/get_agent_list/`: a page of the organisation's users, oldest first. Use it to find the id of a
//! user.

use shared::prelude::*;

pub type GetAgentList = List<User>;
