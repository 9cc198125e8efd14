//! The example of the policy's page, computed from the page's own tables.

use super::{World, brief, decided, ends_in, job, slots, steady};

const PAGE: &str = include_str!("../../../../../../docs/research/shed-prime.md");

/// The cells of the page's table whose first heading is this.
fn table(heading: &str) -> Vec<Vec<&'static str>> {
    let start = format!("| {heading} |");
    let lines = PAGE.lines().skip_while(|line| !line.starts_with(&start));
    let rows = lines.skip(2).take_while(|line| line.starts_with('|'));
    let cells = |row: &'static str| row.trim_matches('|').split('|').map(str::trim).collect();
    rows.map(cells).collect()
}

/// The only number of a cell.
fn number(cell: &str) -> Option<f64> {
    cell.split_whitespace().find_map(|word| word.parse().ok())
}

fn cluster(nodes: usize) -> World {
    let rows = table("job");
    assert_eq!(rows.len(), 3, "{rows:?}");
    let jobs = rows.iter().enumerate().map(|(node, row)| {
        let [name, task, deadline, attempt] = row[..] else {
            panic!("{row:?}")
        };
        let job = job(name).tasks(1).deadline_in(number(deadline).unwrap());
        let job = steady(job, number(task).unwrap());
        match number(attempt) {
            Some(seconds) => job.task(0, [ends_in(0, seconds).on(node)]),
            None => job,
        }
    });
    jobs.fold(slots(nodes), World::job)
}

#[test]
fn the_example_of_the_page_is_what_the_policy_does() {
    let rows = table("slots");
    assert_eq!(rows.len(), 3, "{rows:?}");
    for row in rows {
        let nodes = number(row[0]).unwrap() as usize;
        let moves = brief(&decided("shed-prime", cluster(nodes)));
        let moves: Vec<_> = moves.iter().map(|own| format!("`{own}`")).collect();
        assert_eq!(moves.join(", "), row[1], "{nodes} slots");
    }
}
