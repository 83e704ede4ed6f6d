//! What a store holds of a run, read by itself: an envelope, a snapshot, a definition.

use lodestep_core::event::{Envelope, Event, named_by};
use lodestep_core::rules::standing::standing;
use lodestep_core::{Checkpoint, Definition};

use super::answer_of;

/// An envelope. What was read is written so that it reads the same, and from then on to the byte.
pub(super) fn envelope(input: &[u8]) -> u64 {
    let read = Envelope::from_bytes(input);
    if let Ok(envelope) = &read {
        let written = envelope.to_bytes();
        assert_eq!(Envelope::from_bytes(&written).as_ref(), Ok(envelope), "it reads the same");
        let _ = envelope.events.iter().flat_map(named_by).count();
        assert!(serde_json::to_vec(envelope).is_ok(), "it can be shown");
    }
    answer_of(&read, |envelope| envelope.events.first().map_or("", Event::name).to_owned())
}

/// A snapshot.
pub(super) fn checkpoint(input: &[u8]) -> u64 {
    let read = Checkpoint::from_bytes(input);
    if let Ok(checkpoint) = &read {
        let written = checkpoint.to_bytes();
        assert_eq!(Checkpoint::from_bytes(&written).as_ref(), Ok(checkpoint), "it reads the same");
        let _ = (standing(checkpoint), checkpoint.stored(), checkpoint.remaining(), checkpoint.state_digest());
        assert!(serde_json::to_vec(checkpoint).is_ok(), "it can be shown");
    }
    answer_of(&read, |checkpoint| format!("{:?}", checkpoint.phase))
}

/// A definition: canonical JSON.
pub(super) fn definition(input: &[u8]) -> u64 {
    let read = Definition::from_bytes(input);
    if let Ok(definition) = &read {
        let written = definition.to_bytes();
        let again = Definition::from_bytes(&written).expect("what was written is read");
        assert_eq!(again.to_bytes(), written, "a definition has one spelling");
        let _ = (definition.offered(), definition.digest());
        for tool in &definition.tools {
            let _ = (lodestep_core::policy::judge(definition, tool), definition.tool_digest(tool));
        }
    }
    answer_of(&read, |definition| format!("{}", definition.tools.len().min(3)))
}
