//! The tools: the command, the arguments and the required permission of each.

use crate::arguments::{ArgumentError, Given};
use serde_json::{Map, Value, json};

/// The permissions that the server was started with.
#[derive(Clone, Copy)]
pub(crate) struct Allowed {
    /// To start programs.
    pub(crate) run: bool,
    /// To write files that the client names.
    pub(crate) write: bool,
}

/// A call's side effects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Does {
    /// The call only reads.
    Reads,
    /// It starts programs that the client names.
    Runs,
    /// It starts programs, and writes files that the client names.
    Writes,
}

impl Does {
    /// The option that allows it, when it is not allowed.
    pub(crate) fn refused(self, allowed: Allowed) -> Option<&'static str> {
        match self {
            Does::Runs if !allowed.run => Some("--allow-run"),
            Does::Writes if !allowed.write => Some("--allow-write"),
            _ => None,
        }
    }
}

/// A command of `lineup`.
pub(crate) struct Call {
    pub(crate) arguments: Vec<String>,
    pub(crate) does: Does,
}

/// One tool.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// The most that a call of it does.
    pub(crate) does: Does,
    /// Its arguments: name, JSON Schema, whether it is needed.
    properties: fn() -> Vec<(&'static str, Value, bool)>,
    call: fn(&mut Given) -> Result<Call, ArgumentError>,
}

impl Tool {
    /// The tool of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Tool> {
        TOOLS.iter().find(|tool| tool.name == name)
    }

    /// JSON Schema of the arguments.
    pub(crate) fn input_schema(&self) -> Map<String, Value> {
        let properties = (self.properties)();
        let needed: Vec<&str> =
            properties.iter().filter(|(_, _, is_needed)| *is_needed).map(|(name, ..)| *name).collect();
        let mut schema = Map::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("required".to_owned(), json!(needed));
        schema.insert("additionalProperties".to_owned(), json!(false));
        let named = properties.into_iter().map(|(name, schema, _)| (name.to_owned(), schema));
        schema.insert("properties".to_owned(), Value::Object(named.collect()));
        schema
    }

    /// The command that a call of it is.
    ///
    /// # Errors
    /// When the arguments are not those of the tool.
    pub(crate) fn call(&self, given: Option<Map<String, Value>>) -> Result<Call, ArgumentError> {
        let mut given = Given::new(given);
        let call = (self.call)(&mut given)?;
        given.end()?;
        Ok(call)
    }
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn texts(description: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": description })
}

/// All tools.
pub(crate) const TOOLS: &[Tool] = &[
    Tool {
        name: "layout",
        description: "How types lie in memory: members, offsets, holes, cache lines. Reads a program, library, object file, \
                      vmlinux or BTF image that was built with debug information. Without types all types are listed, which of a \
                      large program is much.",
        does: Does::Reads,
        properties: || {
            vec![
                ("file", text("Path of the program, library, object file or BTF image"), true),
                ("types", texts("Names of types, with or without namespaces"), false),
                (
                    "line_size",
                    json!({ "type": "integer", "enum": [32, 64, 128], "description": "Bytes in a cache line; 64 if absent" }),
                    false,
                ),
            ]
        },
        call: layout,
    },
    Tool {
        name: "explain",
        description: "Lists the data that the calls in a recording touched: cache lines per call, by type and member, \
                      and the share without a name. Reads a file that `lineup record` made.",
        does: Does::Reads,
        properties: || vec![("recording", text("Path of the recording"), true)],
        call: explain,
    },
    Tool {
        name: "find",
        description: "Runs a program and says which types, members and functions stall most by a cache model, with an \
                      upper bound of what another layout gains. Needs --allow-run.",
        does: Does::Runs,
        properties: || vec![("command", texts("The program and its arguments"), true)],
        call: find,
    },
    Tool {
        name: "advise",
        description: "Works out layouts that touch fewer cache lines from a recording. With source and build, which needs \
                      --allow-run, edits are compiled in a copy and offsets read back; nothing is timed, and the source is not changed.",
        does: Does::Runs,
        properties: || {
            vec![
                ("recording", text("Path of the recording"), true),
                ("source", text("Folder with the program's source"), false),
                ("build", text("Command that builds it there; read by a shell"), false),
            ]
        },
        call: advise,
    },
    Tool {
        name: "study",
        description: "Studies a program end to end: records, proposes, rebuilds in copies, compares what both variants do and how \
                      long it takes, and writes the patch and the report into `out`. Takes minutes. Needs --allow-write.",
        does: Does::Writes,
        properties: || {
            vec![
                ("source", text("Folder with the program's source; it is not changed"), true),
                ("build", text("Command that builds it there; read by a shell"), true),
                ("regions", texts("Functions to study"), true),
                ("command", texts("The program and its arguments"), true),
                ("out", text("Folder for the patch and the report"), true),
            ]
        },
        call: study,
    },
];

