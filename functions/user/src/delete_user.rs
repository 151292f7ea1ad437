//! `DELETE /api/v1/user/{user_id}`: deletes a user, and what is known of its customer at the payment provider.

use shared::prelude::*;

pub type DeleteUser = Delete<User>;
