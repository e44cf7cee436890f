//! Stand-ins for everything behind the door, in memory, that remember what they were asked.
//!
//! They do not know the door.

pub(crate) mod played;
pub(crate) mod keys;
mod answers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use conductor_domain::artifact::{Artifact, ArtifactKind};
use conductor_domain::board::{BoardNumber, OwnFields};
use conductor_domain::digest::Digest;
use conductor_domain::effect::{CommentTarget, EffectKind};
use conductor_domain::event::Event;
use conductor_domain::fault::Fault;
use conductor_domain::forge::{IssueProblem, NoticeSubject, PullRequest};
use conductor_domain::id::{
    CommitId, EffectId, IssueNumber, OperatorName, ProjectId, PullRequestNumber, RepoId, RunId,
};
use conductor_domain::instance::{
    Instance, InstanceInput, Registration, TestEgress, decide_instance, evolve_instance,
};
use conductor_domain::phase::PhaseName;
use conductor_domain::policy::{LockedPolicy, PolicyLayer};
use conductor_domain::spec::{
    AgentBackend, AgentSpec, ExecutorName, Limits, Mode, PolicyVersion, Priority, RepoRef, RunSpec,
};
use conductor_domain::time::Timestamp;
use conductor_port::blobs::{Blobs, CallPage, KeptBytes, ToolCall, ToolLog};
use conductor_port::forge::{
    Forge, Issue, NewCheck, NewPullRequest, PastPullRequest, PullRequestReading, RepoDescription,
};
use conductor_port::inbox::{Accepted, Inbox, Seen, Submission, SubmitError};
use conductor_port::known;
use conductor_port::lease::{Leases, ResourceKind, ResourceLease, Taken};
use conductor_port::ledger::{
    AppendError, Batch, Candidates, EffectRow, EffectStatus, ForgeWrite, LeaseWish, Leased, Ledger,
    Projections, Record, Renewal, RunRow, Settlement, StreamId,
};
use conductor_port::search::{Found, RecordFilter, Search};
use conductor_port::tally::{Span, Tally, Took};
use conductor_port::views::{RunFilter, StreamHead, Views};
use conductor_port::workspace::GitToken;
use futures_util::stream::{self, BoxStream, StreamExt};
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::BodyExt;
use sha2::Sha256;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::api::{AuditView, ExpectedView, FlawView, PolicyText, ReplayView, RulingView, TroubleView};
use crate::backstage::{Backstage, Change, Talk};
use crate::door::{Behind, Door, RunDefaults, Settings, Token, router};
pub(crate) use answers::FakeAnswers;
pub(crate) use keys::FakeKeys;

use crate::reader::Reader;
use crate::rules::{PolicyLock, Rules};
use crate::webhook::{Delivery, Hint, Rejected};

/// The token of the door in tests.
pub(crate) const TOKEN: &str = "a-token-for-tests";
/// The host of the door in tests.
pub(crate) const HOST: &str = "127.0.0.1:4180";
/// The webhook secret of the door in tests.
pub(crate) const SECRET: &str = "It's a Secret to Everybody";

/// Everything behind the door.
#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) submitted: Vec<Submission>,
    /// What the instance was told, and where that came from.
    pub(crate) told: Vec<(InstanceInput, String)>,
    /// What opens the door, and who may wait before it.
    pub(crate) keys: Arc<FakeKeys>,
    /// What was answered already.
    pub(crate) answers: Arc<FakeAnswers>,
    pub(crate) is_proxied: bool,
    /// Where people reach the door; its own address when empty.
    pub(crate) public_url: String,
    pub(crate) instance: Instance,
    pub(crate) rows: Vec<RunRow>,
    pub(crate) records: Vec<Record>,
    pub(crate) writes: Vec<ForgeWrite>,
    pub(crate) issues: BTreeMap<u64, Result<Issue, IssueProblem>>,
    pub(crate) down: bool,
    /// Tells of what is committed, to whoever listens; without it, nothing ever is.
    pub(crate) changes: Option<tokio::sync::broadcast::Sender<Change>>,
    /// What an agent said before anybody listened.
    pub(crate) said: Option<Talk>,
    /// What agents say to whoever listens.
    pub(crate) says: Vec<Talk>,
    pub(crate) now: Timestamp,
    /// Runs whose working directory is being made.
    pub(crate) begun: Vec<RunId>,
    /// The calls of the one invocation that every run has.
    pub(crate) calls: Vec<ToolCall>,
    dedupe: BTreeSet<String>,
    pub(crate) blobs: BTreeMap<Digest, Vec<u8>>,
}

