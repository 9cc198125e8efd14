//! The agent as a pod runs it: a real server on a free port, real files, and a client that
//! speaks HTTP by hand, so that it can also misbehave.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use shed_agent::signed::SigningKey;
use shed_agent::wire::{REPLY_BYTES_MAX, WireError};
use shed_agent::{Agent, AgentConfig, Report, ReportError, Resume, Series, read_reply};

const UID: &str = "6b1f0a52-uid";

/// The age of a file that is a report.
const FILE_AGE: Duration = Duration::from_secs(5);

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("shed-agent-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn config(&self) -> AgentConfig {
        AgentConfig {
            attempt_uid: UID.into(),
            progress_file: self.file("progress"),
            port: 0,
            health_port: 0,
            resume: None,
            reply_key: None,
            fence: None,
            stop: None,
        }
    }

    fn resume(&self, progress: f64, checkpoint: Option<&str>) -> Resume {
        Resume {
            file: self.file("resume"),
            point: Report::new(progress, checkpoint.map(str::to_owned)).unwrap(),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Running {
    address: SocketAddr,
    health: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    let patience = Some(Duration::from_secs(10));
    stream.set_read_timeout(patience).unwrap();
    stream
}

impl Running {
    fn start(config: AgentConfig) -> Self {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (send_port, port) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .max_blocking_threads(1)
                .build()
                .unwrap();
            runtime.block_on(async {
                let agent = Agent::start(config).await.unwrap();
                let ports = [agent.local_addr(), agent.health_addr()];
                send_port.send(ports.map(|at| at.unwrap().port())).unwrap();
                let shutdown = async { stopped.await.unwrap_or_default() };
                agent.serve(shutdown).await.unwrap();
            });
        });
        let [port, health] = port.recv().unwrap();
        Running {
            address: (Ipv4Addr::LOCALHOST, port).into(),
            health: (Ipv4Addr::LOCALHOST, health).into(),
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    fn get(&self, path: &str) -> (u16, Vec<u8>) {
        Self::get_at(self.address, path)
    }

    /// As the kubelet's startup probe asks.
    fn probe(&self, path: &str) -> (u16, Vec<u8>) {
        Self::get_at(self.health, path)
    }

    fn get_at(address: SocketAddr, path: &str) -> (u16, Vec<u8>) {
        let (status, _, body) = Self::exchange(address, &format!("GET {path} HTTP/1.1\r\n"));
        (status, body)
    }

    /// The status, the head and the body of the answer.
    fn exchange(address: SocketAddr, request: &str) -> (u16, String, Vec<u8>) {
        let mut stream = connect(address);
        write!(stream, "{request}Host: pod\r\n\r\n").unwrap();
        let mut answer = Vec::new();
        // Ends only because the agent closes the connection after one answer.
        stream.read_to_end(&mut answer).unwrap();
        let head_end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..head_end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head, answer[head_end + 4..].to_vec())
    }

    fn poll(&self) -> Result<Option<Report>, ReportError> {
        let (status, body) = self.get("/progress");
        assert_eq!(status, 200);
        assert!(body.len() <= REPLY_BYTES_MAX);
        read_reply(&body, UID).unwrap()
    }

    fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
        }
    }
}

fn make_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn the_progress_of_a_growing_file_is_served() {
    let folder = Folder::new();
    let agent = Running::start(folder.config());
    let mut series = Series::new(0.0);
    series.observe(0, agent.poll());
    assert_eq!(series.first(), None, "no file yet");
    let contents = [
        "",
        "1/40\n",
        "0.5",
        "0.3",
        "NaN",
        "{\"progress\":0.75,\"checkpoint\":\"c\"}\n",
    ];
    // A report counts from when its file was written, which the agent tells by its age.
    let mut written = Vec::new();
    for (second, content) in contents.iter().enumerate() {
        let file = folder.file("progress");
        fs::write(&file, content).unwrap();
        let file = fs::File::options().write(true).open(file).unwrap();
        file.set_modified(SystemTime::now() - FILE_AGE).unwrap();
        let answer = agent.poll();
        let age = match &answer {
            Ok(Some(report)) => report.age_ms() as i64,
            _ => 0,
        };
        let is_report = matches!(answer, Ok(Some(_)));
        assert_eq!(age >= FILE_AGE.as_millis() as i64, is_report, "{age} ms");
        let now = 1000 * second as i64;
        written.push(now - age);
        series.observe(now, answer);
    }
    assert_eq!(series.first(), Some((written[1], 0.025)));
    assert_eq!(series.advanced(), Some((written[5], 0.75)));
    assert_eq!(series.last(), Some((5000, 0.75)), "when it was polled");
    assert_eq!(series.checkpoint(), Some((0.75, "c")));
    let refused: Vec<_> = series.refused().iter().map(|(k, v)| (*k, *v)).collect();
    assert_eq!(refused, [("backwards", 1), ("not_finite", 1)]);
}

