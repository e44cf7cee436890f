//! Where words go: data to stdout, talk to stderr; a reader that went away ends the program quietly.
//!
//! This module does not know what is said.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use serde::Serialize;

use crate::exit::Failure;

/// Where words go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Out {
    data: Data,
    talk: Talk,
}

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Data {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// How much is said besides data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Talk {
    /// What a person wants to know.
    Usual,
    /// Only what went wrong.
    ErrorsOnly,
}

/// What people are shown of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Data, for stdout.
    Data(String),
    /// That there is none: talk, so that a program that counts lines counts none.
    Nothing(String),
}

impl Shown {
    /// Text that is data, or `none` where there is no text.
    pub(crate) fn or(text: String, none: &str) -> Self {
        if text.is_empty() {
            Self::Nothing(none.to_owned())
        } else {
            Self::Data(text)
        }
    }
}

impl From<String> for Shown {
    fn from(text: String) -> Self {
        Self::Data(text)
    }
}

impl Out {
    /// Decides where words go.
    pub(crate) fn new(data: Data, talk: Talk) -> Self {
        Self { data, talk }
    }

    /// Tells whether data is wanted as JSON.
    pub(crate) fn is_json(self) -> bool {
        self.data == Data::Json
    }

    /// Prints data: the value as JSON, or what `people` makes of it.
    pub(crate) fn data<T: Serialize, S: Into<Shown>>(
        self,
        value: &T,
        people: impl FnOnce(&T) -> S,
    ) -> Result<(), Failure> {
        if self.is_json() {
            let mut text = serde_json::to_string_pretty(value)
                .map_err(|error| Failure::because("writing the answer as JSON", &error))?;
            text.push('\n');
            return Self::text(&text);
        }
        match people(value).into() {
            Shown::Data(text) => Self::text(&text),
            Shown::Nothing(line) => {
                self.talk(&line);
                Ok(())
            }
        }
    }

    /// How wide data may be; anything where no terminal shows it.
    pub(crate) fn columns() -> Option<usize> {
        columns_of(&console::Term::stdout())
    }

    /// How wide talk may be; anything where no terminal shows it.
    pub(crate) fn columns_of_talk() -> Option<usize> {
        columns_of(&console::Term::stderr())
    }

    /// Prints text that is data.
    pub(crate) fn text(text: &str) -> Result<(), Failure> {
        match io::stdout().lock().write_all(text.as_bytes()) {
            Ok(()) => Ok(()),
            // Whoever read has seen enough, as in `conductor run list | head`.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(Failure::because("writing to stdout", &error)),
        }
    }

    /// Says something to whoever watches; nobody has to.
    pub(crate) fn talk(self, line: &str) {
        if self.talk == Talk::Usual {
            say(&format!("{line}\n"));
        }
    }

    /// Tells whether talk goes to a terminal.
    pub(crate) fn is_watched(self) -> bool {
        self.talk == Talk::Usual && io::stderr().is_terminal()
    }

    /// Tells whether a person sits there who can be asked.
    pub(crate) fn can_ask(self) -> bool {
        self.is_watched() && io::stdin().is_terminal()
    }

    /// Asks and reads one line; the end of input is no answer.
    pub(crate) async fn ask(question: &str) -> Option<String> {
        say(question);
        let read = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            io::stdin()
                .lock()
                .read_line(&mut line)
                .ok()
                .filter(|bytes| *bytes > 0)
                .map(|_| line.trim().to_owned())
        });
        let said = read.await.ok().flatten();
        if said.is_none() {
            // Nobody ended the line of the question.
            say("\n");
        }
        said
    }

    /// Says what went wrong and what to do.
    pub(crate) fn failure(failure: &Failure) {
        let code = failure
            .code
            .as_ref()
            .map(|code| format!("[{code}]"))
            .unwrap_or_default();
        let what = conductor_web::visible::text(&failure.what).text;
        say(&format!("error{code}: {what}\n"));
        if let Some(hint) = &failure.hint {
            say(&format!("hint: {hint}\n"));
        }
    }
}

fn columns_of(terminal: &console::Term) -> Option<usize> {
    let (_rows, columns) = terminal.size_checked()?;
    Some(usize::from(columns))
}

fn say(text: &str) {
    let mut stderr = io::stderr().lock();
    let _nobody_listens = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
