//! Requests as a person sees them: the tool, the exact arguments, what answers there are.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use lodestep::core::checkpoint::{Action, ActionState};
use lodestep::core::event::{Gate, Request};
use lodestep::core::rules::inbox::Word;
use lodestep::inspect::Opened;
use serde_json::{Value, json};

use crate::app::App;
use crate::text::visible;

/// How many bytes of one argument are shown; of a longer one the start, its length and the way to the rest are.
const SHOWN_BYTES: usize = 4_000;

/// The open requests of a run, in order.
pub fn open_requests(opened: &Opened) -> Vec<(&Action, &Request, bool)> {
    let asked = |action: &'_ Action| match &action.state {
        ActionState::Gated { gate: Gate::Approval(_) } => Some(true),
        ActionState::Gated { gate: Gate::Answer(_) } => Some(false),
        _ => None,
    };
    let pending = opened.checkpoint.pending.values();
    pending
        .filter_map(|action| {
            let approval = asked(action)?;
            match &action.state {
                ActionState::Gated { gate: Gate::Approval(request) | Gate::Answer(request) } => {
                    Some((action, request, approval))
                }
                _ => None,
            }
        })
        .collect()
}

/// A request in words.
pub fn describe(opened: &Opened, action: &Action, request: &Request, approval: bool) -> String {
    let arguments = opened.json(&action.arguments);
    if !approval {
        let question = arguments.get("question").and_then(Value::as_str).unwrap_or_default();
        let choices = arguments.get("choices").and_then(Value::as_array);
        let choices: Vec<&str> = choices.into_iter().flatten().filter_map(Value::as_str).collect();
        let choices = if choices.is_empty() {
            String::new()
        } else {
            format!("\n  choices: {}", visible(&choices.join(" | "), false))
        };
        return format!("question {}: {}{choices}\n", short(request), visible(question, true));
    }
    let mut text =
        format!("approval {}: {} (action {}, {})\n", short(request), action.tool, action.ordinal, action.class);
    for (name, value) in arguments.as_object().into_iter().flatten() {
        text.push_str(&format!("  {name}: {}\n", argument(value)));
    }
    if let Some(at) = request.expires_at {
        text.push_str(&format!(
            "  expires {at}, then it is {}\n",
            match request.on_expiry {
                lodestep::core::definition::OnExpiry::Deny => "denied",
                lodestep::core::definition::OnExpiry::Pause => "asked again by hand: the run stops",
            }
        ));
    }
    text
}

fn argument(value: &Value) -> String {
    if let (Some(name), Some(version)) = (value.get("artifact").and_then(Value::as_str), value.get("version")) {
        let digest = value.get("digest").and_then(Value::as_str).unwrap_or_default();
        let digest: String = digest.chars().take(12).collect();
        return format!("artifact {}, version {version} (digest {digest}…)", visible(name, false));
    }
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if text.len() <= SHOWN_BYTES {
        return visible(&text, false);
    }
    let cut = (0..=SHOWN_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let digest = lodestep::core::Digest::of(text.as_bytes()).to_hex();
    format!("{}… and {} more bytes (digest {})", visible(&text[..cut], false), text.len() - cut, &digest[..12])
}

/// A request as JSON.
pub fn as_json(opened: &Opened, action: &Action, request: &Request, approval: bool) -> Value {
    json!({
        "request": request.name, "short": short(request), "kind": if approval { "approval" } else { "question" },
        "action": action.ordinal, "tool": action.tool, "class": action.class, "arguments": opened.json(&action.arguments),
        "expires_at": request.expires_at.map(|at| at.to_string()), "on_expiry": request.on_expiry,
    })
}

/// The start of a request's name, as it is typed.
pub fn short(request: &Request) -> String {
    request.name.to_hex()[..4].to_owned()
}

/// How to answer the open requests of a run from anywhere.
pub fn hints(app: &App, opened: &Opened) -> String {
    open_requests(opened).into_iter().fold(String::new(), |mut text, (action, request, approval)| {
        text.push_str(&describe(opened, action, request, approval));
        let name = short(request);
        if approval {
            text.push_str(&format!(
                "  {}\n  {}\n",
                app.command(&format!("approve {name}")),
                app.command(&format!("deny {name} --reason …"))
            ));
        } else {
            text.push_str(&format!("  {}\n", app.command(&format!("answer {name} …"))));
        }
        text
    })
}

/// Asks at this terminal. `None` when there is none, or when the person wants to answer later.
pub fn ask_here(opened: &Opened) -> Option<Word> {
    let (stdin, stderr) = (std::io::stdin(), std::io::stderr());
    if !stdin.is_terminal() || !stderr.is_terminal() {
        return None;
    }
    let (action, request, approval) = open_requests(opened).into_iter().next()?;
    let prompt = if approval { "approve? [y]es, [n]o, [l]ater: " } else { "answer (an empty line answers later): " };
    loop {
        let _ = write!(stderr.lock(), "\n{}{prompt}", describe(opened, action, request, approval));
        let mut line = String::new();
        if stdin.lock().read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim();
        if !approval {
            let value = (!line.is_empty()).then(|| line.to_owned())?;
            return Some(Word::Answer { request: request.name, value });
        }
        match line {
            "y" | "yes" => return Some(Word::Approve { request: request.name }),
            "n" | "no" => {
                let _ = write!(stderr.lock(), "why (the model is told): ");
                let mut reason = String::new();
                stdin.lock().read_line(&mut reason).ok()?;
                return Some(Word::Deny { request: request.name, reason: reason.trim().to_owned() });
            }
            "l" | "later" => return None,
            _ => {}
        }
    }
}
