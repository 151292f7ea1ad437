//! The declaration of a route: its operation, and the paths that it matches.

use crate::request::api_key::Role;
use crate::request::scope::KeyScope;

/// The permission that an operation requires of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Any valid key.
    Read,
    /// A key whose role is `full`; a read-only one gets 403.
    Write,
    /// A key whose role is `admin`; any other one gets 403.
    Admin,
    /// No key: the signature of the request proves its sender.
    Signed,
    /// No key.
    Public,
}

impl Access {
    /// Whether a key with this `role` may call an operation with this access.
    pub fn allows(self, role: Role) -> bool {
        match self {
            Self::Read | Self::Signed | Self::Public => true,
            Self::Write => role != Role::ReadOnly,
            Self::Admin => role == Role::Admin,
        }
    }
}

/// One operation's place in the API.
#[derive(Debug, PartialEq, Eq)]
pub struct Route {
    /// The record of the operation: the package under `functions/`.
    pub record: &'static str,
    /// Kebab-case name: binary, file, recorded event. The other spellings derive from it.
    pub name: &'static str,
    /// HTTP method, upper case.
    pub method: &'static str,
    /// Path as the specification prints it, parameters in braces.
    pub path: &'static str,
    /// The permission that the key needs.
    pub access: Access,
    /// Status of a success.
    pub success: u16,
    /// The largest request body, in bytes. A larger one gets 413.
    pub body_limit: usize,
    /// Further paths of the same operation. A parameter that only such a path has is the query's in the operation.
    pub aliases: &'static [&'static str],
}

impl Route {
    /// Its own path, and its aliases.
    pub fn paths(&self) -> impl Iterator<Item = &'static str> {
        [self.path].into_iter().chain(self.aliases.iter().copied())
    }

    /// The parameters in the first of its paths that matches `path`, with their values, still percent-encoded; `None` if
    /// none matches.
    pub fn match_path<'a>(&self, path: &'a str) -> Option<Vec<(&'static str, &'a str)>> {
        self.paths().find_map(|own| matched(own, path))
    }

    /// Whether the operation may change something.
    pub fn writes(&self) -> bool {
        match self.access {
            Access::Write | Access::Signed => true,
            Access::Admin => self.method != "GET",
            Access::Read | Access::Public => false,
        }
    }

    /// The scope that a key with scopes needs to call the operation.
    pub fn scope(&self) -> KeyScope {
        if self.writes() { KeyScope::write(self.record) } else { KeyScope::read(self.record) }
    }

    /// Names of the parameters of its own path, in order.
    pub fn parameters(&self) -> impl Iterator<Item = &'static str> {
        segments(self.path).filter_map(parameter)
    }
}

/// The parameters of `own` with their values in `path`, still percent-encoded; `None` if `path` does not match it. One
/// trailing slash more or less makes no difference.
pub fn matched<'a>(own: &'static str, path: &'a str) -> Option<Vec<(&'static str, &'a str)>> {
    let mut given = segments(path);
    let mut parameters = Vec::new();
    for wanted in segments(own) {
        let segment = given.next()?;
        match parameter(wanted) {
            Some(name) if !segment.is_empty() => parameters.push((name, segment)),
            None if wanted == segment => {}
            _ => return None,
        }
    }
    given.next().is_none().then_some(parameters)
}

/// The segments of a path, without its trailing slash.
pub(crate) fn segments(path: &str) -> std::str::Split<'_, char> {
    path.strip_suffix('/').unwrap_or(path).split('/')
}

/// The name of the parameter that a segment of a route's path stands for.
pub(crate) fn parameter(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}
