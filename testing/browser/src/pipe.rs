//! The two pipes of the DevTools protocol: messages in JSON, each ended by a zero byte.

use crate::error::BrowserError;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The longest wait for an answer: a busy machine draws a long page slowly.
const PATIENCE: Duration = Duration::from_secs(60);

/// A Chromium and the pipes to it and from it.
pub(crate) struct Pipe {
    child: Child,
    to: File,
    from: Receiver<Value>,
    next: u64,
    events: Vec<Value>,
}

impl Pipe {
    /// Starts Chromium with its profile and its pipes in a folder.
    ///
    /// It takes commands on descriptor 3 and answers on 4; a shell opens both by their names, so that no descriptor
    /// has to be handed on here.
    pub(crate) fn start(folder: &Path) -> Result<Pipe, BrowserError> {
        let [commands, answers] = ["commands", "answers"].map(|name| folder.join(name));
        for name in [&commands, &answers] {
            mknodat(CWD, name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
                .map_err(|error| BrowserError::io(name.display().to_string())(error.into()))?;
        }
        let profile = format!("--user-data-dir={}", folder.join("profile").display());
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec chromium \"$@\" 3<commands 4>answers", "sh"]);
        shell.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]);
        shell.args(["--disable-dev-shm-usage", "--remote-debugging-pipe", "--force-color-profile=srgb"]);
        shell.arg(profile).arg("about:blank").current_dir(folder);
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = shell.spawn().map_err(BrowserError::io("sh"))?;
        // In the order in which the shell opens them: each waits for the other side.
        let to = OpenOptions::new().write(true).open(&commands).map_err(BrowserError::io("commands"))?;
        let answers = File::open(&answers).map_err(BrowserError::io("answers"))?;
        let (send, from) = channel();
        std::thread::spawn(move || {
            let messages = BufReader::new(answers).split(0).map_while(Result::ok);
            let values = messages.filter_map(|message| serde_json::from_slice(&message).ok());
            values.map(|value| send.send(value)).take_while(Result::is_ok).for_each(drop);
        });
        Ok(Pipe { child, to, from, next: 0, events: Vec::new() })
    }

    /// Executes a command, and returns its result. Events that come before it are kept.
    pub(crate) fn call(
        &mut self,
        session: Option<&str>,
        method: &str,
        parameters: Value,
    ) -> Result<Value, BrowserError> {
        self.next += 1;
        let mut message = json!({"id": self.next, "method": method, "params": parameters});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).map_err(BrowserError::io(method))?;
        loop {
            let mut answer = self.receive(method)?;
            if answer["id"] != json!(self.next) {
                self.events.push(answer);
                continue;
            }
            if let Some(error) = answer.get("error") {
                return Err(BrowserError::Refused { method: method.to_owned(), said: error.to_string() });
            }
            return Ok(answer["result"].take());
        }
    }

    /// Waits for an event of that name.
    pub(crate) fn wait(&mut self, event: &str) -> Result<(), BrowserError> {
        while !self.events.iter().any(|one| one["method"] == event) {
            let one = self.receive(event)?;
            self.events.push(one);
        }
        Ok(())
    }

    /// The events since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.events)
    }

    fn receive(&mut self, what: &str) -> Result<Value, BrowserError> {
        self.from.recv_timeout(PATIENCE).map_err(|_| BrowserError::Silent(what.to_owned()))
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // The renderers end with the browser; that it may have ended before is no error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
