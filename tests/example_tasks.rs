//! The tasks in `examples/tasks` as processes, next to the agent as a pod runs it: `shed agent`.

use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use shed_agent::{
    ATTEMPT_UID_VAR, HEALTH_PORT_VAR, PORT_VAR, PROGRESS_FILE_VAR, RESUME_FILE_VAR, RESUME_VAR,
    Report, read_reply,
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const UID: &str = "example-uid";
/// Seconds of work per unit in the attempt that is stopped, and in the one that continues.
const SLOW: &str = "0.2";
const QUICK: &str = "0.01";
/// Units that the first attempt has reported when it is stopped.
const UNITS_BEFORE_STOP: f64 = 5.0;
const UNITS: f64 = 40.0;
/// Starting a virtual machine may take seconds on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// An example is short enough to be read at a glance.
const LINES_MAX: usize = 20;

/// A folder that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("shed-example-{name}-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process that ends with its handle.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One attempt: the agent, and the files that it shares with the task.
struct Attempt {
    folder: Folder,
    port: u16,
    _agent: Running,
}

impl Attempt {
    fn start(name: &str, resume: Option<&Report>) -> Result<Self> {
        let folder = Folder::new(name)?;
        let (port, health) = (free_port()?, free_port()?);
        let mut agent = Command::new(env!("CARGO_BIN_EXE_shed"));
        agent
            .arg("agent")
            .env(ATTEMPT_UID_VAR, UID)
            .env(PROGRESS_FILE_VAR, folder.0.join("progress"))
            .env(RESUME_FILE_VAR, folder.0.join("resume"))
            .env(PORT_VAR, port.to_string())
            .env(HEALTH_PORT_VAR, health.to_string());
        if let Some(point) = resume {
            agent.env(RESUME_VAR, shed_agent::resume::to_env_value(point)?);
        }
        let agent = Running(agent.spawn()?);
        // The resume file is complete as soon as the startup probe passes.
        let started = Instant::now();
        while get(health, shed_agent::HEALTH_PATH).is_err() {
            assert!(started.elapsed() < PATIENCE, "the agent does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self {
            folder,
            port,
            _agent: agent,
        })
    }

    fn task(&self, program: &[String], step: &str) -> Result<Running> {
        let mut task = Command::new(&program[0]);
        task.args(&program[1..])
            .env(PROGRESS_FILE_VAR, self.folder.0.join("progress"))
            .env(RESUME_FILE_VAR, self.folder.0.join("resume"))
            .env("STEP", step)
            .stdout(Stdio::piped());
        Ok(Running(task.spawn()?))
    }

    fn poll(&self) -> Result<Option<Report>> {
        Ok(read_reply(&get(self.port, "/progress")?, UID)??)
    }
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
        .local_addr()?
        .port())
}

fn get(port: u16, path: &str) -> Result<Vec<u8>> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: pod\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let head = head.ok_or("no HTTP response")?;
    if !answer.starts_with(b"HTTP/1.1 200") {
        return Err(String::from_utf8_lossy(&answer[..head]).into());
    }
    Ok(answer.split_off(head + 4))
}

fn source(file: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/tasks");
    folder.join(file)
}

/// Whether a program is on this machine.
fn is_there(program: &str) -> bool {
    let mut command = Command::new(program);
    // `go version`; all others know the option.
    command.arg(if program == "go" {
        "version"
    } else {
        "--version"
    });
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    // A dash knows no --version, and is there all the same.
    status.is_ok_and(|status| program == "sh" || status.success())
}

/// Compiles `file` into `folder` with a command that ends with the name of the result.
fn compiled(folder: &Folder, compiler: &[&str], file: &str) -> Result<Vec<String>> {
    let program = folder.0.join("task");
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]).arg("-o").arg(&program);
    assert!(command.arg(source(file)).status()?.success(), "{file}");
    Ok(vec![program.display().to_string()])
}

fn interpreted(interpreter: &str, file: &str) -> Vec<String> {
    vec![interpreter.to_owned(), source(file).display().to_string()]
}

