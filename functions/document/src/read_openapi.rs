//! `GET /api/v1/openapi.json`: the OpenAPI document of the API.

use shared::prelude::documents::*;

pub struct ReadOpenapi;

impl Document for ReadOpenapi {
    const MEDIA_TYPE: &'static str = "application/json";

    fn text(_: &Config, base_url: &str) -> String {
        // The file names the server by its path alone: with a stage or a base path, that path would be wrong.
        let server = |url: &str| format!("\"servers\": [\n    {{\n      \"url\": \"{url}\"");
        repository_file!("../../openapi.json").replacen(&server("/"), &server(base_url), 1)
    }
}
