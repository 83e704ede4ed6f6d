//! Every value that a checkpoint names, with its place.

use super::{ActionState, Checkpoint, Phase};
use crate::value::Stored;

impl Checkpoint {
    /// Every value that the state names.
    pub fn stored(&self) -> Vec<Stored> {
        self.clone().stored_mut().into_iter().map(|stored| *stored).collect()
    }

    /// The same, to be changed.
    pub(crate) fn stored_mut(&mut self) -> Vec<&mut Stored> {
        let mut all = vec![&mut self.definition, &mut self.inputs];
        match &mut self.phase {
            Phase::Active => {}
            Phase::Stopped { text, .. } | Phase::Ended { text, .. } => all.push(text),
            Phase::Cancelling { reason, .. } => all.push(reason),
        }
        all.extend(self.plan.iter_mut().filter_map(|milestone| milestone.title.as_mut()));
        all.extend(self.notes.values_mut());
        all.extend(self.model.texts.iter_mut().map(|text| &mut text.text));
        all.extend(self.model.blocks.as_mut().map(|blocks| &mut blocks.text));
        all.extend(self.model.last_manifest.as_mut());
        for action in self.pending.values_mut() {
            all.push(&mut action.arguments);
            if let ActionState::Doubt { text, .. } = &mut action.state {
                all.push(text);
            }
            all.extend(action.elsewhere.as_mut().and_then(|found| found.result.as_mut()));
        }
        all.extend(self.recent.iter_mut().flat_map(|settled| [&mut settled.arguments, &mut settled.result]));
        all.extend(self.artifacts.values_mut().map(|artifact| &mut artifact.content));
        all.extend(self.guidance.iter_mut().map(|guidance| &mut guidance.text));
        all.extend(self.signals.iter_mut().map(|signal| &mut signal.value));
        all.extend(self.earlier.iter_mut().flat_map(|earlier| earlier.values_mut()));
        all.extend(self.errors.iter_mut().map(|error| &mut error.text));
        all
    }
}
