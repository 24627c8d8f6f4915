//! The OpenAPI document of `/api/v1`, made from the table of operations and from the schemas of the command line's documents.

use serde_json::{Map, Value, json};

use super::operation::Operation;

/// The schemas of the documents, which the tests of the command line check too.
const SCHEMAS: &str = include_str!("../../../commands.schema.json");

/// The schema of a page of runs, the only document that no command prints.
pub(super) const RUN_PAGE: &str = "runPage";

pub(super) fn document(operations: &[Operation]) -> Value {
    let paths: Map<String, Value> = operations
        .iter()
        .map(|operation| (operation.path.to_owned(), json!({ "get": described(operation) })))
        .collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Regatta's coordinator",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Reads the lab. Fields are added, and never renamed or removed. Times are RFC 3339 in UTC.",
        },
        "paths": paths,
        // Loopback needs no token.
        "security": [{}, { "token": [] }],
        "components": {
            "schemas": schemas(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn described(operation: &Operation) -> Value {
    let named = operation.path.split(['{', '}']).nth(1);
    let in_path = named
        .map(|name| json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    let in_query = operation.query.iter().map(|parameter| {
        json!({
            "name": parameter.name, "in": "query", "required": parameter.is_required,
            "description": parameter.meaning, "schema": { "type": "string" },
        })
    });
    let parameters: Vec<Value> = in_path.into_iter().chain(in_query).collect();
    let content = |schema: &str| json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{schema}") } } });
    json!({
        "summary": operation.summary,
        "parameters": parameters,
        "responses": {
            "200": { "description": "The document.", "content": content(operation.schema) },
            "default": { "description": "Why there is none.", "content": content("error") },
        },
    })
}

fn schemas() -> Value {
    let text = SCHEMAS.replace("#/$defs/", "#/components/schemas/");
    let parsed: Value = serde_json::from_str(&text).unwrap_or_default();
    let mut schemas = parsed.get("$defs").cloned().unwrap_or_default();
    schemas[RUN_PAGE] = json!({
        "description": "a page of runs",
        "type": "object",
        "required": ["runs", "next"],
        "properties": {
            "runs": { "type": "array", "items": { "$ref": "#/components/schemas/run" } },
            "next": { "type": ["string", "null"] },
        },
        "additionalProperties": false,
    });
    schemas["error"] = json!({
        "type": "object",
        "required": ["error", "hint"],
        "properties": { "error": { "type": "string" }, "hint": { "type": "string" } },
        "additionalProperties": false,
    });
    schemas
}

#[cfg(test)]
mod tests {
    use super::{super::operations, *};

    #[test]
    fn every_schema_that_is_named_is_there() {
        let document = document(&operations());
        let text = document.to_string();
        for name in text.split("#/components/schemas/").skip(1) {
            let name = name.split('"').next().unwrap();
            assert!(document["components"]["schemas"].get(name).is_some(), "{name}");
        }
        assert!(text.contains("/api/v1/devices/{device}"), "{text}");
    }
}
