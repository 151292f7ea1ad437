//! `GET /api/v1/user/{user_id}`: one user.

use shared::prelude::*;

pub type ReadUser = Read<User>;
