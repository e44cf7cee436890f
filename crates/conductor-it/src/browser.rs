//! A real browser, driven over the WebDriver protocol by plain HTTP (ADR 0012).
//!
//! Each one is a process group with a profile of its own, reaches nothing but loopback, and ends with its value. Waiting
//! means looking again until it is so. This module does not know the pages.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::HOPELESS;

/// The name under which the protocol hides the id of an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// What the browser is started with; nobody's machine is asked for anything while a test runs.
const ARGUMENTS: [&str; 9] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--window-size=1280,900",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/// A browser with one window.
#[derive(Debug)]
pub struct Browser {
    http: reqwest::Client,
    /// The address of its session at the driver.
    session: String,
    driver: Driver,
}

/// The driver and everything that it started.
#[derive(Debug)]
struct Driver {
    process: Child,
    port: u16,
    /// Its profile and temporary files; gone with it.
    _home: TempDir,
}

/// How a page is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// As part of a file's name.
    pub name: &'static str,
    /// The width of the page.
    pub width: u32,
    /// The height of what is seen at once.
    pub height: u32,
    /// Whether it is a phone.
    pub mobile: bool,
    /// `light` or `dark`.
    pub scheme: &'static str,
}

/// Every way in which pages are looked at.
pub const LOOKS: [Look; 4] = [
    Look::desktop("light"),
    Look::desktop("dark"),
    Look::phone("light"),
    Look::phone("dark"),
];

impl Look {
    /// On a desk.
    pub const fn desktop(scheme: &'static str) -> Self {
        Self {
            name: "desktop",
            width: 1280,
            height: 900,
            mobile: false,
            scheme,
        }
    }

    /// In a hand.
    pub const fn phone(scheme: &'static str) -> Self {
        Self {
            name: "phone",
            width: 390,
            height: 844,
            mobile: true,
            scheme,
        }
    }
}

