//! What a misspelt name was probably meant to be.

/// The one of `names` that `wrong` most likely misspells, if one is near enough: at most one letter
/// in three has to be inserted, removed or replaced.
pub fn nearest<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    let near = |name: &&str| {
        let edits = edits(&wrong, name);
        (edits <= wrong.chars().count().max(name.chars().count()).div_ceil(3)).then_some(edits)
    };
    let candidates = names.into_iter().filter_map(|name| near(&name).map(|edits| (edits, name)));
    candidates.min_by_key(|&(edits, _)| edits).map(|(_, name)| name)
}

/// How many letters have to be inserted, removed or replaced (Levenshtein).
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (a, b, count) in [("", "abc", 3), ("kitten", "sitting", 3), ("nice", "nice", 0)] {
            assert_eq!(edits(a, b), count);
            assert_eq!(edits(b, a), count);
        }
    }

    #[test]
    fn only_near_names_are_suggested() {
        let names = ["arrival_ns", "service_ns", "name", "nice"];
        assert_eq!(nearest("Arrival_ms", names), Some("arrival_ns"));
        assert_eq!(nearest("nic", names), Some("nice"));
        assert_eq!(nearest("weight", names), None);
    }
}
