//! `record!` declares a record once. The struct, its JSON, its item, the body of its create, the body of its update, its filters, its
//! schema and its place in the table follow from the declaration.
//!
//! ```text
//! record! {
//!     /// A label for other records.
//!     pub struct Tag(TagId): listed("TAG") {
//!         /// Name.
//!         input name: String,                                        required on create
//!         /// Colour in CSS notation.
//!         input color_code: Option<String> = None,                   optional; null and absent mean the default
//!         /// Form that it opens.
//!         input form_id: Option<FormId> = None => Form,              the form must exist
//!         /// Status.
//!         own(filter) status: TagStatus = TagStatus::New,            the service sets it; lists can be filtered by it
//!         /// When it was made.
//!         created created_at: Timestamp,
//!     }
//! }
//! ```
//!
//! The word before a field is its role:
//!
//! | Role | body of create | body of update | value |
//! |---|---|---|---|
//! | `input` | yes | yes | the caller's |
//! | `fixed` | yes | no | the caller's |
//! | `org` | yes | no | the caller's organisation; a body that names another one is 403 |
//! | `parent` | yes | no | the record that the path names; a body that names another one is 422 |
//! | `own` | no | no | the service's, from the default on |
//! | `hidden` | no | no | the service's; stored, and never answered |
//! | `created`, `updated` | no | no | when the record was made, and when it last changed |
//!
//! The place is `listed("TAG")`, a list of the organisation; `listed("PLAN" of AgencyId => Agency)`, a list of each parent, whose id
//! the path names as well; or `listed("FILE" within DatasourceId => Datasource)`, the same, where the id of the row carries the
//! ordinal of its parent and so suffices. `, pointers f` names the function that tells which items lead to it, `, due f` the one that
//! tells its partition in the index of what becomes due.

use uuid::Uuid;

use crate::request::error::{Error, Issues, Location, Result};
use crate::request::input::{Input, Source};
use crate::request::tenant::Tenant;
use crate::table::keys::Key;
use crate::table::store::Item;
use crate::table::{TableError, filters::Term};
use crate::values::id::{Id, OrgId};
use crate::values::schema::{Member, Schema, Value, object, titled};
use crate::values::time::Timestamp;