impl Driver {
    fn start() -> Result<Self> {
        let home = tempfile::Builder::new()
            .prefix("conductor-browser-")
            .tempdir()
            .context("making a directory for the browser")?;
        let mut process = Command::new("chromedriver")
            .arg("--port=0")
            .env("TMPDIR", home.path())
            .env("HOME", home.path())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("starting chromedriver\nhint: cargo xtask setup chromium")?;
        let said = process.stdout.take().context("what chromedriver says")?;
        let mut driver = Self {
            process,
            port: 0,
            _home: home,
        };
        for line in BufReader::new(said).lines() {
            let line = line.context("reading what chromedriver says")?;
            if let Some((_, port)) = line.split_once("started successfully on port ") {
                driver.port = port.trim_end_matches('.').parse().context("the driver's port")?;
                return Ok(driver);
            }
        }
        bail!("chromedriver ended before it said where it is")
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The browser outlives its driver; the group is both, and nobody else's.
        if let Ok(group) = i32::try_from(self.process.id()) {
            let _gone_already = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _waited = self.process.wait();
    }
}

impl Browser {
    /// Opens a browser.
    pub async fn open() -> Result<Self> {
        let driver = Driver::start()?;
        let http = reqwest::Client::builder()
            .timeout(HOPELESS)
            .build()
            .context("making a client")?;
        let mut browser = Self {
            http,
            session: format!("http://127.0.0.1:{}/session", driver.port),
            driver,
        };
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "browserName": "chrome",
            // A dialog that nobody expects stays, and makes the next command fail.
            "unhandledPromptBehavior": "ignore",
            // A page that waits for a connection that others hold would come after a minute.
            "timeouts": { "pageLoad": 45_000 },
            "goog:chromeOptions": { "args": ARGUMENTS },
        } } });
        let opened = browser
            .command("", Some(wanted))
            .await
            .context("opening a window")?;
        let id = opened["sessionId"].as_str().context("no session")?;
        browser.session = format!("{}/{id}", browser.session);
        Ok(browser)
    }

    /// Sends a command of the protocol; one without a body asks.
    async fn command(&self, path: &str, body: Option<Value>) -> Result<Value> {
        let url = format!("{}{path}", self.session);
        let request = match body {
            Some(body) => self.http.post(&url).json(&body),
            None => self.http.get(&url),
        };
        let answer: Value = request
            .send()
            .await
            .with_context(|| {
                format!(
                    "asking the driver (process {}) for {path}",
                    self.driver.process.id()
                )
            })?
            .json()
            .await
            .with_context(|| format!("the driver's answer to {path}"))?;
        let value = answer["value"].clone();
        if let Some(error) = value["error"].as_str() {
            bail!(
                "{path}: {error}: {}",
                value["message"].as_str().unwrap_or_default()
            );
        }
        Ok(value)
    }

    /// Asks something of the browser's own protocol.
    pub async fn devtools(&self, command: &str, parameters: Value) -> Result<Value> {
        self.command(
            "/goog/cdp/execute",
            Some(json!({ "cmd": command, "params": parameters })),
        )
        .await
    }

    /// Goes to an address.
    pub async fn go(&self, url: &str) -> Result<()> {
        self.command("/url", Some(json!({ "url": url }))).await.map(drop)
    }

    /// Where it is.
    pub async fn url(&self) -> Result<String> {
        let url = self.command("/url", None).await?;
        url.as_str().map(str::to_owned).context("an address")
    }

    /// Runs a script in the page and returns what it returns.
    pub async fn run(&self, script: &str) -> Result<Value> {
        self.command("/execute/sync", Some(json!({ "script": script, "args": [] })))
            .await
    }

    /// Everything that a person can read on the page.
    pub async fn text(&self) -> Result<String> {
        let text = self.run("return document.body.innerText").await?;
        text.as_str().map(str::to_owned).context("text")
    }

    async fn element(&self, using: &str, value: &str) -> Result<String> {
        let found = self
            .command("/element", Some(json!({ "using": using, "value": value })))
            .await?;
        found[ELEMENT].as_str().map(str::to_owned).context("an element")
    }

    /// Presses the button, link or summary with these words, where a person could: it is there, seen, and not covered.
    pub async fn press(&self, words: &str) -> Result<()> {
        let path = format!("//*[self::button or self::a or self::summary][normalize-space()='{words}']");
        // Looked up and pressed in one step, so that a page that is being brought up to date cannot move it between.
        let script = format!(
            "const all = document.evaluate({}, document, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE, null);
            for (let index = 0; index < all.snapshotLength; index++) {{
                const found = all.snapshotItem(index);
                if (!found.checkVisibility() || found.disabled) continue;
                found.scrollIntoView({{ block: 'center', behavior: 'instant' }});
                const box = found.getClientRects()[0];
                const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
                if (!found.contains(top)) continue;
                found.click();
                return true;
            }}
            return false;",
            json!(path)
        );
        self.wait(&format!("something to press that says `{words}`"), &script)
            .await
    }

    /// Presses what leads to another page, and waits for that page.
    pub async fn follow(&self, words: &str) -> Result<()> {
        self.run("window.isBefore = true").await?;
        self.press(words).await?;
        self.be_elsewhere(words).await
    }

    /// Presses keys that lead to another page, and waits for that page.
    pub async fn follow_keys(&self, keys: &str) -> Result<()> {
        self.run("window.isBefore = true").await?;
        self.keys(keys).await?;
        self.be_elsewhere(keys).await
    }

    async fn be_elsewhere(&self, by: &str) -> Result<()> {
        self.wait(
            &format!("another page after `{by}`"),
            "return window.isBefore !== true && document.readyState === 'complete'",
        )
        .await
    }

    /// Fills a field in.
    pub async fn fill(&self, css: &str, text: &str) -> Result<()> {
        let begun = Instant::now();
        loop {
            match self.try_fill(css, text).await {
                // The part of the page was brought up to date meanwhile; between clearing and typing the driver says so
                // in other words.
                Err(error)
                    if ["stale element", "not interactable"]
                        .iter()
                        .any(|words| error.to_string().contains(words))
                        && begun.elapsed() < HOPELESS => {}
                done => return done.with_context(|| format!("filling in {css}")),
            }
        }
    }

    async fn try_fill(&self, css: &str, text: &str) -> Result<()> {
        let element = self.element("css selector", css).await?;
        self.command(&format!("/element/{element}/clear"), Some(json!({})))
            .await?;
        self.command(
            &format!("/element/{element}/value"),
            Some(json!({ "text": text })),
        )
        .await
        .map(drop)
    }

    /// Presses keys one after the other, wherever the page is; `\u{e007}` is Enter, `\u{e004}` Tab.
    pub async fn keys(&self, keys: &str) -> Result<()> {
        let strokes: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [
                    json!({ "type": "keyDown", "value": key }),
                    json!({ "type": "keyUp", "value": key }),
                ]
            })
            .collect();
        let actions = json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": strokes }] });
        self.command("/actions", Some(actions)).await.map(drop)
    }

    /// Waits until a script returns true; says what the page showed when waiting became hopeless.
    pub async fn wait(&self, for_what: &str, script: &str) -> Result<()> {
        let begun = Instant::now();
        loop {
            // A page that is being replaced answers nothing; the next one will.
            let seen = self.run(script).await;
            if matches!(seen, Ok(Value::Bool(true))) {
                return Ok(());
            }
            if begun.elapsed() > HOPELESS {
                bail!(
                    "the page never showed {for_what} ({seen:?}); {} shows:\n{}",
                    self.url().await.unwrap_or_default(),
                    self.text().await.unwrap_or_default()
                );
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }

    /// Waits until these words can be read.
    pub async fn see(&self, words: &str) -> Result<()> {
        let script = format!("return document.body.innerText.includes({})", json!(words));
        self.wait(&format!("`{words}`"), &script).await
    }

    /// Waits until the path of the address is this.
    pub async fn be_at(&self, path: &str) -> Result<()> {
        let script = format!("return location.pathname === {}", json!(path));
        self.wait(&format!("the address `{path}`"), &script).await
    }

    /// Waits until the page hears of what happens.
    pub async fn be_live(&self) -> Result<()> {
        self.wait(
            "that it is live",
            "return document.getElementById('connection').textContent === 'live'",
        )
        .await
    }

    /// Looks at pages in this way from now on.
    pub async fn look(&self, look: Look) -> Result<()> {
        let metrics = json!({
            "width": look.width, "height": look.height, "deviceScaleFactor": 1, "mobile": look.mobile,
        });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics)
            .await?;
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": look.scheme }] });
        self.devtools("Emulation.setEmulatedMedia", media).await?;
        Ok(())
    }

    /// Lets the scripts of pages run, or not.
    pub async fn without_scripts(&self) -> Result<()> {
        self.devtools("Emulation.setScriptExecutionDisabled", json!({ "value": true }))
            .await
            .map(drop)
    }

    /// Writes the whole page to a file, as it is seen.
    pub async fn screenshot(&self, path: &Path) -> Result<()> {
        let taken = self
            .devtools("Page.captureScreenshot", json!({ "captureBeyondViewport": true }))
            .await?;
        let data = taken["data"].as_str().context("no picture")?;
        let bytes = base64::prelude::BASE64_STANDARD
            .decode(data)
            .context("a picture in base64")?;
        ensure!(!bytes.is_empty(), "an empty picture");
        let dir = path.parent().context("a directory")?;
        std::fs::create_dir_all(dir).context("making the directory of pictures")?;
        std::fs::write(path, bytes).with_context(|| format!("writing {}", path.display()))
    }
}