/// A shared world.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fake(Arc<Mutex<World>>);

impl Fake {
    /// A world with project `p` and repository `o/r` (id 7), and issue 1.
    pub(crate) fn with_repo() -> Self {
        let fake = Self::default();
        let issue = Issue {
            title: "T".into(),
            body: "B".into(),
            open: true,
            author: "ann".into(),
            standing: conductor_domain::forge::Standing::Owner,
            comments: vec![],
        };
        {
            let mut world = fake.world();
            let project = ProjectId::parse("p").expect("a slug");
            world.instance.projects.push(project.clone());
            let registration = Registration {
                project,
                repo: repo(),
                test_command: vec!["make".into()],
                slots: 1,
                test_egress: TestEgress::None,
                board: None,
            };
            world.instance.repos.insert(RepoId(7), registration);
            world.issues.insert(1, Ok(issue));
        }
        fake
    }

    /// Looks at the world, or changes it.
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn keys(&self) -> Arc<FakeKeys> {
        self.world().keys.clone()
    }

    fn public_url(&self) -> String {
        match self.world().public_url.as_str() {
            "" => format!("http://{HOST}/"),
            url => url.to_owned(),
        }
    }

    /// Reads this world.
    pub(crate) fn reader(&self) -> Reader {
        let fake = Arc::new(self.clone());
        Reader::new(
            fake.clone(),
            fake.clone(),
            fake.clone(),
            fake.clone(),
            fake.clone(),
            fake.clone(),
            fake,
        )
    }

    /// Opens a door to this world.
    pub(crate) fn router(&self) -> Router {
        let fake = Arc::new(self.clone());
        let is_proxied = self.world().is_proxied;
        let settings = Settings {
            token: Token::new(TOKEN),
            hosts: vec![HOST.to_owned()],
            origins: vec![format!("http://{HOST}")],
            operator: OperatorName::parse("ann").expect("a name"),
            deliveries: Some(Arc::new(read_delivery)),
            run: RunDefaults {
                agents: Some(agents()),
                executor: ExecutorName::UnsafePlain,
                limits: Limits::default(),
                public_url: self.public_url(),
            },
            mint: Arc::new(|| RunId::parse("r-new").expect("a slug")),
            secret: {
                let made = std::sync::atomic::AtomicU32::new(0);
                Arc::new(move || {
                    format!(
                        "secret-{}",
                        made.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
                    )
                })
            },
            is_proxied,
            clock: fake.clone(),
            version: "0".into(),
            pid: 1,
            started_at: Timestamp(1),
            shutdown: CancellationToken::new(),
        };
        let reader = self.reader();
        let behind = Behind {
            inbox: fake.clone(),
            blobs: fake.clone(),
            forge: fake.clone(),
            backstage: fake.clone(),
            rules: fake.clone(),
            keys: fake.keys(),
            answers: fake.world().answers.clone(),
        };
        router(Arc::new(Door::new(reader, behind, settings)))
    }

    /// Asks the door.
    pub(crate) async fn ask(&self, request: Request<Body>) -> (StatusCode, serde_json::Value) {
        let response = self
            .router()
            .oneshot(request)
            .await
            .expect("a router never fails");
        let status = response.status();
        let bytes = response
            .into_body()
            .collect()
            .await
            .expect("a body in memory")
            .to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }
}

/// A request as the client sends it.
pub(crate) fn request(method: &str, path: &str, body: impl Into<Body>) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", HOST)
        .header("authorization", format!("Bearer {TOKEN}"))
        .body(body.into())
        .expect("a well-formed request")
}

/// A delivery with its signature.
pub(crate) fn delivery(id: &str, event: &str, body: &str) -> Request<Body> {
    Request::builder()
        .method("POST")
        .uri("/webhooks/github")
        .header("host", HOST)
        .header("x-github-delivery", id)
        .header("x-github-event", event)
        .header("x-hub-signature-256", signature(body.as_bytes()))
        .body(Body::from(body.to_owned()))
        .expect("a well-formed request")
}

