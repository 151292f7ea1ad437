//! What an operator invokes. Written by `cargo generate`.

mod get_organisation_use;
mod issue_api_key;
mod list_api_keys;
mod revoke_api_key;
mod update_api_key;

pub use get_organisation_use::GetOrganisationUse;
pub use issue_api_key::IssueApiKey;
pub use list_api_keys::ListApiKeys;
pub use revoke_api_key::RevokeApiKey;
pub use update_api_key::UpdateApiKey;