fn layout(given: &mut Given) -> Result<Call, ArgumentError> {
    let mut arguments = vec!["layout".to_owned(), "--json".to_owned()];
    arguments.extend(given.number("line_size")?.map(|bytes| format!("--line-size={bytes}")));
    arguments.extend(["--".to_owned(), given.needed("file")?]);
    arguments.extend(given.list("types")?);
    Ok(Call { arguments, does: Does::Reads })
}

fn explain(given: &mut Given) -> Result<Call, ArgumentError> {
    let arguments =
        vec!["explain".to_owned(), "--json".to_owned(), "--".to_owned(), given.needed("recording")?];
    Ok(Call { arguments, does: Does::Reads })
}

fn find(given: &mut Given) -> Result<Call, ArgumentError> {
    let mut arguments = vec!["find".to_owned(), "--json".to_owned(), "--".to_owned()];
    arguments.extend(given.needed_list("command")?);
    Ok(Call { arguments, does: Does::Runs })
}

fn advise(given: &mut Given) -> Result<Call, ArgumentError> {
    let mut arguments = vec!["advise".to_owned(), "--json".to_owned()];
    arguments.extend(given.text("source")?.map(|source| format!("--source={source}")));
    let build = given.text("build")?;
    let does = if build.is_some() { Does::Runs } else { Does::Reads };
    arguments.extend(build.map(|build| format!("--build={build}")));
    arguments.extend(["--".to_owned(), given.needed("recording")?]);
    Ok(Call { arguments, does })
}

fn study(given: &mut Given) -> Result<Call, ArgumentError> {
    let mut arguments = vec!["study".to_owned(), "--json".to_owned()];
    for option in ["source", "build", "out"] {
        arguments.push(format!("--{option}={}", given.needed(option)?));
    }
    arguments.extend(given.needed_list("regions")?.into_iter().map(|region| format!("--region={region}")));
    arguments.push("--".to_owned());
    arguments.extend(given.needed_list("command")?);
    Ok(Call { arguments, does: Does::Writes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(name: &str, given: Value) -> Result<Call, ArgumentError> {
        Tool::named(name).expect("a tool").call(given.as_object().cloned())
    }

    #[test]
    fn what_is_given_is_never_an_option() {
        let call = called("layout", json!({ "file": "--full", "types": ["--all"], "line_size": 32 }))
            .expect("a call");
        assert_eq!(call.arguments, ["layout", "--json", "--line-size=32", "--", "--full", "--all"]);
        let call = called("advise", json!({ "recording": "-x", "source": "-y" })).expect("a call");
        assert_eq!(call.arguments, ["advise", "--json", "--source=-y", "--", "-x"]);
    }

    #[test]
    fn arguments_are_checked() {
        let refused = |name, given| called(name, given).err().expect("a refusal").to_string();
        assert_eq!(refused("layout", json!({})), "`file` is missing");
        assert_eq!(refused("layout", json!({ "file": 3 })), "`file` is not a text");
        assert_eq!(refused("layout", json!({ "file": "a", "types": "b" })), "`types` is not a list of texts");
        assert_eq!(refused("layout", json!({ "file": "a", "colour": "b" })), "there is no argument `colour`");
        assert_eq!(refused("find", json!({ "command": [] })), "`command` is missing");
    }

    #[test]
    fn what_a_call_does_has_to_be_allowed() {
        let refused = |name, given, run, write| {
            called(name, given).expect("a call").does.refused(Allowed { run, write })
        };
        let build = json!({ "recording": "a", "source": ".", "build": "make" });
        assert_eq!(refused("advise", json!({ "recording": "a" }), false, false), None);
        assert_eq!(refused("advise", build.clone(), false, false), Some("--allow-run"));
        assert_eq!(refused("advise", build, true, false), None);
        let study =
            json!({ "source": ".", "build": "make", "regions": ["f"], "command": ["./a"], "out": "out" });
        assert_eq!(refused("study", study.clone(), true, false), Some("--allow-write"));
        assert_eq!(refused("study", study, true, true), None);
    }

    /// A call takes the arguments of its schema and no others, and requires those that the schema requires.
    #[test]
    fn schemas_tell_what_calls_take() {
        for tool in TOOLS {
            let schema = tool.input_schema();
            let sample = |kind: &Value| match kind["type"].as_str() {
                Some("array") => json!(["x"]),
                Some("integer") => json!(64),
                _ => json!("x"),
            };
            let all: Map<String, Value> = schema["properties"]
                .as_object()
                .expect("properties")
                .iter()
                .map(|(name, kind)| (name.clone(), sample(kind)))
                .collect();
            assert!(tool.call(Some(all.clone())).is_ok(), "{}", tool.name);
            let needed = schema["required"].as_array().expect("a list");
            for name in all.keys() {
                let mut without = all.clone();
                without.remove(name);
                let is_needed = needed.iter().any(|other| other == name);
                assert_eq!(tool.call(Some(without)).is_err(), is_needed, "{}: {name}", tool.name);
            }
        }
    }
}
