//! `DELETE /api/v1/user/{user_id}`: removes a user.

use shared::prelude::*;

pub type DeleteUser = Delete<User>;
