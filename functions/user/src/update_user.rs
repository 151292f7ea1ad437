//! `PUT /api/v1/user/{user_id}`: changes a user. Absent fields keep their values.

use shared::prelude::*;

pub type UpdateUser = Update<User>;
