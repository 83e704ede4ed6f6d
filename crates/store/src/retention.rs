//! Which snapshots are kept: the newest two, and older ones ever further apart.
//!
//! Seen from the newest, a snapshot between two others goes when the one beyond it is at most twice as old as the one
//! before it. What stays is a number of snapshots that grows with the logarithm of a run's length, and from any past
//! transition the way back to the nearest snapshot is no longer than its age. The first snapshot always stays.

/// The snapshots to delete, given those that exist, oldest first.
pub fn superfluous(seqs: &[u64]) -> Vec<u64> {
    let Some(newest) = seqs.last().copied() else { return Vec::new() };
    let age = |seq: u64| newest.saturating_sub(seq);
    let mut superfluous = Vec::new();
    let (mut kept, mut rest) = match seqs {
        [rest @ .., before, _] => (*before, rest),
        _ => return superfluous,
    };
    while let [beyond @ .., candidate] = rest {
        match beyond.last() {
            Some(next) if age(*next) <= 2 * age(kept) => superfluous.push(*candidate),
            _ => kept = *candidate,
        }
        rest = beyond;
    }
    superfluous
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_after(length: u64, every: u64) -> Vec<u64> {
        let mut kept: Vec<u64> = Vec::new();
        for seq in (every..=length).step_by(every as usize) {
            kept.push(seq);
            let gone = superfluous(&kept);
            kept.retain(|seq| !gone.contains(seq));
        }
        kept
    }

    #[test]
    fn the_newest_two_and_the_first_stay() {
        for length in 1..200 {
            let kept = kept_after(length * 64, 64);
            assert_eq!(kept.first(), Some(&64));
            assert_eq!(kept.last(), Some(&(length * 64)));
            assert!(length < 2 || kept.contains(&((length - 1) * 64)), "{kept:?}");
        }
    }

    #[test]
    fn their_number_grows_with_the_logarithm() {
        for (length, most) in [(1_000, 12), (100_000, 24), (1_000_000, 32)] {
            let kept = kept_after(length, 64);
            assert!(kept.len() <= most, "{length}: {kept:?}");
        }
    }

    #[test]
    fn the_way_back_is_no_longer_than_the_age() {
        let kept = kept_after(100_000, 64);
        let newest = *kept.last().expect("there are some");
        for pair in kept.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            assert!(to - from <= 128.max(newest - to + 128), "{from}..{to} of {newest}: {kept:?}");
        }
    }
}
