//! A tool that is one statement of a database: where, what, and which arguments it takes.

use lodestep_core::definition::{ToolDefinition, ToolKind};
use lodestep_core::effect::Class;
use serde_json::Value;

use super::command::{attempts, dedupe, same_by, time};
use super::duration::{DAY_MS, LONGEST_MS};
use super::names::instead;
use super::reader::Item;
use super::references::Allowed;
use super::schema;
use super::table::Table;
use super::tools::{Ground, KEY_VALID_FOR_MS, TIMEOUT_MS, root};
use crate::tools::sql::parameters;

/// An effect is checkable by construction: its key stands in the database that it changed.
const CLASSES: [(&str, Class); 2] = [("checkable", Class::Checkable), ("read", Class::Read)];

const EXAMPLE: &str = "{ database = \"shop.db\", statement = \"INSERT INTO charge (invoice) VALUES (:invoice)\" }";

/// Reads the table of a statement.
pub(super) fn tool(name: &str, item: &Item<'_>, table: &Table<'_>, ground: &Ground<'_>) -> ToolDefinition {
    let description = table.need("description", "description = \"Charge the invoice.\"");
    let description = description.and_then(|item| item.said(&Allowed::Nothing));
    let class = table.get("class").map_or(Some(Class::Checkable), |item| item.one_of(&CLASSES));
    let input = table.need("input", "input = { type = \"object\", properties = { … } }");
    let schema = input.and_then(|item| schema::input(&item, class));
    let (database, statement) = place_and_text(item, schema.as_ref(), ground);
    ToolDefinition {
        name: name.to_owned(),
        group: name.to_owned(),
        description: description.unwrap_or_default(),
        same_by: same_by(table, class, schema.as_ref()),
        dedupe: dedupe(table, class, schema.as_ref()),
        output: table.get("output").and_then(|item| schema::output(&item)),
        input: schema.unwrap_or_default(),
        class: class.unwrap_or(Class::Checkable),
        kind: ToolKind::Sql { database, statement },
        timeout_ms: time(table, "timeout", DAY_MS).unwrap_or(TIMEOUT_MS),
        max_attempts: attempts(table),
        key_valid_for_ms: KEY_VALID_FOR_MS,
        // The lookup fences what is still on its way, so that nothing has to be waited for.
        settles_after_ms: 0,
        deadline_ms: time(table, "deadline", LONGEST_MS),
    }
}

fn place_and_text(item: &Item<'_>, schema: Option<&Value>, ground: &Ground<'_>) -> (String, String) {
    let Some(sql) = item.table("sql", &format!("a table: {EXAMPLE}")) else {
        return Default::default();
    };
    let database = sql.need("database", "database = \"shop.db\"").and_then(|item| root(&item, ground, false));
    let statement = sql.need("statement", "statement = \"SELECT …\"").and_then(|item| statement(&item, schema));
    sql.close();
    (database.unwrap_or_default(), statement.unwrap_or_default())
}

/// Each parameter is an argument that the schema knows.
fn statement(item: &Item<'_>, schema: Option<&Value>) -> Option<String> {
    let text = item.said(&Allowed::Nothing)?;
    let names = match parameters(&text) {
        Ok(names) => names,
        Err(fault) => {
            item.fault(format!("`{}`: {fault}", item.name), "see the section on sql in docs/effects.md");
            return None;
        }
    };
    let properties = schema?.get("properties").and_then(Value::as_object)?;
    let known: Vec<&str> = properties.keys().map(String::as_str).collect();
    for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
        let what = format!("`:{name}`: `input` has no property `{name}`");
        item.faults.add(item.place_of(&format!(":{name}")), what, instead(name, &known, "properties"));
    }
    Some(text)
}
