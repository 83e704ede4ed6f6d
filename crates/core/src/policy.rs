//! Who decides whether an action may be done: rules in order, then the class table.

use crate::definition::{Decide, Definition, OnExpiry, Questions, Rule, StateAct, ToolDefinition, ToolKind};
use crate::effect::Class;

/// What the policy says about one tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Allow, ask or deny.
    pub decide: Decide,
    /// How long a request stays open, in milliseconds.
    pub expires_ms: Option<u64>,
    /// What its expiry does.
    pub on_expiry: OnExpiry,
    /// How often people are reminded of it, in milliseconds.
    pub remind_ms: Option<u64>,
}

/// The first rule that matches decides; without one, the class does. State acts are no tools of the world and pass.
pub fn judge(definition: &Definition, tool: &ToolDefinition) -> Verdict {
    let plain = |decide| Verdict { decide, expires_ms: None, on_expiry: OnExpiry::Deny, remind_ms: None };
    if let (ToolKind::State { act: StateAct::Ask }, questions) = (&tool.kind, definition.questions) {
        let Questions { expires_ms, on_expiry, remind_ms } = questions;
        return Verdict { decide: Decide::Allow, expires_ms, on_expiry, remind_ms };
    }
    if is_own_state(&tool.kind) {
        return plain(Decide::Allow);
    }
    let rule = definition.policy.iter().find(|rule| applies(rule, tool));
    rule.map_or_else(
        || plain(without_a_rule(tool.class)),
        |rule| Verdict {
            decide: rule.decide,
            expires_ms: rule.expires_ms,
            on_expiry: rule.on_expiry,
            remind_ms: rule.remind_ms,
        },
    )
}

/// Notes, plan and artifacts are the run's own: no rule of the world's tools means them.
fn is_own_state(kind: &ToolKind) -> bool {
    match kind {
        ToolKind::State { .. } => true,
        ToolKind::Builtin { builtin, .. } => builtin == "artifacts",
        ToolKind::Command { .. } | ToolKind::Http(_) | ToolKind::Sql { .. } | ToolKind::Function => false,
    }
}

fn without_a_rule(class: Class) -> Decide {
    if class.is_repeatable() { Decide::Allow } else { Decide::Ask }
}

fn applies(rule: &Rule, tool: &ToolDefinition) -> bool {
    let named = rule.tools.is_empty()
        || rule.tools.iter().any(|pattern| matches(pattern, &tool.name) || matches(pattern, &tool.group));
    named && (rule.classes.is_empty() || rule.classes.contains(&tool.class))
}

/// Does the name fit the pattern, in which `*` stands for any run of characters?
///
/// Each text between two stars is taken where it is first found: that leaves the most for what follows, so that nothing is
/// ever tried twice, however many stars there are.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut name) = name.strip_prefix(head).and_then(|name| name.strip_suffix(tail)) else {
        return false;
    };
    for text in middle.split('*') {
        let Some(at) = name.find(text) else {
            return false;
        };
        name = &name[at + text.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, fits) in [
            ("publish", "publish", true),
            ("publish", "publisher", false),
            ("documents_*", "documents_read", true),
            ("*", "", true),
            ("*_read", "documents_read", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abde", false),
            ("a*a", "a", false),
            ("a**a", "aa", true),
            ("*b*b*", "ab", false),
            ("é*é", "éxé", true),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_take_no_longer_than_few() {
        // Tried one by one, the ways to lay 30 stars over 60 characters are more than 10^17.
        assert!(!matches(&format!("{}b", "*a".repeat(30)), &"a".repeat(60)));
        assert!(matches(&"*a".repeat(30), &"a".repeat(60)));
    }
}
