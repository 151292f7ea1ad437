//! The macro `record!`. Its first rule makes everything. Each other rule is about one field, and depends on its role or its default.

/// Declares a record: see [`declaration`](crate::table::declaration).
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
            /// How often it has changed; never answered.
            pub version: $crate::table::version::Version,
        }

        impl ::serde::Serialize for $Name {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> ::core::result::Result<S::Ok, S::Error> {
                use ::serde::ser::SerializeMap as _;
                let mut members = serializer.serialize_map(None)?;
                members.serialize_entry("id", &self.id)?;
                $($crate::record!(@answer $role [$($($mark)*)?] members, self.$field, $field);)*
                members.end()
            }
        }

        impl $crate::input::schema::Schema for $Name {
            fn schema() -> ::serde_json::Value {
                use $crate::table::declaration::Declared as _;
                let mut members = vec![$crate::input::member::<$Id>("id", true, "Identifier.")];
                members.extend(Self::members().into_iter().map(|(_, member)| $crate::input::schema::Member { required: true, ..member }));
                $crate::input::schema::titled($crate::input::schema::object(members), stringify!($Name), concat!($($doc),*))
            }
        }

        const _: () = {
            use $crate::table::declaration::{Attribute, Declared, Named, Reference, FieldRole};

            #[derive(::serde::Deserialize)]
            struct Attributes {
                id: $Id,
                $(#[serde(default)] $field: Attribute<$Type>,)*
                #[serde(default)]
                version: Option<u64>,
                #[serde(default)]
                changed_by: Option<::uuid::Uuid>,
            }

            impl<'de> ::serde::Deserialize<'de> for $Name {
                fn deserialize<D: ::serde::Deserializer<'de>>(json: D) -> ::core::result::Result<Self, D::Error> {
                    let stored = Attributes::deserialize(json)?;
                    Ok(Self {
                        id: stored.id,
                        $($field: $crate::record!(@stored D, stored.$field, $field $(, $default)?),)*
                        version: $crate::table::version::Version::stored(stored.version, stored.changed_by),
                    })
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

                fn members() -> Vec<(FieldRole, $crate::input::schema::Member)> {
                    let members: Vec<Option<(FieldRole, $crate::input::schema::Member)>> =
                        vec![$($crate::record!(@described $role [$($($mark)*)?] $field: $Type, [$($field_doc),*] $(, $default)?),)*];
                    members.into_iter().flatten().collect()
                }

                fn uuid(&self) -> ::uuid::Uuid {
                    self.id.into()
                }

                fn version(&self) -> $crate::table::version::Version {
                    self.version
                }

                fn set_version(&mut self, version: $crate::table::version::Version) {
                    self.version = version;
                }

                fn read(
                    source: &$crate::input::Source<'_>,
                    issues: &mut $crate::input::Issues,
                    named: &mut Named,
                ) -> Option<Self> {
                    let _ = (source, &issues, &named);
                    $(let $field: Option<$Type> = $crate::record!(@read $role source, issues, named, $field: $Type $(, $default)?);)*
                    Some(Self { id: ::uuid::Uuid::nil().into(), $($field: $field?,)* version: Default::default() })
                }

                fn begun(
                    self,
                    id: ::uuid::Uuid,
                    org: $crate::values::id::OrgId,
                    parent: ::uuid::Uuid,
                    now: $crate::values::time::Timestamp,
                ) -> Self {
                    let _ = (org, parent, now);
                    Self { id: id.into(), $($field: $crate::record!(@begun $role self.$field, org, parent, now),)* version: self.version }
                }

                fn read_changes(
                    source: &$crate::input::Source<'_>,
                    issues: &mut $crate::input::Issues,
                ) -> Option<Fields> {
                    let _ = (source, &issues);
                    $(let $field = $crate::record!(@read_change $role source, issues, $field: $Type $(, $default)?);)*
                    Some(Fields { $($field: $field?,)* })
                }

                fn apply(&mut self, changes: &Fields) {
                    let _ = changes;
                    $($crate::record!(@apply $role [$($($mark)*)?] self.$field, changes.$field $(, $default)?);)*
                }

                fn touch(&mut self, now: $crate::values::time::Timestamp) {
                    let _ = now;
                    $($crate::record!(@touch $role self.$field, now);)*
                }

                fn references(&self, tenant: &$crate::values::tenant::Tenant) -> Vec<Reference> {
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

                const DATED: bool = false $($(|| $crate::record!(@is_dated ($($mark)*)))?)*;

                fn dated(&self) -> Option<$crate::values::time::Timestamp> {
                    let times: Vec<Option<$crate::values::time::Timestamp>> =
                        vec![$($($crate::record!(@dated ($($mark)*) self.$field),)?)*];
                    times.into_iter().flatten().next()
                }

                fn read_terms(
                    source: &$crate::input::Source<'_>,
                    issues: &mut $crate::input::Issues,
                ) -> Option<Vec<$crate::table::filters::Term>> {
                    let _ = (source, &issues);
                    let terms: Vec<Option<Vec<$crate::table::filters::Term>>> =
                        vec![$($($crate::record!(@read_term ($($mark)*) $Type, $field, source, issues),)?)*];
                    terms.into_iter().collect::<Option<Vec<_>>>().map(|terms| terms.concat())
                }

                fn unique(&self) -> Vec<$crate::table::unique::UniqueValue> {
                    let values: Vec<Option<$crate::table::unique::UniqueValue>> =
                        vec![$($($crate::record!(@unique ($($mark)*) $Type, $field, &self.$field),)?)*];
                    values.into_iter().flatten().collect()
                }

                fn read_unique(
                    source: &$crate::input::Source<'_>,
                    issues: &mut $crate::input::Issues,
                ) -> Option<Vec<$crate::table::filters::Term>> {
                    let _ = (source, &issues);
                    let terms: Vec<Option<Vec<$crate::table::filters::Term>>> =
                        vec![$($($crate::record!(@read_unique ($($mark)*) $Type, $field, source, issues),)?)*];
                    terms.into_iter().collect::<Option<Vec<_>>>().map(|terms| terms.concat())
                }

                fn filter_members() -> Vec<$crate::input::schema::Member> {
                    let members: Vec<Option<$crate::input::schema::Member>> =
                        vec![$($($crate::record!(@filter_member ($($mark)*) $Type, $field),)?)*];
                    members.into_iter().flatten().collect()
                }

                fn addresses(&self) -> Vec<(&'static str, &str)> {
                    let addresses: Vec<Option<(&'static str, &str)>> =
                        vec![$($($crate::record!(@address ($($mark)*) $field, self.$field),)?)*];
                    addresses.into_iter().flatten().collect()
                }

                fn changed_addresses(changes: &Fields) -> Vec<(&'static str, &str)> {
                    let _ = changes;
                    let addresses: Vec<Option<(&'static str, &str)>> =
                        vec![$($($crate::record!(@address ($($mark)*) $field, changes.$field),)?)*];
                    addresses.into_iter().flatten().collect()
                }

                fn hide(&self, item: &mut $crate::table::item::Item) -> ::core::result::Result<(), $crate::table::TableError> {
                    $($crate::record!(@hide $role [$($($mark)*)?] item, self.$field, $field);)*
                    self.version.hide(item);
                    Ok(())
                }
            }
        };

        $crate::record!(@place $place ($($places)*) $Name $Id);
    };

    (@answer hidden [$($mark:tt)*] $members:ident, $value:expr, $field:ident) => {};
    (@answer $role:ident [masks $secret:ident] $members:ident, $value:expr, $field:ident) => {
        $members.serialize_entry(stringify!($field), &$value.masked(stringify!($secret)))?
    };
    (@answer $role:ident [$($mark:tt)*] $members:ident, $value:expr, $field:ident) => {
        $members.serialize_entry($crate::input::schema::field_name(stringify!($field)), &$value)?
    };

    (@stored $D:ident, $value:expr, $field:ident, $default:expr) => { $value.0.unwrap_or_else(|| $default) };
    (@stored $D:ident, $value:expr, $field:ident) => {
        $value.0.ok_or_else(|| <$D::Error as ::serde::de::Error>::missing_field(stringify!($field)))?
    };

    (@described hidden $($rest:tt)*) => { None };
    (@described $role:ident [address] $($rest:tt)*) => {
        Some(($crate::record!(@role $role), $crate::table::declaration::address($crate::record!(@member $($rest)*))))
    };
    (@described $role:ident [$($mark:tt)*] $($rest:tt)*) => {
        Some(($crate::record!(@role $role), $crate::record!(@member $($rest)*)))
    };

    (@role input) => { FieldRole::Input };
    (@role fixed) => { FieldRole::Fixed };
    (@role org) => { FieldRole::Org };
    (@role parent) => { FieldRole::Parent };
    (@role later) => { FieldRole::Later };
    (@role own) => { FieldRole::Own };
    (@role created) => { FieldRole::Own };
    (@role updated) => { FieldRole::Own };

    (@member $field:ident: $Type:ty, [$($doc:literal),*], $default:expr) => {
        $crate::input::member_or::<$Type>($crate::input::schema::field_name(stringify!($field)), concat!($($doc),*), &$default)
    };
    (@member $field:ident: $Type:ty, [$($doc:literal),*]) => {
        $crate::input::member::<$Type>($crate::input::schema::field_name(stringify!($field)), true, concat!($($doc),*))
    };

    (@read input $source:ident, $issues:ident, $named:ident, $field:ident: $Type:ty) => {
        $source.required($crate::input::schema::field_name(stringify!($field)), $issues)
    };
    (@read input $source:ident, $issues:ident, $named:ident, $field:ident: $Type:ty, $default:expr) => {
        $source.optional($crate::input::schema::field_name(stringify!($field)), $issues, || $default)
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
    // A field without a default is set by code. So no body can make a record that has one.
    (@read $role:ident $source:ident, $issues:ident, $named:ident, $field:ident: $Type:ty) => { None };

    (@begun org $value:expr, $org:ident, $parent:ident, $now:ident) => { $org };
    (@begun parent $value:expr, $org:ident, $parent:ident, $now:ident) => { $parent.into() };
    (@begun created $value:expr, $org:ident, $parent:ident, $now:ident) => { $now };
    (@begun updated $value:expr, $org:ident, $parent:ident, $now:ident) => { $now };
    (@begun $role:ident $value:expr, $org:ident, $parent:ident, $now:ident) => { $value };

    (@change input $Type:ty) => { $crate::input::Patch<$Type> };
    (@change later $Type:ty) => { $crate::record!(@change input $Type) };
    (@change $role:ident $Type:ty) => { () };

    (@read_change input $source:ident, $issues:ident, $field:ident: $Type:ty, $default:expr) => {
        $source.change::<$Type>($crate::input::schema::field_name(stringify!($field)), $issues, true)
    };
    (@read_change input $source:ident, $issues:ident, $field:ident: $Type:ty) => {
        $source.change::<$Type>($crate::input::schema::field_name(stringify!($field)), $issues, false)
    };
    (@read_change later $($rest:tt)*) => { $crate::record!(@read_change input $($rest)*) };
    (@read_change $role:ident $source:ident, $issues:ident, $field:ident: $Type:ty $(, $default:expr)?) => { Some(()) };

    (@apply input [masks $secret:ident] $value:expr, $change:expr, $default:expr) => {
        match &$change {
            $crate::input::Patch::Absent => {}
            $crate::input::Patch::Null => $value = $default,
            $crate::input::Patch::Set(value) => $value = value.unmasked(stringify!($secret), &$value),
        }
    };
    (@apply input [$($mark:tt)*] $value:expr, $change:expr, $default:expr) => {
        match &$change {
            $crate::input::Patch::Absent => {}
            $crate::input::Patch::Null => $value = $default,
            $crate::input::Patch::Set(value) => $value = value.clone(),
        }
    };
    (@apply input [$($mark:tt)*] $value:expr, $change:expr) => {
        if let $crate::input::Patch::Set(value) = &$change {
            $value = value.clone();
        }
    };
    (@apply later $($rest:tt)*) => { $crate::record!(@apply input $($rest)*) };
    (@apply $role:ident [$($mark:tt)*] $value:expr, $change:expr $(, $default:expr)?) => {};

    (@touch updated $value:expr, $now:ident) => { $value = $now };
    (@touch $role:ident $value:expr, $now:ident) => {};

    (@term (filter) $Type:ty, $field:ident, $value:expr) => {
        $crate::table::filters::Term::of::<$Type>(stringify!($field), $value)
    };
    (@term (sparse filter) $Type:ty, $field:ident, $value:expr) => {
        $crate::record!(@term (filter) $Type, $field, $value).map($crate::table::filters::Term::sparse)
    };
    (@term ($($mark:tt)*) $Type:ty, $field:ident, $value:expr) => { None };

    (@is_dated (dates)) => { true };
    (@is_dated ($($mark:tt)*)) => { false };

    (@dated (dates) $value:expr) => { Some($value) };
    (@dated ($($mark:tt)*) $value:expr) => { None };

    (@unique (unique $($filter:tt)?) $Type:ty, $field:ident, $value:expr) => {
        $crate::table::unique::UniqueValue::of::<$Type>(stringify!($field), $value)
    };
    (@unique ($($mark:tt)*) $Type:ty, $field:ident, $value:expr) => { None };

    (@read_unique (unique filter) $Type:ty, $field:ident, $source:ident, $issues:ident) => {
        $crate::table::filters::Term::read::<$Type>(stringify!($field), $source, $issues)
    };
    (@read_unique ($($mark:tt)*) $($rest:tt)*) => { Some(Vec::new()) };

    (@read_term (filter) $Type:ty, $field:ident, $source:ident, $issues:ident) => {
        $crate::table::filters::Term::read::<$Type>(stringify!($field), $source, $issues)
    };
    (@read_term (sparse filter) $Type:ty, $field:ident, $source:ident, $issues:ident) => {
        $crate::record!(@read_term (filter) $Type, $field, $source, $issues)
            .map(|terms| terms.into_iter().map($crate::table::filters::Term::sparse).collect())
    };
    (@read_term ($($mark:tt)*) $Type:ty, $field:ident, $source:ident, $issues:ident) => { Some(Vec::new()) };

    (@filter_member (filter) $Type:ty, $field:ident) => {
        Some($crate::table::filters::Term::member::<$Type>(
            stringify!($field),
            concat!("Only records with this `", stringify!($field), "`."),
        ))
    };
    (@filter_member (unique filter) $Type:ty, $field:ident) => {
        $crate::record!(@filter_member (filter) $Type, $field)
    };
    (@filter_member (sparse filter) $Type:ty, $field:ident) => {
        $crate::record!(@filter_member (filter) $Type, $field)
    };
    (@filter_member ($($mark:tt)*) $Type:ty, $field:ident) => { None };

    (@address (address) $field:ident, $value:expr) => {
        $crate::table::declaration::MayBeAddress::address(&$value).map(|address| (stringify!($field), address))
    };
    (@address ($($mark:tt)*) $field:ident, $value:expr) => { None };

    (@hide hidden [$($mark:tt)*] $item:ident, $value:expr, $field:ident) => {
        $crate::table::item::hide($item, stringify!($field), &$value)?
    };
    // The item has the secret itself, in place of what is answered.
    (@hide $role:ident [masks $secret:ident] $item:ident, $value:expr, $field:ident) => {
        $crate::table::item::hide($item, stringify!($field), &$value)?
    };
    (@hide $role:ident [$($mark:tt)*] $item:ident, $value:expr, $field:ident) => {};

    (@spreads) => { false };
    (@spreads spread) => { true };

    (@place listed ($list:literal $($spread:ident)? $(, pointers $pointers:path)? $(, due $due:path)?) $Name:ident $Id:ident) => {
        $crate::record!(@row $Name, $Id;
            id |id| $Id: id.0, $list.to_owned();
            of |_of, fresh, ordinal| (): $list.to_owned(), $crate::values::id::with_ordinal(fresh, ordinal).into();
            parent []; pointers [$($pointers)?]; due [$($due)?]; spread [$($spread)?]);
    };
    (@place listed (
        $list:literal of $Of:ident $(=> $Parent:ident)? $($spread:ident)? $(, pointers $pointers:path)? $(, due $due:path)?
    ) $Name:ident $Id:ident) => {
        $crate::record!(@row $Name, $Id;
            id |id| ($Of, $Id): id.1.0, format!("{}#{}", $list, id.0);
            of |of, fresh, ordinal| $Of: format!("{}#{of}", $list), (of, $crate::values::id::with_ordinal(fresh, ordinal).into());
            parent [$($Parent)?]; pointers [$($pointers)?]; due [$($due)?]; spread [$($spread)?]);
    };
    (@place listed ($list:literal within $Of:ident => $Parent:ident) $Name:ident $Id:ident) => {
        $crate::record!(@row $Name, $Id;
            id |id| $Id: id.0, format!("{}#{:010}", $list, $crate::values::id::parent_ordinal(id.0));
            of |of, fresh, ordinal| $Of:
                format!("{}#{:010}", $list, $crate::values::id::ordinal(of.0)),
                $crate::values::id::with_ordinals(fresh, $crate::values::id::ordinal(of.0), ordinal).into();
            parent [$Parent]; pointers []; due []; spread []);
    };

    (@row $Name:ident, $Id:ident;
        id |$id:ident| $Key:ty: $uuid:expr, $list_of:expr;
        of |$of:ident, $fresh:ident, $ordinal:ident| $Of:ty: $list:expr, $id_at:expr;
        parent [$($Parent:ident)?]; pointers [$($pointers:path)?]; due [$($due:path)?]; spread [$($spread:ident)?]
    ) => {
        impl $crate::table::stored::Stored for $Name {
            type Id = $Key;
            const PARAMETER: &'static str = <$Id as $crate::values::id::Id>::PARAMETER;
            const RECORD: Option<&'static str> = Some(stringify!($Name));

            fn key(tenant: &$crate::values::tenant::Tenant, $id: $Key) -> $crate::table::keys::Key {
                $crate::table::keys::list_row(tenant, &$list_of, $crate::values::id::ordinal($uuid))
            }

            fn proof($id: $Key) -> Option<::uuid::Uuid> {
                Some($uuid)
            }

            fn hide(&self, item: &mut $crate::table::item::Item) -> ::core::result::Result<(), $crate::table::TableError> {
                $crate::table::declaration::Declared::hide(self, item)
            }

            $(fn due_partition(&self, id: $Key) -> Option<String> {
                $due(self, id)
            })?
        }

        impl $crate::table::stored::Listed for $Name {
            type Of = $Of;
            const SPREADS: bool = $crate::record!(@spreads $($spread)?);

            fn list($of: $Of) -> String {
                $list
            }

            fn list_of($id: $Key) -> String {
                let _ = $id;
                $list_of
            }

            fn id_at($of: $Of, $fresh: ::uuid::Uuid, $ordinal: u64) -> $Key {
                $id_at
            }

            $(fn parent(tenant: &$crate::values::tenant::Tenant, of: $Of) -> Option<$crate::table::declaration::Reference> {
                let parameter = <$Of as $crate::values::id::Id>::PARAMETER;
                $crate::table::stored::reference::<$Parent, _>(tenant, parameter, &of)
            })?

            $(fn pointers(&self, tenant: &$crate::values::tenant::Tenant) -> Vec<$crate::table::keys::Key> {
                $pointers(self, tenant)
            })?
        }
    };
}
