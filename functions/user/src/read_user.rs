//! `GET /api/v1/user/{user_id}`: a user.

use shared::prelude::*;

pub type ReadUser = Read<User>;
