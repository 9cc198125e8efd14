//! The files of the page, which the program contains.

/// Name and content of each file of the folder `assets`.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_bytes!(concat!("assets/", $name)) as &[u8])),*]
    };
}

/// The files, by name. `index.html` is the page, and the others are under `/assets/`.
const FILES: &[(&str, &[u8])] = &files![
    "app.js",
    "attempts_table.js",
    "decisions.js",
    "dom.js",
    "events.js",
    "format.js",
    "gantt.js",
    "gantt_model.js",
    "gantt_paint.js",
    "icon.svg",
    "index.html",
    "job_view.js",
    "jobs_view.js",
    "legend.js",
    "pocd_chart.js",
    "poll.js",
    "requests.js",
    "routes.js",
    "style.css",
    "task_panel.js",
    "words.js",
];

pub(super) fn file(name: &str) -> Option<(&'static str, &'static [u8])> {
    let (name, content) = FILES.iter().find(|(known, _)| *known == name)?;
    let kind = match name.rsplit('.').next()? {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return None,
    };
    Some((kind, content))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_of_the_folder_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/page/assets");
        let entries = std::fs::read_dir(folder).unwrap();
        for entry in entries {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(file(&name).is_some(), "{name}");
        }
        assert!(file("../assets.rs").is_none());
    }

    /// The policy of the page forbids what is inline, and requests to other hosts.
    #[test]
    fn the_page_has_nothing_inline_and_names_no_other_host() {
        for (name, content) in FILES.iter().copied() {
            let text = String::from_utf8_lossy(content);
            let is_page = name.ends_with(".html");
            let inline = ["<style", "style=\"", "onclick=", "onload="];
            for part in inline.iter().filter(|_| is_page) {
                assert!(!text.contains(part), "{name}: {part}");
            }
            // Names of XML namespaces are no addresses.
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for part in ["http://", "https://", "//cdn", "@import"] {
                assert!(!text.contains(part), "{name}: {part}");
            }
        }
    }
}
