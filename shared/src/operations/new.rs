//! The body of a create: a record without the fields that the service sets.

use uuid::Uuid;

use crate::input::schema::{Member, Value, object, titled};
use crate::input::{Input, Issues, Location, Source, input_member, words};
use crate::request::error::{Error, Result};
use crate::table::declaration::{Declared, FieldRole, MadeOfBody, Named};
use crate::values::id::OrgId;

/// The most bytes of a record as JSON. An item of the table has at most 400 KB, and an answer under an idempotency key
/// is kept up to 380 KiB. The limits of single fields alone would allow more.
const LARGEST: usize = 360 * 1024;

/// Refuses a record that is too large.
///
/// # Errors
/// [`Error::Invalid`].
pub fn require_room<R: Declared>(record: &R) -> Result<()> {
    let json = serde_json::to_vec(record).map_err(|error| Error::Internal(error.to_string()))?;
    if json.len() <= LARGEST {
        return Ok(());
    }
    let msg = format!("The record should have at most {LARGEST} bytes, not {}", json.len());
    Err(Error::invalid(Location::body().issue(words::TOO_LONG, msg)))
}

/// The body of a create.
#[derive(Debug)]
pub struct New<R> {
    /// The record, without the fields that the service sets.
    pub record: R,
    named: Named,
}

impl<R: Declared> New<R> {
    /// The record, after a check: if the body names an organisation or a parent, it must be `org` or `parent`.
    ///
    /// # Errors
    /// [`Error::Forbidden`] at another organisation, [`Error::Invalid`] at another parent, and where the record is too
    /// large.
    pub fn checked(self, org: OrgId, parent: Uuid) -> Result<R> {
        if let Some((field, _)) = self.named.org.filter(|(_, named)| *named != org) {
            return Err(Error::other_organisation(Location::body().name(field)));
        }
        if let Some((field, _)) = self.named.parent.filter(|(_, named)| *named != parent) {
            let message = format!("Value error, {field} should equal that of the path");
            return Err(Error::invalid(Location::body().name(field).issue("value_error", message)));
        }
        require_room(&self.record)?;
        Ok(self.record)
    }
}

impl<R: MadeOfBody> Input for New<R> {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let mut named = Named::default();
        R::read(source, issues, &mut named).map(|record| Self { record, named })
    }

    fn schema() -> Value {
        let member = |(role, member): (FieldRole, Member)| {
            let required = match role {
                FieldRole::Input | FieldRole::Fixed => member.required,
                FieldRole::Org | FieldRole::Parent => false,
                FieldRole::Later | FieldRole::Own => return None,
            };
            Some(input_member(Member { required, ..member }))
        };
        let members = R::members().into_iter().filter_map(member);
        titled(object(members.collect()), &format!("New{}", R::NAME), "Fields of a new record.")
    }
}