/// Runs an attempt until it has reported some units, stops it, and lets a second one continue.
fn reports_and_resumes(name: &str, program: &[String]) -> Result<()> {
    let first = Attempt::start(&format!("{name}-0"), None)?;
    let task = first.task(program, SLOW)?;
    let started = Instant::now();
    let mut progress = 0.0;
    let point = loop {
        let report = first.poll()?;
        if let Some(report) = report {
            assert!(report.progress() >= progress, "progress decreased");
            progress = report.progress();
            if progress * UNITS >= UNITS_BEFORE_STOP {
                break report;
            }
        }
        assert!(started.elapsed() < PATIENCE, "{name} does not report");
        std::thread::sleep(Duration::from_millis(20));
    };
    drop(task);
    assert!(progress < 1.0, "the first attempt was not stopped in time");
    let checkpoint = point.checkpoint().ok_or("a report without a checkpoint")?;

    let second = Attempt::start(&format!("{name}-1"), Some(&point))?;
    let mut task = second.task(program, QUICK)?;
    let mut printed = String::new();
    let mut output = task.0.stdout.take().ok_or("no output")?;
    output.read_to_string(&mut printed)?;
    assert!(task.0.wait()?.success(), "{name} failed: {printed}");
    assert_eq!(printed.trim(), format!("begins at unit {checkpoint}"));
    let last = second.poll()?.ok_or("no report at the end")?;
    assert!((last.progress() - 1.0).abs() < 1e-9, "{last:?}");
    Ok(())
}

/// Runs the task without shed's variables, as the built-in Job controller does.
fn works_without_shed(name: &str, program: &[String], folder: &Folder) -> Result<()> {
    let mut task = Command::new(&program[0]);
    task.args(&program[1..])
        .current_dir(&folder.0)
        .env_remove(PROGRESS_FILE_VAR)
        .env_remove(RESUME_FILE_VAR)
        .env("STEP", QUICK);
    let files = || fs::read_dir(&folder.0).map(Iterator::count);
    let before = files()?;
    let ended = task.output()?;
    assert!(ended.status.success(), "{name} needs shed: {ended:?}");
    let printed = String::from_utf8(ended.stdout)?;
    assert_eq!(printed.trim(), "begins at unit 0", "{name}");
    assert_eq!(files()?, before, "{name} left files behind");
    Ok(())
}

/// Runs one example, or prints that it is skipped and why.
fn run(
    name: &str,
    runtime: &str,
    file: &str,
    program: impl FnOnce(&Folder) -> Result<Vec<String>>,
) -> Result<()> {
    let text = fs::read_to_string(source(file))?;
    let is_code = |line: &&str| {
        let line = line.trim();
        !line.is_empty()
            && !["//", "#", "\"\"\""]
                .iter()
                .any(|mark| line.starts_with(mark))
    };
    let lines = text.lines().filter(is_code).count();
    assert!(lines <= LINES_MAX, "{file} has {lines} lines of code");
    if !is_there(runtime) {
        eprintln!("skipped: the task in {name}, because this machine has no `{runtime}`");
        return Ok(());
    }
    let folder = Folder::new(name)?;
    let program = program(&folder)?;
    works_without_shed(name, &program, &folder)?;
    reports_and_resumes(name, &program)
}

#[test]
fn the_task_in_shell_reports_and_resumes() -> Result<()> {
    run("shell", "sh", "task.sh", |_| {
        Ok(interpreted("sh", "task.sh"))
    })
}

#[test]
fn the_task_in_python_reports_and_resumes() -> Result<()> {
    run("Python", "python3", "task.py", |_| {
        Ok(interpreted("python3", "task.py"))
    })
}

#[test]
fn the_task_in_node_reports_and_resumes() -> Result<()> {
    run("Node", "node", "task.mjs", |_| {
        Ok(interpreted("node", "task.mjs"))
    })
}

#[test]
fn the_task_in_java_reports_and_resumes() -> Result<()> {
    run("Java", "javac", "Task.java", |_| {
        Ok(interpreted("java", "Task.java"))
    })
}

#[test]
fn the_task_in_go_reports_and_resumes() -> Result<()> {
    run("Go", "go", "task.go", |folder| {
        compiled(folder, &["go", "build"], "task.go")
    })
}

#[test]
fn the_task_in_rust_reports_and_resumes() -> Result<()> {
    run("Rust", "rustc", "task.rs", |folder| {
        compiled(folder, &["rustc", "--edition=2024"], "task.rs")
    })
}