/// What follows from the declaration of a record, apart from its place in the table.
pub trait Declared: Schema + Clone + Send + Sync + Sized + 'static {
    /// Name of the schema component.
    const NAME: &'static str;
    /// The body of an update.
    type Changes: Send + Sync;

    /// The members, with the role that each has.
    fn members() -> Vec<(Role, Member)>;

    /// Reads the body of a create. What the service sets has its default, the id is nil.
    fn read(source: &Source<'_>, issues: &mut Issues, named: &mut Named) -> Option<Self>;

    /// The record, made `now` under `id`.
    #[must_use]
    fn begun(self, id: Uuid, org: OrgId, parent: Uuid, now: Timestamp) -> Self;

    /// Reads the body of an update.
    fn read_changes(source: &Source<'_>, issues: &mut Issues) -> Option<Self::Changes>;

    /// Makes the changes of an update.
    fn apply(&mut self, changes: &Self::Changes);

    /// Notes that the record changed `now`.
    fn touch(&mut self, now: Timestamp);

    /// The records that its fields name, which have to exist.
    fn references(&self, tenant: &Tenant) -> Vec<Reference>;

    /// The filters that the record matches.
    fn terms(&self) -> Vec<Term>;

    /// Reads the filters of a list from its query.
    fn read_terms(source: &Source<'_>, issues: &mut Issues) -> Option<Vec<Term>>;

    /// The query's members that are filters.
    fn filter_members() -> Vec<Member>;

    /// Adds the attributes that are stored and never answered.
    ///
    /// # Errors
    /// [`TableError::Broken`] where one cannot be an attribute.
    fn hide(&self, item: &mut Item) -> Result<(), TableError>;
}

/// What a caller may do with a field that is answered: see the table above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Create and update take it.
    Input,
    /// Create takes it.
    Fixed,
    /// Create takes the caller's own organisation.
    Org,
    /// Create takes the record that the path names.
    Parent,
    /// The service sets it.
    Own,
}

/// What a body names that the service knows already.
#[derive(Debug, Clone, Copy, Default)]
pub struct Named {
    /// The organisation, with its field.
    pub org: Option<(&'static str, OrgId)>,
    /// The parent, with its field.
    pub parent: Option<(&'static str, Uuid)>,
}

/// A record that another one names in a field.
#[derive(Debug, Clone)]
pub struct Reference {
    /// The field.
    pub field: &'static str,
    /// Where the named record is.
    pub key: Key,
    /// The id that the item there must have.
    pub proof: Option<Uuid>,
}

/// A field that may name a record.
pub trait Names {
    /// The identifier.
    type Id;

    /// The named record, if any.
    fn named(&self) -> Option<Self::Id>;
}

impl<T: Id> Names for T {
    type Id = T;

    fn named(&self) -> Option<T> {
        Some(*self)
    }
}

impl<T: Id> Names for Option<T> {
    type Id = T;

    fn named(&self) -> Option<T> {
        *self
    }
}

/// One field of an update.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Change<T> {
    /// The field is absent: its value stays.
    #[default]
    Absent,
    /// The field is null: its value becomes the default.
    Null,
    /// The field has a value.
    Set(T),
}

/// The body of a create.
#[derive(Debug)]
pub struct New<R> {
    /// The record, without what the service sets.
    pub record: R,
    named: Named,
}

impl<R: Declared> New<R> {
    /// The record, ready to be made: the organisation and the parent that the body names, if any, have to be these.
    ///
    /// # Errors
    /// [`Error::Forbidden`] at another organisation, [`Error::Invalid`] at another parent.
    pub fn checked(self, org: OrgId, parent: Uuid) -> Result<R> {
        if let Some((field, _)) = self.named.org.filter(|(_, named)| *named != org) {
            return Err(Error::other_organisation(Location::body().name(field)));
        }
        if let Some((field, _)) = self.named.parent.filter(|(_, named)| *named != parent) {
            let message = format!("Value error, {field} should equal that of the path");
            return Err(Error::invalid(Location::body().name(field).issue("value_error", message)));
        }
        Ok(self.record)
    }
}

impl<R: Declared> Input for New<R> {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let mut named = Named::default();
        R::read(source, issues, &mut named).map(|record| Self { record, named })
    }

    fn schema() -> Value {
        let taken = |role: Role| matches!(role, Role::Input | Role::Fixed | Role::Org | Role::Parent);
        let members = R::members().into_iter().filter(|(role, _)| taken(*role)).map(|(_, member)| member);
        titled(object(members.collect()), &format!("New{}", R::NAME))
    }
}

/// The body of an update: an absent field keeps its value, null puts it back to its default.
#[derive(Debug)]
pub struct Changes<R: Declared>(pub R::Changes);

impl<R: Declared> Input for Changes<R> {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        R::read_changes(source, issues).map(Self)
    }

    fn schema() -> Value {
        let members = R::members().into_iter().filter(|(role, _)| *role == Role::Input);
        let members = members.map(|(_, member)| Member { required: false, ..member });
        titled(object(members.collect()), &format!("{}Changes", R::NAME))
    }
}

/// A stored attribute that an old item may lack.
pub struct Attribute<T>(pub Option<T>);

impl<T> Default for Attribute<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: serde::Deserialize<'de>> serde::Deserialize<'de> for Attribute<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(|value| Self(Some(value)))
    }
}

