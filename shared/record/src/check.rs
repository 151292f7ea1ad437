//! Looks for mistakes in a declaration that has been read. Each one is reported at its token.

use crate::mistakes::Mistakes;
use crate::parse::{Declaration, Field};
use crate::place::ListOwner;
use crate::words::{RoleWord, words};

/// Names that every record has, in its struct or in the table.
const TAKEN: [&str; 3] = ["id", "version", "changed_by"];

/// Roles of which a record has one field.
const ONCE: [RoleWord; 4] = [RoleWord::Org, RoleWord::Parent, RoleWord::Created, RoleWord::Updated];

/// Looks for mistakes, and removes the fields and marks that have one: the rest of `declaration` can be expanded.
pub fn check(declaration: &mut Declaration, mistakes: &mut Mistakes) {
    names(&mut declaration.fields, mistakes);
    roles_once(&declaration.fields, mistakes);
    marks(&mut declaration.fields, mistakes);
    superfluous_defaults(&mut declaration.fields, mistakes);
    missing_defaults(declaration, mistakes);
    parents(declaration, mistakes);
}

/// No field has the name of another one.
fn names(fields: &mut Vec<Field>, mistakes: &mut Mistakes) {
    let mut names = Vec::new();
    fields.retain(|field| {
        let (name, json) = (&field.name, field.json());
        if TAKEN.contains(&json.as_str()) {
            mistakes.add(name, format!("a field may not be called `{json}`: every record has an `{json}` by itself"));
        } else if names.contains(&json) {
            mistakes.add(name, format!("the record has a field `{json}` already"));
        } else {
            names.push(json);
            return true;
        }
        false
    });
}

/// No two fields have a role that a record has once.
fn roles_once(fields: &[Field], mistakes: &mut Mistakes) {
    for role in ONCE {
        for field in fields.iter().filter(|field| field.role == role).skip(1) {
            let word = role.word();
            mistakes.add(&field.role_at, format!("another field is `{word}` already: a record has one such field"));
        }
    }
}

/// Each mark fits the role before it.
fn marks(fields: &mut [Field], mistakes: &mut Mistakes) {
    for field in fields {
        let role = field.role;
        if let Some((mark, token)) = field.mark.take_if(|(mark, _)| !mark.roles().contains(&role)) {
            let roles = words(mark.roles());
            mistakes.add(token, format!("the role `{}` does not take this mark: it is for {roles}", role.word()));
        }
    }
}

/// The values of `org` and `parent` come from the request, so these fields have no default.
fn superfluous_defaults(fields: &mut [Field], mistakes: &mut Mistakes) {
    for field in fields {
        let value = match field.role {
            RoleWord::Org => "the organisation of the caller",
            RoleWord::Parent => "the record that the path names",
            _ => continue,
        };
        if let Some(default) = field.default.take() {
            let word = field.role.word();
            mistakes.add(default, format!("a field with the role `{word}` has no default: its value is {value}"));
        }
    }
}

/// A field that the body of a create does not have begins with its default. A record of which a caller sends nothing is made by code, which sets each
/// field.
fn missing_defaults(declaration: &Declaration, mistakes: &mut Mistakes) {
    let is_sent = declaration.is_sent();
    for field in declaration.fields.iter().filter(|field| field.default.is_none()) {
        let role = field.role;
        if role == RoleWord::Derived {
            let message = "a field with the role `derived` needs the function that makes it, such as `= Note::title`";
            mistakes.add(&field.name, message);
        } else if role == RoleWord::Later || is_sent && [RoleWord::Own, RoleWord::Hidden].contains(&role) {
            let word = role.word();
            let message = format!(
                "a field with the role `{word}` needs a default, such as `= None`: a new record begins with it"
            );
            mistakes.add(&field.name, message);
        }
    }
}

/// A field with the role `parent` needs a list of that parent.
fn parents(declaration: &Declaration, mistakes: &mut Mistakes) {
    if matches!(declaration.place.owner, ListOwner::Organisation) {
        for field in declaration.fields.iter().filter(|field| field.role == RoleWord::Parent) {
            mistakes
                .add(&field.role_at, "the role `parent` needs a list of the parent: `of Id => Record`, or `within`");
        }
    }
}
