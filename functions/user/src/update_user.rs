//! `PUT /api/v1/user/{user_id}`: changes a user; absent fields keep their values.

use shared::prelude::*;

pub type UpdateUser = Update<User>;
