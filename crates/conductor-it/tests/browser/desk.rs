//! A person at a desk: a browser that was let in by a one-time link, or by a name and a password.
//!
//! This module does not know what the person does.

use anyhow::{Context as _, Result};
use conductor_it::Stage;
use conductor_it::browser::Browser;

/// A signed-in browser and the address of the server.
pub(crate) struct Desk {
    pub(crate) browser: Browser,
    pub(crate) base: String,
}

/// Asks for a link, as a person does in a terminal.
pub(crate) fn link(stage: &Stage) -> Result<String> {
    let said = stage.program.say(&["open"])?.done()?;
    let url = said.data["url"].as_str().context("no link")?;
    Ok(url.to_owned())
}

impl Desk {
    /// Opens a browser and signs it in.
    pub(crate) async fn of(stage: &Stage) -> Result<Self> {
        let browser = Browser::open().await?;
        let link = link(stage)?;
        browser.go(&link).await?;
        browser.be_at("/").await?;
        let (base, _) = link.split_once("/enter/").context("a link to enter")?;
        Ok(Self {
            browser,
            base: base.to_owned(),
        })
    }

    /// Adds an operator, opens a browser for them, and signs it in by the form.
    pub(crate) async fn of_operator(stage: &Stage, name: &str) -> Result<Self> {
        let added = stage
            .program
            .say(&["operator", "add", name, "--rank", "operator"])?
            .done()?;
        let password = added.data["password"].as_str().context("a password")?;
        let desk = Self {
            browser: Browser::open().await?,
            base: format!("http://{}", stage.program.address()?),
        };
        desk.go("/login").await?;
        desk.browser.fill("[name=name]", name).await?;
        desk.browser.fill("[name=password]", password).await?;
        desk.browser.follow("Sign in").await?;
        desk.browser.be_at("/").await?;
        desk.browser.see(&format!("{name} (operator)")).await?;
        Ok(desk)
    }

    /// Goes to a page.
    pub(crate) async fn go(&self, path: &str) -> Result<()> {
        self.browser.go(&format!("{}{path}", self.base)).await
    }

    /// Starts a run from an issue by the form, and returns its id.
    pub(crate) async fn start(&self, issue: u64) -> Result<String> {
        self.go("/start").await?;
        self.browser.fill("[name=issue]", &issue.to_string()).await?;
        self.browser.follow("Start").await?;
        self.run_here().await
    }

    /// The run whose page is open.
    pub(crate) async fn run_here(&self) -> Result<String> {
        let here = "return location.pathname.startsWith('/runs/')";
        self.browser.wait("the page of a run", here).await?;
        let url = self.browser.url().await?;
        let (_, run) = url.rsplit_once("/runs/").context("the page of a run")?;
        Ok(run.to_owned())
    }

    /// Marks the page, to see later that it was not loaded again.
    pub(crate) async fn mark(&self) -> Result<()> {
        self.browser.run("window.marked = true").await.map(drop)
    }

    /// Tells whether the page is still the one that was marked.
    pub(crate) async fn is_marked(&self) -> Result<bool> {
        Ok(self.browser.run("return window.marked === true").await? == true)
    }
}