#[test]
fn a_huge_file_is_refused_by_its_size_and_answered_briefly() {
    let folder = Folder::new();
    let agent = Running::start(folder.config());
    for byte in [b'0', 0, 0xff] {
        fs::write(folder.file("progress"), vec![byte; 10 << 20]).unwrap();
        assert_eq!(agent.poll(), Err(ReportError::TooLarge));
    }
}

#[test]
fn the_agent_neither_waits_for_nor_follows_irregular_files() {
    let folder = Folder::new();
    let agent = Running::start(folder.config());
    let progress = folder.file("progress");

    make_fifo(&progress);
    assert_eq!(agent.poll(), Err(ReportError::Unreadable));
    fs::remove_file(&progress).unwrap();

    fs::write(folder.file("secret"), "0.9").unwrap();
    symlink(folder.file("secret"), &progress).unwrap();
    assert_eq!(agent.poll(), Err(ReportError::Unreadable));
    fs::remove_file(&progress).unwrap();

    symlink("/dev/zero", &progress).unwrap();
    assert_eq!(agent.poll(), Err(ReportError::Unreadable));
    fs::remove_file(&progress).unwrap();

    fs::create_dir(&progress).unwrap();
    assert_eq!(agent.poll(), Err(ReportError::Unreadable));
    fs::remove_dir(&progress).unwrap();

    let socket = std::os::unix::net::UnixListener::bind(&progress).unwrap();
    assert_eq!(agent.poll(), Err(ReportError::Unreadable));
    drop(socket);
    fs::remove_file(&progress).unwrap();

    fs::write(&progress, "0.9").unwrap();
    assert_eq!(agent.poll().unwrap().unwrap().progress(), 0.9);
}

#[test]
fn text_that_is_not_utf8_is_refused_and_not_repaired() {
    let folder = Folder::new();
    let agent = Running::start(folder.config());
    let content = b"{\"progress\":0.4,\"checkpoint\":\"\xff\"}";
    fs::write(folder.file("progress"), content).unwrap();
    assert_eq!(agent.poll(), Err(ReportError::NotUtf8));
}

#[test]
fn an_answer_for_another_attempt_is_refused() {
    let folder = Folder::new();
    let agent = Running::start(folder.config());
    fs::write(folder.file("progress"), "0.9").unwrap();
    let (_, body) = agent.get("/progress");
    assert_eq!(read_reply(&body, "another"), Err(WireError::WrongAttempt));
}

#[test]
fn an_answer_has_the_code_of_its_attempt_and_its_question() {
    let folder = Folder::new();
    let operator = SigningKey::from_pkcs8(&SigningKey::generate().unwrap()).unwrap();
    let key = operator.reply_key("job", "pod");
    let config = AgentConfig {
        reply_key: Some(key.clone()),
        ..folder.config()
    };
    let agent = Running::start(config);
    fs::write(folder.file("progress"), "0.9").unwrap();
    let ask = |headers: &str| {
        let request = format!("GET /progress HTTP/1.1\r\n{headers}");
        let (status, head, body) = Running::exchange(agent.address, &request);
        let said = head
            .lines()
            .find_map(|line| line.strip_prefix("shed-code: "));
        (status, said.map(str::to_owned), body)
    };
    let (status, said, body) = ask("shed-nonce: n1\r\n");
    let said = said.unwrap();
    let is_of =
        |nonce: &str, body: &[u8]| key.is_of("/progress", nonce.as_bytes(), body, said.as_bytes());
    assert_eq!(status, 200);
    assert!(is_of("n1", &body));
    assert!(!is_of("n2", &body) && !is_of("n1", b"0.8"));
    // People ask without a nonce.
    assert_eq!((ask("").0, ask("").1), (200, None));
}

