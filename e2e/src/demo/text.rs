//! The text that is counted, the program that counts it, and the count that all results must equal.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::command::{cache_folder, repository, run, run_quietly};

/// The text is cut behind the file that reaches this: about 1.7 CPU seconds for each of twelve tasks,
/// so that the three runs fit into three minutes.
const BYTES: u64 = 50_500_000;

/// Input, program and expected result, all on this machine.
pub struct Text {
    /// Root of what pods see as /data: input/, state/, out/.
    pub volume: PathBuf,
    /// The text's file name within input/.
    pub name: String,
    pub bytes: u64,
    /// The word count, built for this machine.
    pub program: PathBuf,
    /// The count of one process, as `wordcount count` prints it.
    pub expected: String,
}

impl Text {
    /// Prepares everything that isn't there yet. `say` tells what takes long.
    pub async fn prepare(say: impl Fn(&str)) -> Result<Self> {
        let folder = cache_folder()?.join("demo");
        let volume = folder.join("volume");
        std::fs::create_dir_all(volume.join("input"))?;
        let program = build_program(&folder).await?;
        let (sources, version) = kubernetes_sources().await?;
        let name = format!("kubernetes-{version}-{}mb.txt", BYTES / 1_000_000);
        let path = volume.join("input").join(&name);
        if !path.exists() {
            say(&format!(
                "gathering the text: Go sources and API specification of Kubernetes {version}"
            ));
            gather(&sources, &path).await?;
        }
        let bytes = std::fs::metadata(&path)?.len();
        ensure!(
            bytes >= BYTES,
            "{} has only {bytes} bytes: delete it and run again",
            path.display()
        );
        let expected = count_once(&folder, &program, &path, say).await?;
        Ok(Self {
            volume,
            name,
            bytes,
            program,
            expected,
        })
    }

    /// The text's file.
    pub fn path(&self) -> PathBuf {
        self.volume.join("input").join(&self.name)
    }

    /// How many different words, and how many words, the expected result has.
    pub fn words(&self) -> (usize, u64) {
        let counts = self
            .expected
            .lines()
            .filter_map(|line| line.split_once('\t')?.1.parse::<u64>().ok());
        (self.expected.lines().count(), counts.sum())
    }
}

/// Builds the word count; the Go toolchain decides whether there is anything to do.
async fn build_program(folder: &Path) -> Result<PathBuf> {
    let program = folder.join("wordcount");
    let part = folder.join(format!("wordcount.{}", std::process::id()));
    let source = repository().join("examples/wordcount");
    // -C is go's own change of folder; env, since cgo would link a C library that scratch lacks.
    let arguments: Vec<&std::ffi::OsStr> = vec![
        "CGO_ENABLED=0".as_ref(),
        "go".as_ref(),
        "build".as_ref(),
        "-C".as_ref(),
        source.as_ref(),
        "-trimpath".as_ref(),
        "-buildvcs=false".as_ref(),
        "-ldflags=-s -w".as_ref(),
        "-o".as_ref(),
        part.as_ref(),
        ".".as_ref(),
    ];
    run_quietly("env", &arguments)
        .await
        .context("building examples/wordcount")?;
    std::fs::rename(&part, &program)?;
    Ok(program)
}

/// Whose sources make up the text. The local cluster's default minor is built from these modules, so
/// that they are on the machine, and [`VERSIONS`] pins their versions.
const MODULES: [&str; 4] = [
    "k8s.io/kubernetes",
    "k8s.io/api",
    "k8s.io/apiserver",
    "k8s.io/client-go",
];

/// The Go module whose go.mod names the versions of [`MODULES`]. It does not follow `SHED_KUBERNETES`:
/// the text is the same on every cluster.
const VERSIONS: &str = "e2e/cluster/kube/1.37.2";

/// The folders of [`MODULES`], and the version of the first.
async fn kubernetes_sources() -> Result<(Vec<PathBuf>, String)> {
    let module = repository().join(VERSIONS);
    let module = module
        .to_str()
        .context("the repository's path isn't UTF-8")?;
    let download = ["-C", module, "mod", "download"];
    run_quietly("go", &[&download[..], &MODULES].concat()).await?;
    let list = ["-C", module, "list", "-m", "-f", "{{.Dir}}\t{{.Version}}"];
    let printed = run_quietly("go", &[&list[..], &MODULES].concat()).await?;
    let known: Vec<(&str, &str)> = printed
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .collect();
    let (_, version) = known.first().context("go list named no folder")?;
    let folders = known.iter().map(|(folder, _)| PathBuf::from(folder));
    Ok((folders.collect(), (*version).to_owned()))
}

/// Joins the sources, module by module in the order of their names, so that every machine counts
/// the same text.
async fn gather(sources: &[PathBuf], target: &Path) -> Result<()> {
    let mut files = Vec::new();
    for source in sources {
        let mut found = Vec::new();
        list_files(source, &mut found)?;
        let specification = source.join("api");
        found.retain(|file| {
            file.extension().is_some_and(|end| end == "go") || file.starts_with(&specification)
        });
        found.sort();
        files.append(&mut found);
    }
    let part = target.with_extension("part");
    let mut output = std::io::BufWriter::new(std::fs::File::create(&part)?);
    let mut written = 0;
    for file in &files {
        if written >= BYTES {
            break;
        }
        let mut input = std::fs::File::open(file)?;
        let copied = std::io::copy(&mut input, &mut output);
        written += copied.with_context(|| file.display().to_string())?;
    }
    output.into_inner()?.sync_all()?;
    std::fs::rename(&part, target)?;
    Ok(())
}

fn list_files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            list_files(&entry.path(), found)?;
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// The single-process count, made once for a text and a program.
async fn count_once(
    folder: &Path,
    program: &Path,
    text: &Path,
    say: impl Fn(&str),
) -> Result<String> {
    let sums = run_quietly("sha256sum", &[program, text]).await?;
    let short: Vec<_> = sums.lines().filter_map(|line| line.get(..16)).collect();
    let known = folder.join(format!("count-{}.tsv", short.join("-")));
    if let Ok(counted) = std::fs::read_to_string(&known) {
        return Ok(counted);
    }
    say("counting the text in a single process, for comparison (once)");
    let arguments = ["count".as_ref(), "-input".as_ref(), text.as_os_str()];
    let counted = run(program, &arguments).await?;
    let part = known.with_extension("part");
    std::fs::write(&part, &counted)?;
    std::fs::rename(&part, &known)?;
    Ok(counted)
}