fn signature(body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any key length will do");
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

/// Reads deliveries of the form `<subject> <repo id> [<number or branch>]`, so that no forge's words are needed.
fn read_delivery(delivery: Delivery<'_>) -> Result<Option<Hint>, Rejected> {
    if delivery.signature != Some(&signature(delivery.body)) {
        return Err(Rejected::NotSigned);
    }
    let id = delivery.id.ok_or(Rejected::Incomplete)?;
    let body = std::str::from_utf8(delivery.body).expect("tests write text");
    let words: Vec<&str> = body.split(' ').collect();
    let [subject, repo, about] = words.as_slice() else {
        return Ok(None);
    };
    let number = about.parse().unwrap_or_default();
    let subject = match *subject {
        "pull" => NoticeSubject::PullRequest {
            number: PullRequestNumber(number),
        },
        "issue" => NoticeSubject::Issue {
            number: IssueNumber(number),
        },
        "push" => NoticeSubject::Base,
        other => panic!("no such delivery in tests: {other}"),
    };
    Ok(Some(Hint {
        delivery: id.to_owned(),
        event: delivery.event.unwrap_or_default().to_owned(),
        body_hash: Digest::of(delivery.body).to_string(),
        repo: RepoId(repo.parse().expect("a number")),
        pushed_branch: (subject == NoticeSubject::Base).then(|| (*about).to_owned()),
        subjects: vec![subject],
    }))
}

fn repo() -> RepoRef {
    RepoRef {
        id: RepoId(7),
        host: "127.0.0.1:1".into(),
        owner: "o".into(),
        name: "r".into(),
        clone_url: "http://127.0.0.1:1/o/r.git".into(),
        base_branch: "main".into(),
    }
}

fn agents() -> AgentSpec {
    AgentSpec {
        backend: AgentBackend::Scripted {
            scenario: Digest::of(b""),
        },
        mode: Mode::Mock,
    }
}

/// A row of a run that waits for its merge, as the engine keeps it.
pub(crate) fn row(id: &str, issue: u64, pull_request: Option<u64>) -> RunRow {
    let run = RunId::parse(id).expect("a slug");
    let spec = RunSpec {
        run: run.clone(),
        project: ProjectId::parse("p").expect("a slug"),
        repo: repo(),
        issue: IssueNumber(issue),
        started_by: OperatorName::parse("ann").expect("a name"),
        starter_rank: conductor_domain::staff::Rank::Operator,
        priority: Priority::NORMAL,
        test_command: vec!["make".into()],
        agents: agents(),
        executor: ExecutorName::UnsafePlain,
        limits: Limits::default(),
        policy: PolicyVersion("1".into()),
        page: "http://c/r".into(),
        skills: vec![],
        policies: vec![],
        board: None,
    };
    let started = Event::RunStarted { spec: Box::new(spec) };
    let mut state = conductor_domain::evolve(None, &started).expect("a run exists once it is started");
    state.pull_request = pull_request.map(|number| PullRequest {
        number: PullRequestNumber(number),
        url: "http://f/1".into(),
        head: CommitId::parse("a".repeat(40)).expect("hex"),
    });
    RunRow {
        run,
        project: "p".into(),
        repo: RepoId(7),
        repo_name: "o/r".into(),
        issue,
        title: "T".into(),
        phase: "pending".into(),
        held: false,
        needs_human: false,
        terminal: false,
        cleaned_up: false,
        priority: 5,
        pull_request,
        deadline: None,
        state: serde_json::to_string(&state).expect("plain data"),
        figures: String::new(),
        ended_at: None,
        seq: 3,
        head: String::new(),
        created_at: Timestamp(1),
        updated_at: Timestamp(2),
    }
}

#[async_trait]
impl Inbox for Fake {
    async fn submit(&self, submission: Submission) -> Result<Accepted, SubmitError> {
        let mut world = self.world();
        if world.down {
            return Err(Fault::transient(format!("keep: {}", known::LOCKED)).into());
        }
        let row = world.rows.iter().find(|row| row.run == submission.run);
        if let Some((now, row)) = row.and_then(|row| Some((PhaseName::parse(&row.phase)?, row))) {
            let seen = submission.seen;
            let is_current = match seen {
                Seen::Anything => true,
                Seen::Phase(phase) => phase == now,
                Seen::Record(seq) => seq == row.seq,
            };
            if !is_current {
                return Err(SubmitError::Stale { seen, now });
            }
        }
        let duplicate = submission
            .dedupe
            .clone()
            .is_some_and(|key| !world.dedupe.insert(key));
        if !duplicate {
            world.submitted.push(submission);
        }
        Ok(Accepted { seq: 4, duplicate })
    }

    async fn submit_to_instance(&self, input: InstanceInput, cause: &str) -> Result<Accepted, SubmitError> {
        let mut world = self.world();
        for event in decide_instance(&world.instance, &input)? {
            world.instance = evolve_instance(std::mem::take(&mut world.instance), &event);
        }
        world.told.push((input, cause.to_owned()));
        Ok(Accepted {
            seq: 1,
            duplicate: false,
        })
    }
}

impl conductor_port::clock::Clock for Fake {
    fn now(&self) -> Timestamp {
        self.world().now
    }
}

#[async_trait]
impl Views for Fake {
    async fn run(&self, run: &RunId) -> Result<Option<RunRow>, Fault> {
        Ok(self.world().rows.iter().find(|row| row.run == *run).cloned())
    }

    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, Fault> {
        let fits = |row: &&RunRow| {
            filter.repo.is_none_or(|repo| repo == row.repo)
                && filter.phase.as_ref().is_none_or(|phase| *phase == row.phase)
                && filter.issue.is_none_or(|issue| issue == row.issue)
                && filter
                    .pull_request
                    .is_none_or(|number| Some(number) == row.pull_request)
                && filter
                    .project
                    .as_ref()
                    .is_none_or(|project| *project == row.project)
                && filter.phase.as_ref().is_none_or(|phase| *phase == row.phase)
                && (!filter.open || !row.terminal)
                && (!filter.needs_human || row.needs_human)
                && (!filter.needs_nobody || !row.needs_human)
        };
        let world = self.world();
        let first = match &filter.after {
            Some(after) => match world.rows.iter().position(|row| row.run == *after) {
                Some(place) => place + 1,
                None => return Ok(vec![]),
            },
            None => 0,
        };
        let rows = world.rows.iter().skip(first).filter(fits);
        Ok(rows.take(filter.limit as usize).cloned().collect())
    }

    async fn count(&self, filter: &RunFilter) -> Result<u32, Fault> {
        let rows = self.runs(filter).await?;
        Ok(u32::try_from(rows.len()).unwrap_or(u32::MAX).min(filter.limit))
    }

    async fn instance(&self) -> Result<(Instance, StreamHead), Fault> {
        let head = StreamHead {
            stream: StreamId::Instance,
            seq: 0,
            hash: String::new(),
        };
        Ok((self.world().instance.clone(), head))
    }

    async fn effects(&self, run: &RunId) -> Result<Vec<EffectRow>, Fault> {
        let begun = self.world().begun.contains(run);
        let prepare = EffectRow {
            id: EffectId::parse(format!("{run}.1.0")).expect("an effect's name"),
            run: run.clone(),
            repo: RepoId(7),
            kind: EffectKind::PrepareWorkspace,
            payload: String::new(),
            status: if begun {
                EffectStatus::Leased
            } else {
                EffectStatus::Pending
            },
            attempts: u32::from(begun),
            stop: false,
            created_at: Timestamp(1),
        };
        let invoke = EffectRow {
            id: EffectId::parse(format!("{run}.2.0")).expect("an effect's name"),
            kind: EffectKind::Invoke,
            ..prepare.clone()
        };
        Ok(vec![prepare, invoke])
    }

    async fn writes(&self, _: &RunId) -> Result<Vec<ForgeWrite>, Fault> {
        Ok(self.world().writes.clone())
    }

    async fn heads(&self) -> Result<Vec<StreamHead>, Fault> {
        Ok(vec![])
    }
}

/// Places are numbers of the list; words are not looked at, because stores do that.
#[async_trait]
impl Search for Fake {
    async fn records(&self, filter: &RecordFilter) -> Result<Vec<Found>, Fault> {
        let world = self.world();
        let placed = (1..).zip(&world.records).collect::<Vec<_>>().into_iter().rev();
        let fits = |(place, record): &(u64, &Record)| {
            filter.before.is_none_or(|before| *place < before)
                && !filter.hidden.contains(&record.kind.as_str())
                && filter.actor.as_ref().is_none_or(|actor| *actor == record.actor)
        };
        let found = placed.filter(fits).map(|(place, record)| Found {
            place,
            record: record.clone(),
        });
        Ok(found.take(filter.limit as usize).collect())
    }
}

#[async_trait]
impl Tally for Fake {
    async fn took(&self, _: &Span) -> Result<Vec<Took>, Fault> {
        let world = self.world();
        let took = world.rows.iter().map(|row| Took {
            started_at: row.created_at,
            phase: row.phase.clone(),
            figures: serde_json::from_str(&row.figures).ok(),
        });
        Ok(took.collect())
    }
}

fn not_asked<T>() -> Result<T, Fault> {
    Err(Fault::permanent("the door never asks for this"))
}

#[async_trait]
impl Ledger for Fake {
    async fn append(&self, _: Batch) -> Result<(), AppendError> {
        not_asked().map_err(AppendError::Fault)
    }

    async fn read(&self, stream: &StreamId, after: u64, limit: u32) -> Result<Vec<Record>, Fault> {
        let key = stream.as_key();
        let world = self.world();
        let records = world
            .records
            .iter()
            .filter(|record| record.stream == key && record.seq > after);
        Ok(records
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
            .cloned()
            .collect())
    }

    async fn dispatchable(&self, _: &Candidates) -> Result<Vec<EffectRow>, Fault> {
        not_asked()
    }

    async fn lease(&self, _: LeaseWish) -> Result<Leased, Fault> {
        not_asked()
    }

    async fn end_leases(&self, _: &str) -> Result<u32, Fault> {
        not_asked()
    }

    async fn renew(&self, _: &Settlement, _: Timestamp) -> Result<Renewal, Fault> {
        not_asked()
    }

    async fn due(&self, _: Timestamp, _: u32) -> Result<Vec<RunId>, Fault> {
        not_asked()
    }

    async fn replace_projections(&self, _: Projections) -> Result<(), Fault> {
        not_asked()
    }
}

#[async_trait]
impl Leases for Fake {
    async fn take(&self, _: &ResourceLease) -> Result<Taken, Fault> {
        not_asked()
    }

    async fn give_back(&self, _: &RunId, _: ResourceKind, _: &str) -> Result<(), Fault> {
        not_asked()
    }

    async fn held(&self, _: Option<&RunId>) -> Result<Vec<ResourceLease>, Fault> {
        Ok(vec![])
    }
}

#[async_trait]
impl Blobs for Fake {
    async fn put(&self, kind: ArtifactKind, bytes: &[u8]) -> Result<Artifact, Fault> {
        self.world().blobs.insert(Digest::of(bytes), bytes.to_vec());
        Ok(Artifact::of(kind, bytes))
    }

    async fn get(&self, digest: &Digest) -> Result<Option<Vec<u8>>, Fault> {
        Ok(self.world().blobs.get(digest).cloned())
    }

    async fn list(&self, _: &str, _: u32) -> Result<Vec<KeptBytes>, Fault> {
        not_asked()
    }
}

#[async_trait]
impl ToolLog for Fake {
    async fn append(&self, _: Option<&Settlement>, _: &[ToolCall]) -> Result<(), Fault> {
        not_asked()
    }

    async fn read(&self, _: &EffectId) -> Result<Vec<ToolCall>, Fault> {
        not_asked()
    }

    async fn page(&self, invocation: &EffectId, part: &CallPage) -> Result<Vec<ToolCall>, Fault> {
        let world = self.world();
        let calls = world.calls.iter().rev().filter(|call| {
            call.invocation == *invocation
                && part.before.is_none_or(|before| call.n < before)
                && (!part.stopped || call.decision != "allow")
        });
        Ok(calls.take(part.limit as usize).cloned().collect())
    }
}

#[async_trait]
impl Forge for Fake {
    async fn repository(&self, owner: &str, name: &str) -> Result<Option<RepoDescription>, Fault> {
        Ok((owner == "o").then(|| RepoDescription {
            id: RepoId(9),
            owner: owner.to_owned(),
            name: name.to_owned(),
            clone_url: format!("http://127.0.0.1:1/{owner}/{name}.git"),
            default_branch: "main".into(),
        }))
    }

    async fn issue(&self, _: &RepoRef, number: IssueNumber) -> Result<Result<Issue, IssueProblem>, Fault> {
        Ok(self
            .world()
            .issues
            .get(&number.0)
            .cloned()
            .unwrap_or(Err(IssueProblem::NotFound)))
    }

    async fn comment(
        &self,
        _: &RepoRef,
        _: CommentTarget,
        _: &str,
        _: &str,
        _: bool,
    ) -> Result<String, Fault> {
        not_asked()
    }

    async fn remove_repeats(&self, _: &RepoRef, _: CommentTarget, _: &str) -> Result<u32, Fault> {
        not_asked()
    }

    async fn open_pull_request(
        &self,
        _: &RepoRef,
        _: &NewPullRequest,
    ) -> Result<(PullRequestNumber, String), Fault> {
        not_asked()
    }

    async fn pull_request(&self, _: &RepoRef, _: PullRequestNumber) -> Result<PullRequestReading, Fault> {
        not_asked()
    }

    async fn past_pull_requests(&self, _: &RepoRef, _: u8) -> Result<Vec<PastPullRequest>, Fault> {
        not_asked()
    }

    async fn close_pull_request(&self, _: &RepoRef, _: PullRequestNumber) -> Result<(), Fault> {
        not_asked()
    }

    async fn publish_check(&self, _: &RepoRef, _: &NewCheck) -> Result<(), Fault> {
        not_asked()
    }

    async fn update_fields(
        &self,
        _: &RepoRef,
        _: BoardNumber,
        _: IssueNumber,
        _: &OwnFields,
    ) -> Result<(), Fault> {
        not_asked()
    }

    async fn git_token(&self, _: &RepoRef) -> Result<Option<GitToken>, Fault> {
        not_asked()
    }
}

#[async_trait]
impl Rules for Fake {
    async fn lock(
        &self,
        policies: Vec<LockedPolicy>,
        _own: Option<&str>,
    ) -> Result<Result<PolicyLock, Vec<String>>, Fault> {
        let version = PolicyVersion("1".into());
        Ok(Ok(PolicyLock { version, policies }))
    }

    async fn texts(&self, _of: &[LockedPolicy]) -> Result<Vec<PolicyText>, Fault> {
        Ok(vec![])
    }

    async fn judge(&self, _of: &[LockedPolicy], question: &str) -> Result<Result<RulingView, String>, Fault> {
        let Some(target) = question.strip_prefix("implementer create_file ") else {
            return Ok(Err(format!("`{question}` is no question")));
        };
        let decision = if target.contains(".github") {
            "deny"
        } else {
            "allow"
        };
        Ok(Ok(RulingView {
            decision: decision.to_owned(),
            reason: "because <b>".to_owned(),
            policy: "a-policy".to_owned(),
            rules: vec![],
            version: Digest::of(b"policies"),
        }))
    }

    async fn flaws(
        &self,
        _below: &[LockedPolicy],
        layer: PolicyLayer,
        text: &str,
    ) -> Result<Vec<FlawView>, Fault> {
        let flaw = FlawView {
            layer,
            line: 2,
            column: 7,
            message: "`wrong` is no policy".to_owned(),
        };
        Ok(Vec::from_iter(text.contains("wrong").then_some(flaw)))
    }

    fn concern(&self, path: &str) -> Option<String> {
        (path == "Cargo.lock").then(|| "it changes dependencies".to_owned())
    }

    async fn expect(&self, _of: &[LockedPolicy], _expectations: &str) -> Result<ExpectedView, Fault> {
        Ok(ExpectedView {
            held: 0,
            mismatches: vec![],
        })
    }
}

#[async_trait]
impl Backstage for Fake {
    fn changes(&self) -> BoxStream<'static, Change> {
        let Some(told) = self
            .world()
            .changes
            .as_ref()
            .map(tokio::sync::broadcast::Sender::subscribe)
        else {
            return stream::empty().boxed();
        };
        stream::unfold(
            told,
            |mut told| async move { Some((told.recv().await.ok()?, told)) },
        )
        .boxed()
    }

    fn talk(&self, run: &RunId) -> (Option<Talk>, BoxStream<'static, Talk>) {
        let world = self.world();
        let is_theirs = |talk: &Talk| talk.run == *run;
        let says: Vec<Talk> = world
            .says
            .iter()
            .filter(|talk| is_theirs(talk))
            .cloned()
            .collect();
        (world.said.clone().filter(is_theirs), stream::iter(says).boxed())
    }

    fn trouble(&self) -> Option<TroubleView> {
        None
    }

    async fn skills(&self) -> Result<Vec<conductor_domain::skill::SkillLock>, Fault> {
        Ok(vec![])
    }

    async fn verify(&self) -> Result<AuditView, Fault> {
        Ok(AuditView {
            holds: true,
            streams: 1,
            records: 0,
            findings: vec![],
            unanchored: 0,
        })
    }

    async fn replay(&self, run: &RunId) -> Result<ReplayView, Fault> {
        Ok(ReplayView {
            run: run.clone(),
            same: true,
            decisions: 0,
            events: 0,
            other_rules: 0,
            differences: vec![],
        })
    }
}
