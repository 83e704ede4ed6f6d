//! A smaller input that fails alike: chunks are left out while it still does, ever smaller ones.

/// Leaves out of `input` what is not needed for `fails`, in at most `tries` tries.
pub fn minimize(input: &[u8], tries: usize, mut fails: impl FnMut(&[u8]) -> bool) -> Vec<u8> {
    let mut smallest = input.to_vec();
    let mut left = tries;
    let mut chunk = smallest.len().div_ceil(2);
    while chunk > 0 && left > 0 {
        let mut at = 0;
        while at < smallest.len() && left > 0 {
            let end = (at + chunk).min(smallest.len());
            let without = [&smallest[..at], &smallest[end..]].concat();
            left -= 1;
            if fails(&without) {
                smallest = without;
            } else {
                at = end;
            }
        }
        chunk /= 2;
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::minimize;

    #[test]
    fn only_what_fails_is_left() {
        let input = b"some words, a needle, and some more words";
        let fails = |input: &[u8]| input.windows(6).any(|six| six == b"needle");
        assert_eq!(minimize(input, 10_000, fails), b"needle");
        assert_eq!(minimize(input, 0, fails), input);
    }
}
