//! Tests that each link of `docs/TOUR.md`, the tour of the code, names an item of its file.

use repository::{read, root};

#[test]
fn the_tour_names_existing_files_and_items() {
    let page = read("docs/TOUR.md");
    let mut seen = 0;
    for (before, after) in page.match_indices("](").map(|(at, _)| (&page[..at], &page[at + 2..])) {
        let (label, target) = (before.rsplit('[').next().unwrap(), after.split([')', '#']).next().unwrap());
        let file = root().join("docs").join(target);
        assert!(file.exists(), "{label}: there is no {target}");
        let Some(name) = label.strip_prefix('`').and_then(|label| label.strip_suffix('`')) else { continue };
        seen += 1;
        if target.ends_with(name) || file.is_dir() {
            continue;
        }
        let name = name.rsplit("::").next().unwrap().trim_end_matches('!');
        let text = std::fs::read_to_string(&file).unwrap();
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        assert!(words.any(|word| word == name), "{target} does not name {name}");
    }
    assert!(seen > 30, "{seen}");
}