/// Declares a record: see [`declaration`](crate::records::declaration).
#[macro_export]
macro_rules! record {
    (
        $(#[doc = $doc:literal])*
        pub struct $Name:ident($Id:ident): $place:ident($($places:tt)*) {
            $(
                $(#[doc = $field_doc:literal])*
                $role:ident $(($($mark:tt)*))? $field:ident: $Type:ty $(= $default:expr)? $(=> $Target:ty)?,
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $Name {
            /// Identifier.
            pub id: $Id,
            $($(#[doc = $field_doc])* pub $field: $Type,)*
        }

        impl ::serde::Serialize for $Name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error> {
                use ::serde::ser::SerializeMap as _;
                let mut members = serializer.serialize_map(None)?;
                members.serialize_entry("id", &self.id)?;
                $($crate::record!(@answer $role members, self.$field, $field);)*
                members.end()
            }
        }

        impl $crate::values::schema::Schema for $Name {
            fn schema() -> ::serde_json::Value {
                use $crate::records::declaration::Declared as _;
                let mut members = vec![$crate::request::input::member::<$Id>("id", true, "Identifier.")];
                members.extend(Self::members().into_iter().map(|(_, member)| $crate::values::schema::Member { required: true, ..member }));
                $crate::values::schema::titled($crate::values::schema::object(members), stringify!($Name))
            }
        }

        const _: () = {
            use $crate::records::declaration::{Attribute, Declared, Named, Reference, Role};

            #[derive(::serde::Deserialize)]
            struct Stored {
                id: $Id,
                $(#[serde(default)] $field: Attribute<$Type>,)*
            }

            impl<'de> ::serde::Deserialize<'de> for $Name {
                fn deserialize<D: ::serde::Deserializer<'de>>(json: D) -> ::core::result::Result<Self, D::Error> {
                    let stored = Stored::deserialize(json)?;
                    Ok(Self { id: stored.id, $($field: $crate::record!(@stored D, stored.$field, $field $(, $default)?),)* })
                }
            }

            /// The fields that an update can change.
            #[derive(Debug, Clone)]
            pub struct Fields {
                $(pub $field: $crate::record!(@change $role $Type),)*
            }

            impl Declared for $Name {
                const NAME: &'static str = stringify!($Name);
                type Changes = Fields;

                fn members() -> Vec<(Role, $crate::values::schema::Member)> {
                    let members: Vec<Option<(Role, $crate::values::schema::Member)>> =
                        vec![$($crate::record!(@described $role $field: $Type, [$($field_doc),*] $(, $default)?),)*];
                    members.into_iter().flatten().collect()
                }

                fn read(
                    source: &$crate::request::input::Source<'_>,
                    issues: &mut $crate::request::error::Issues,
                    named: &mut Named,
                ) -> Option<Self> {
                    let _ = (source, &issues, &named);
                    $(let $field: Option<$Type> = $crate::record!(@read $role source, issues, named, $field: $Type $(, $default)?);)*
                    Some(Self { id: ::uuid::Uuid::nil().into(), $($field: $field?,)* })
                }

                fn begun(
                    self,
                    id: ::uuid::Uuid,
                    org: $crate::values::id::OrgId,
                    parent: ::uuid::Uuid,
                    now: $crate::values::time::Timestamp,
                ) -> Self {
                    let _ = (org, parent, now);
                    Self { id: id.into(), $($field: $crate::record!(@begun $role self.$field, org, parent, now),)* }
                }

                fn read_changes(
                    source: &$crate::request::input::Source<'_>,
                    issues: &mut $crate::request::error::Issues,
                ) -> Option<Fields> {
                    let _ = (source, &issues);
                    $(let $field = $crate::record!(@read_change $role source, issues, $field: $Type $(, $default)?);)*
                    Some(Fields { $($field: $field?,)* })
                }

                fn apply(&mut self, changes: &Fields) {
                    let _ = changes;
                    $($crate::record!(@apply $role self.$field, changes.$field $(, $default)?);)*
                }

                fn touch(&mut self, now: $crate::values::time::Timestamp) {
                    let _ = now;
                    $($crate::record!(@touch $role self.$field, now);)*
                }

                fn references(&self, tenant: &$crate::request::tenant::Tenant) -> Vec<Reference> {
                    let _ = tenant;
                    let references: Vec<Option<Reference>> =
                        vec![$($($crate::table::stored::reference::<$Target, _>(tenant, stringify!($field), &self.$field),)?)*];
                    references.into_iter().flatten().collect()
                }

                fn terms(&self) -> Vec<$crate::table::filters::Term> {
                    let terms: Vec<Option<$crate::table::filters::Term>> =
                        vec![$($($crate::record!(@term ($($mark)*) $Type, $field, &self.$field),)?)*];
                    terms.into_iter().flatten().collect()
                }

                fn read_terms(
                    source: &$crate::request::input::Source<'_>,
                    issues: &mut $crate::request::error::Issues,
                ) -> Option<Vec<$crate::table::filters::Term>> {
                    let _ = (source, &issues);
                    let terms: Vec<Option<Option<$crate::table::filters::Term>>> =
                        vec![$($($crate::record!(@read_term ($($mark)*) $Type, $field, source, issues),)?)*];
                    let terms: Option<Vec<_>> = terms.into_iter().collect();
                    terms.map(|terms| terms.into_iter().flatten().collect())
                }

                fn filter_members() -> Vec<$crate::values::schema::Member> {
                    vec![$($($crate::record!(@filter_member ($($mark)*) $Type, $field),)?)*]
                }

                fn hide(&self, item: &mut $crate::table::store::Item) -> ::core::result::Result<(), $crate::table::TableError> {
                    let _ = &item;
                    $($crate::record!(@hide $role item, self.$field, $field);)*
                    Ok(())
                }
            }
        };

        $crate::record!(@place $place ($($places)*) $Name $Id);
    };

    (@answer hidden $members:ident, $value:expr, $field:ident) => {};
    (@answer $role:ident $members:ident, $value:expr, $field:ident) => {
        $members.serialize_entry(stringify!($field), &$value)?
    };

    (@stored $D:ident, $value:expr, $field:ident, $default:expr) => { $value.0.unwrap_or_else(|| $default) };
    (@stored $D:ident, $value:expr, $field:ident) => {
        $value.0.ok_or_else(|| <$D::Error as ::serde::de::Error>::missing_field(stringify!($field)))?
    };

    (@described hidden $($rest:tt)*) => { None };
    (@described $role:ident $($rest:tt)*) => {
        Some(($crate::record!(@role $role), $crate::record!(@member $($rest)*)))
    };

    (@role input) => { Role::Input };
    (@role fixed) => { Role::Fixed };
    (@role org) => { Role::Org };
    (@role parent) => { Role::Parent };
    (@role own) => { Role::Own };
    (@role created) => { Role::Own };
    (@role updated) => { Role::Own };

    (@member $field:ident: $Type:ty, [$($doc:literal),*], $default:expr) => {
        $crate::request::input::member_or::<$Type>(stringify!($field), concat!($($doc),*), &$default)
    };
    (@member $field:ident: $Type:ty, [$($doc:literal),*]) => {
        $crate::request::input::member::<$Type>(stringify!($field), true, concat!($($doc),*))
    };

    (@read input $source:ident, $issues:ident, $named:ident, $field:ident: $Type:ty) => {
        $source.required(stringify!($field), $issues)
    };
    (@read input $source:ident, $issues:ident, $named:ident, $field:ident: $Type:ty, $default:expr) => {
        $source.optional(stringify!($field), $issues, || $default)
    };
    (@read fixed $($rest:tt)*) => { $crate::record!(@read input $($rest)*) };
    (@read org $source:ident, $issues:ident, $named:ident, $field:ident: $Type:ty) => {
        $source.optional::<Option<$Type>>(stringify!($field), $issues, || None).map(|org| {
            $named.org = org.map(|org| (stringify!($field), org));
            ::uuid::Uuid::nil().into()
        })
    };
    (@read parent $source:ident, $issues:ident, $named:ident, $field:ident: $Type:ty) => {
        $source.optional::<Option<$Type>>(stringify!($field), $issues, || None).map(|parent| {
            $named.parent = parent.map(|parent| (stringify!($field), parent.into()));
            ::uuid::Uuid::nil().into()
        })
    };
    (@read created $source:ident, $issues:ident, $named:ident, $field:ident: $Type:ty) => {
        Some($crate::values::time::Timestamp::from_unix_millis(0))
    };
    (@read updated $($rest:tt)*) => { $crate::record!(@read created $($rest)*) };
    (@read $role:ident $source:ident, $issues:ident, $named:ident, $field:ident: $Type:ty, $default:expr) => {
        Some($default)
    };
    // What has no default is known only to the code that makes the record: no body can.
    (@read $role:ident $source:ident, $issues:ident, $named:ident, $field:ident: $Type:ty) => { None };

    (@begun org $value:expr, $org:ident, $parent:ident, $now:ident) => { $org };
    (@begun parent $value:expr, $org:ident, $parent:ident, $now:ident) => { $parent.into() };
    (@begun created $value:expr, $org:ident, $parent:ident, $now:ident) => { $now };
    (@begun updated $value:expr, $org:ident, $parent:ident, $now:ident) => { $now };
    (@begun $role:ident $value:expr, $org:ident, $parent:ident, $now:ident) => { $value };

    (@change input $Type:ty) => { $crate::records::declaration::Change<$Type> };
    (@change $role:ident $Type:ty) => { () };

    (@read_change input $source:ident, $issues:ident, $field:ident: $Type:ty, $default:expr) => {
        $source.change::<$Type>(stringify!($field), $issues, true)
    };
    (@read_change input $source:ident, $issues:ident, $field:ident: $Type:ty) => {
        $source.change::<$Type>(stringify!($field), $issues, false)
    };
    (@read_change $role:ident $source:ident, $issues:ident, $field:ident: $Type:ty $(, $default:expr)?) => { Some(()) };

    (@apply input $value:expr, $change:expr, $default:expr) => {
        match &$change {
            $crate::records::declaration::Change::Absent => {}
            $crate::records::declaration::Change::Null => $value = $default,
            $crate::records::declaration::Change::Set(value) => $value = value.clone(),
        }
    };
    (@apply input $value:expr, $change:expr) => {
        if let $crate::records::declaration::Change::Set(value) = &$change {
            $value = value.clone();
        }
    };
    (@apply $role:ident $value:expr, $change:expr $(, $default:expr)?) => {};

    (@touch updated $value:expr, $now:ident) => { $value = $now };
    (@touch $role:ident $value:expr, $now:ident) => {};

    (@term (filter) $Type:ty, $field:ident, $value:expr) => {
        $crate::table::filters::Term::of::<$Type>(stringify!($field), $value, None)
    };
    (@term (filter except $except:expr) $Type:ty, $field:ident, $value:expr) => {
        $crate::table::filters::Term::of::<$Type>(stringify!($field), $value, Some(&$except))
    };

    (@read_term (filter) $Type:ty, $field:ident, $source:ident, $issues:ident) => {
        $crate::table::filters::Term::read::<$Type>(stringify!($field), $source, $issues, None)
    };
    (@read_term (filter except $except:expr) $Type:ty, $field:ident, $source:ident, $issues:ident) => {
        $crate::table::filters::Term::read::<$Type>(stringify!($field), $source, $issues, Some(&$except))
    };

    (@filter_member ($($mark:tt)*) $Type:ty, $field:ident) => {
        $crate::table::filters::Term::member::<$Type>(
            stringify!($field),
            concat!("Those with this `", stringify!($field), "` only."),
        )
    };

    (@hide hidden $item:ident, $value:expr, $field:ident) => {
        $crate::table::store::hide($item, stringify!($field), &$value)?
    };
    (@hide $role:ident $item:ident, $value:expr, $field:ident) => {};

    (@place listed ($list:literal $(, pointers $pointers:path)? $(, due $due:path)?) $Name:ident $Id:ident) => {
        $crate::record!(@row $Name, $Id;
            id |id| $Id: id.0, $list.to_owned();
            of |_of, fresh, ordinal| (): $list.to_owned(), $crate::values::id::with_ordinal(fresh, ordinal).into();
            parent []; pointers [$($pointers)?]; due [$($due)?]);
    };
    (@place listed ($list:literal of $Of:ident $(=> $Parent:ident)? $(, due $due:path)?) $Name:ident $Id:ident) => {
        $crate::record!(@row $Name, $Id;
            id |id| ($Of, $Id): id.1.0, format!("{}#{}", $list, id.0);
            of |of, fresh, ordinal| $Of: format!("{}#{of}", $list), (of, $crate::values::id::with_ordinal(fresh, ordinal).into());
            parent [$($Parent)?]; pointers []; due [$($due)?]);
    };
    (@place listed ($list:literal within $Of:ident => $Parent:ident) $Name:ident $Id:ident) => {
        $crate::record!(@row $Name, $Id;
            id |id| $Id: id.0, format!("{}#{:010}", $list, $crate::values::id::parent_ordinal(id.0));
            of |of, fresh, ordinal| $Of:
                format!("{}#{:010}", $list, $crate::values::id::ordinal(of.0)),
                $crate::values::id::with_ordinals(fresh, $crate::values::id::ordinal(of.0), ordinal).into();
            parent [$Parent]; pointers []; due []);
    };

    (@row $Name:ident, $Id:ident;
        id |$id:ident| $Key:ty: $uuid:expr, $list_of:expr;
        of |$of:ident, $fresh:ident, $ordinal:ident| $Of:ty: $list:expr, $id_at:expr;
        parent [$($Parent:ident)?]; pointers [$($pointers:path)?]; due [$($due:path)?]
    ) => {
        impl $crate::table::stored::Stored for $Name {
            type Id = $Key;
            const PARAMETER: &'static str = <$Id as $crate::values::id::Id>::PARAMETER;
            const RECORD: Option<&'static str> = Some(stringify!($Name));

            fn key(tenant: &$crate::request::tenant::Tenant, $id: $Key) -> $crate::table::keys::Key {
                $crate::table::keys::list_row(tenant, &$list_of, $crate::values::id::ordinal($uuid))
            }

            fn proof($id: $Key) -> Option<::uuid::Uuid> {
                Some($uuid)
            }

            fn hide(&self, item: &mut $crate::table::store::Item) -> ::core::result::Result<(), $crate::table::TableError> {
                $crate::records::declaration::Declared::hide(self, item)
            }

            $(fn due_partition(&self, id: $Key) -> Option<String> {
                $due(self, id)
            })?
        }

        impl $crate::table::stored::Listed for $Name {
            type Of = $Of;

            fn list($of: $Of) -> String {
                $list
            }

            fn list_of($id: $Key) -> String {
                let _ = $id;
                $list_of
            }

            fn id_at($of: $Of, $fresh: ::uuid::Uuid, $ordinal: u32) -> $Key {
                $id_at
            }

            $(fn parent(tenant: &$crate::request::tenant::Tenant, of: $Of) -> Option<$crate::records::declaration::Reference> {
                let parameter = <$Of as $crate::values::id::Id>::PARAMETER;
                $crate::table::stored::reference::<$Parent, _>(tenant, parameter, &of)
            })?

            $(fn pointers(&self, tenant: &$crate::request::tenant::Tenant) -> Vec<$crate::table::keys::Key> {
                $pointers(self, tenant)
            })?
        }
    };
}
