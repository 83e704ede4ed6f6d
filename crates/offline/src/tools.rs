//! Which offered tool is which: by the end of its name and by the arguments that its schema offers.

use lodestep_model::ToolSpec;
use serde_json::Value;

/// The tools of a request by their part in the work.
pub(crate) struct Tools<'a> {
    /// Lists documents.
    pub(crate) list: &'a ToolSpec,
    /// Reads a range of a document.
    pub(crate) read: &'a ToolSpec,
    /// Saves an artifact.
    pub(crate) save: &'a ToolSpec,
    /// Keeps a note.
    pub(crate) note: &'a ToolSpec,
    /// Marks a milestone; a run without milestones may not offer it.
    pub(crate) plan: Option<&'a ToolSpec>,
    /// Ends the run.
    pub(crate) finish: &'a ToolSpec,
    /// All that are none of the runtime's own, in the order in which they are offered.
    pub(crate) publishing: Vec<&'a ToolSpec>,
}

/// The runtime's own tools: the end of the name, and arguments that tell it from another tool of such a name.
const OWN: &[(&str, &[&str])] = &[
    ("list", &["after"]),
    ("read", &["name", "from"]),
    ("search", &["query"]),
    ("artifact_save", &["name", "text"]),
    ("artifact_open", &["name"]),
    ("artifact_close", &["name"]),
    ("note", &["key", "text"]),
    ("plan", &["milestone", "status"]),
    ("ask", &["question"]),
    ("wait", &["seconds", "until"]),
    ("wait_for_signal", &["name", "timeout_seconds"]),
    ("finish", &["summary"]),
];

impl<'a> Tools<'a> {
    /// Finds the tools that the work needs.
    ///
    /// Where there is more than one folder of documents, the first one is read.
    ///
    /// # Errors
    ///
    /// Says which tools are missing.
    pub(crate) fn find(offered: &'a [ToolSpec]) -> Result<Self, String> {
        let find = |suffix| offered.iter().find(|tool| own(tool) == Some(suffix));
        let list = offered.iter().find(|tool| own(tool) == Some("list") && reader_of(tool, offered).is_some());
        let read = list.and_then(|list| reader_of(list, offered));
        let (save, note, finish) = (find("artifact_save"), find("note"), find("finish"));
        let (Some(list), Some(read), Some(save), Some(note), Some(finish)) = (list, read, save, note, finish) else {
            let needed = [
                ("a documents tool to list with (…_list)", list.is_none()),
                ("a documents tool to read with (…_read)", read.is_none()),
                ("artifact_save", save.is_none()),
                ("note", note.is_none()),
                ("finish", finish.is_none()),
            ];
            let missing: Vec<_> = needed.iter().filter(|(_, missing)| *missing).map(|(what, _)| *what).collect();
            return Err(format!(
                "the offline model does one thing: it reads documents and saves a report of cited sentences; \
                 the request does not offer {}",
                missing.join(", ")
            ));
        };
        let publishing = offered.iter().filter(|tool| own(tool).is_none()).collect();
        Ok(Self { list, read, save, note, plan: find("plan"), finish, publishing })
    }
}

/// The end of the name of one of the runtime's own tools; `None` for any other.
fn own(tool: &ToolSpec) -> Option<&'static str> {
    let is = |(suffix, arguments): &&(&'static str, &[&str])| {
        let before = tool.name.strip_suffix(suffix);
        before.is_some_and(|before| before.is_empty() || before.ends_with('_'))
            && arguments.iter().all(|name| property(tool, name).is_some())
    };
    OWN.iter().find(is).map(|(suffix, _)| *suffix)
}

/// The tool that reads what `list` lists.
fn reader_of<'a>(list: &ToolSpec, offered: &'a [ToolSpec]) -> Option<&'a ToolSpec> {
    let prefix = list.name.strip_suffix("list")?;
    offered.iter().find(|tool| own(tool) == Some("read") && tool.name.strip_suffix("read") == Some(prefix))
}

/// The schema of an argument.
pub(crate) fn property<'a>(tool: &'a ToolSpec, name: &str) -> Option<&'a Value> {
    tool.input.get("properties")?.get(name)
}

/// The most that an argument may be by its schema.
pub(crate) fn maximum(tool: &ToolSpec, name: &str) -> Option<u64> {
    property(tool, name)?.get("maximum")?.as_u64()
}