#[test]
fn the_resume_file_is_complete_before_the_probe_passes() {
    let folder = Folder::new();
    let config = AgentConfig {
        resume: Some(folder.resume(0.4, Some("s3://b/run \"7\""))),
        ..folder.config()
    };
    let agent = Running::start(config);
    assert_eq!(agent.get("/healthz"), (200, b"ok".to_vec()));
    let resume = folder.file("resume");
    assert_eq!(
        fs::read_to_string(&resume).unwrap(),
        "{\"progress\":0.4,\"checkpoint\":\"s3://b/run \\\"7\\\"\"}\n"
    );
    let checkpoint = folder.file("resume.checkpoint");
    assert_eq!(fs::read_to_string(&checkpoint).unwrap(), "s3://b/run \"7\"");
    assert_eq!((mode(&resume), mode(&checkpoint)), (0o644, 0o644));
    let left: Vec<_> = fs::read_dir(&folder.0).unwrap().collect();
    assert_eq!(left.len(), 2, "no temporary file stays: {left:?}");
}

#[test]
fn a_failed_resume_file_keeps_the_agent_from_listening() {
    let folder = Folder::new();
    fs::write(folder.file("plain"), "").unwrap();
    let mut resume = folder.resume(0.4, None);
    resume.file = folder.file("plain/resume");
    let config = AgentConfig {
        resume: Some(resume),
        ..folder.config()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    assert!(runtime.block_on(Agent::start(config)).is_err());
}

#[test]
fn without_a_resume_point_there_is_no_file() {
    let folder = Folder::new();
    let agent = Running::start(folder.config());
    assert_eq!(agent.get("/healthz").0, 200);
    assert!(fs::read_dir(&folder.0).unwrap().next().is_none());
    shed_agent::write_resume_only(None).unwrap();
    assert!(fs::read_dir(&folder.0).unwrap().next().is_none());
}

#[test]
fn a_resume_file_of_before_a_restart_is_left_alone() {
    let folder = Folder::new();
    shed_agent::write_resume_only(Some(&folder.resume(0.4, None))).unwrap();
    let written = fs::read_to_string(folder.file("resume")).unwrap();
    assert_eq!(written, "{\"progress\":0.4}\n");
    assert!(!folder.file("resume.checkpoint").exists());
    shed_agent::write_resume_only(Some(&folder.resume(0.6, Some("x")))).unwrap();
    assert_eq!(fs::read_to_string(folder.file("resume")).unwrap(), written);
    assert!(!folder.file("resume.checkpoint").exists());
}

#[test]
fn what_a_killed_agent_left_behind_is_replaced_and_not_followed() {
    let folder = Folder::new();
    fs::write(folder.file("other"), "untouched").unwrap();
    symlink(folder.file("other"), folder.file("resume.tmp")).unwrap();
    fs::write(folder.file("resume.checkpoint"), "half").unwrap();
    shed_agent::write_resume_only(Some(&folder.resume(0.4, Some("whole")))).unwrap();
    let read = |name| fs::read_to_string(folder.file(name)).unwrap();
    assert_eq!(read("resume.checkpoint"), "whole");
    assert_eq!(read("other"), "untouched");
}

#[test]
fn the_folder_of_the_progress_file_is_opened_to_every_user() {
    let folder = Folder::new();
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o1700)).unwrap();
    let _agent = Running::start(folder.config());
    assert_eq!(mode(&folder.0), 0o1777);
}

#[test]
fn other_paths_and_methods_are_refused() {
    let folder = Folder::new();
    let agent = Running::start(folder.config());
    assert_eq!(agent.get("/").0, 404);
    assert_eq!(agent.get("/progress/../resume").0, 404);
    let mut stream = agent.connect();
    write!(stream, "POST /progress HTTP/1.1\r\nHost: pod\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405 "));
}

