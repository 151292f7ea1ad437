//! `GET /api/v1/user/get_agent_list/`: a page of the organisation's users, oldest first.

use shared::prelude::*;

pub type GetAgentList = List<User>;
