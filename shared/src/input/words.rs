//! The table of pydantic's types and messages.

/// A `type` and its message.
pub type Words = (&'static str, &'static str);

/// A required value is absent.
pub const MISSING: Words = ("missing", "Field required");
/// A name that the operation does not accept.
pub const EXTRA: Words = ("extra_forbidden", "Extra inputs are not permitted");
/// The body is not JSON.
pub const JSON: Words = ("json_invalid", "JSON decode error");
/// The body is JSON, but no object.
pub const BODY: Words =
    ("model_attributes_type", "Input should be a valid dictionary or object to extract fields from");
/// The body is no form.
pub const FORM: Words = ("multipart_invalid", "The body should be valid multipart/form-data");
/// A file was expected.
pub const FILE: Words = ("file_type", "Input should be a file, whose part has a file name");
/// A file without bytes.
pub const FILE_EMPTY: Words = ("file_empty", "The file should have at least 1 byte");
/// A string was expected.
pub const STRING: Words = ("string_type", "Input should be a valid string");
/// A string with half of a surrogate pair.
pub const UNICODE: Words =
    ("string_unicode", "Input should be a valid string, unable to parse raw data as a unicode string");
/// An integer was expected; the value is other text.
pub const INT_TEXT: Words = ("int_parsing", "Input should be a valid integer, unable to parse string as an integer");
/// An integer was expected; the value has a fraction.
pub const INT_FRACTION: Words =
    ("int_from_float", "Input should be a valid integer, got a number with a fractional part");
/// An integer was expected; the value is neither a number nor text.
pub const INT: Words = ("int_type", "Input should be a valid integer");
/// An integer of more than 64 bits.
pub const INT_SIZE: Words = ("int_parsing_size", "Unable to parse input string as an integer, exceeded maximum size");
/// No number.
pub const FLOAT: Words = ("float_type", "Input should be a valid number");
/// Text that is no number, or a number that is too large.
pub const FLOAT_TEXT: Words = ("float_parsing", "Input should be a valid number, unable to parse string as a number");
/// A boolean was expected; the value is other text or another integer of 64 bits.
pub const BOOL_TEXT: Words = ("bool_parsing", "Input should be a valid boolean, unable to interpret input");
/// A boolean was expected; the value is neither text nor an integer of 64 bits.
pub const BOOL: Words = ("bool_type", "Input should be a valid boolean");
/// An object was expected.
pub const DICT: Words = ("dict_type", "Input should be a valid dictionary");
/// An array was expected.
pub const LIST: Words = ("list_type", "Input should be a valid list");
/// A number from 0 to 1,000,000,000 was expected.
pub const AMOUNT: Words = ("value_error", "value is not a number from 0 to 1000000000");
/// An address of the web was expected.
pub const WEB_ADDRESS: Words = ("value_error", "value is not an address that begins with https:// or http://");
/// A point in time was expected; the value is other text.
pub const TIME: Words = ("datetime_parsing", "Input should be a valid datetime, such as 2030-01-31T12:00:00Z");
/// A date or a point in time was expected; the value is other text.
pub const DATE_OR_TIME: Words = (
    "datetime_from_date_parsing",
    "Input should be a valid datetime or date, such as 2030-01-31 or 2030-01-31T12:00:00Z",
);
/// A time of day was expected.
pub const TIME_OF_DAY: Words = ("time_parsing", "Input should be a time of day, such as 09:30");
/// No time zone.
pub const TIME_ZONE: Words =
    ("value_error", "value is not a time zone of the IANA database, such as UTC or Europe/Berlin");
/// No e-mail address.
pub const EMAIL: Words = ("value_error", "value is not a valid email address");
/// No telephone number.
pub const PHONE_NUMBER: Words =
    ("value_error", "value is not a valid phone number: 8 to 15 digits with the country code");
/// Text that is no URL of a web page.
pub const URL: Words = ("url_parsing", "Input should be a valid URL, such as https://example.com/page");
/// A UUID was expected; the value is not text.
pub const UUID: Words = ("uuid_type", "UUID input should be a string, bytes or UUID object");
/// The `type` of text that is no UUID; the message has a reason in it.
pub const UUID_TEXT: &str = "uuid_parsing";
/// The `type` of a word that is not in the list.
pub const ENUM: &str = "enum";
/// The `type` of text that does not match a pattern.
pub const PATTERN: &str = "string_pattern_mismatch";
/// A text that may not be empty.
pub const TEXT_TOO_SHORT: Words = ("string_too_short", "String should have at least 1 character");
/// The `type` of text with too many characters.
pub const TEXT_TOO_LONG: &str = "string_too_long";
/// The `type` of a number below its least value.
pub const TOO_SMALL: &str = "greater_than_equal";
/// The `type` of a number above its greatest value.
pub const TOO_LARGE: &str = "less_than_equal";
/// The `type` of an array with too few items.
pub const TOO_SHORT: &str = "too_short";
/// The `type` of an array with too many items.
pub const TOO_LONG: &str = "too_long";