#[test]
fn an_endless_request_is_cut_off() {
    let folder = Folder::new();
    let agent = Running::start(folder.config());
    let mut stream = agent.connect();
    let line = format!("X-Filler: {}\r\n", "x".repeat(1000));
    let _ = stream.write_all(b"GET /progress HTTP/1.1\r\n");
    let cut_off = (0..10_000).any(|_| stream.write_all(line.as_bytes()).is_err());
    assert!(cut_off);
    assert_eq!(agent.get("/healthz").0, 200);
}

/// Idle connections from `hosts` addresses, `each` from every one.
fn strangers(agent: &Running, hosts: u8, each: usize) -> Vec<tokio::net::TcpStream> {
    let connect = |host| async move {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 1, host], 0).into()).unwrap();
        socket.connect(agent.address).await.unwrap()
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let all = (1..=hosts).flat_map(|host| std::iter::repeat_n(host, each));
    runtime.block_on(async {
        let mut open = Vec::new();
        for host in all {
            open.push(connect(host).await);
        }
        open
    })
}

/// The review's attack: idle connections, opened again for every poll.
#[test]
fn idle_strangers_stop_no_poll() {
    let folder = Folder::new();
    let agent = Running::start(folder.config());
    fs::write(folder.file("progress"), "0.4").unwrap();
    for (hosts, each) in [(1, 16), (16, 4)] {
        let answered = (0..12).filter(|_| {
            let _strangers = strangers(&agent, hosts, each);
            agent.get("/progress").0 == 200
        });
        assert_eq!(answered.count(), 12, "{each} from each of {hosts}");
    }
}

#[test]
fn the_startup_probe_has_a_port_of_its_own() {
    let folder = Folder::new();
    let agent = Running::start(folder.config());
    assert_eq!(agent.probe("/healthz").0, 200);
    assert_eq!(agent.probe("/progress").0, 404);
}

#[test]
fn it_stops_while_a_stranger_is_connected() {
    let folder = Folder::new();
    let mut agent = Running::start(folder.config());
    let mut stranger = agent.connect();
    write!(stranger, "GET /progress HTTP/1.1\r\n").unwrap();
    assert_eq!(agent.get("/healthz").0, 200);
    agent.stop();
}

/// The process that the next test starts: the sub-command without its command line.
#[test]
#[ignore = "runs only as a child of the test below"]
fn child() {
    if std::env::var("SHED_ATTEMPT_UID").is_err() {
        return;
    }
    let init_only = std::env::var("INIT_ONLY").is_ok();
    shed_agent::run_from_env(init_only).unwrap();
}

fn child_command(folder: &Folder) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "child", "--ignored"])
        .stdout(Stdio::null())
        .env("SHED_PROGRESS_FILE", folder.file("progress"))
        .env("SHED_RESUME_FILE", folder.file("resume"))
        .env("SHED_RESUME", "{\"progress\":0.4}")
        .env("SHED_ATTEMPT_UID", UID);
    command
}

/// An agent that listens. Another process may take the free port first; then it ends, and another port is tried.
fn listening_child(folder: &Folder) -> Child {
    let patience = Instant::now() + Duration::from_secs(30);
    while Instant::now() < patience {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let mut command = child_command(folder);
        command.env("SHED_AGENT_PORT", address.port().to_string());
        command.env("SHED_AGENT_HEALTH_PORT", "0");
        let mut child = command.spawn().unwrap();
        while child.try_wait().unwrap().is_none() && Instant::now() < patience {
            if TcpStream::connect(address).is_ok() {
                return child;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    panic!("no agent listens");
}

#[test]
fn the_process_ends_with_success_on_a_signal() {
    for signal in ["-TERM", "-INT"] {
        let folder = Folder::new();
        let mut child = listening_child(&folder);
        assert!(folder.file("resume").exists());
        let pid = child.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        // Success, and not "killed by a signal": the handler ran.
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn the_init_only_process_writes_the_resume_file_and_ends() {
    let folder = Folder::new();
    let mut command = child_command(&folder);
    // An init container has only what it needs.
    command
        .env("INIT_ONLY", "1")
        .env_remove("SHED_PROGRESS_FILE");
    assert!(command.status().unwrap().success());
    assert_eq!(
        fs::read_to_string(folder.file("resume")).unwrap(),
        "{\"progress\":0.4}\n"
    );
}
