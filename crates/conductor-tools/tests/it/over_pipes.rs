//! One client on two pipes, from the first word to the last.

use std::sync::Arc;
use std::time::Duration;

use conductor_domain::role::Role;
use conductor_port::agent::{Misfit, ToolRequest};
use conductor_port::executor::Pattern;
use conductor_tools::{Lease, Offers, Server, door};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};

use crate::told::Told;

struct Client {
    write: DuplexStream,
    read: Lines<BufReader<DuplexStream>>,
    next: u64,
}

impl Client {
    fn of(offers: Offers, lease: Lease) -> Self {
        let (write, there) = tokio::io::duplex(1 << 20);
        let (here, read) = tokio::io::duplex(1 << 20);
        tokio::spawn(async move { door::over_pipes(Server::new(offers), &lease, there, here).await });
        Self {
            write,
            read: BufReader::new(read).lines(),
            next: 0,
        }
    }

    async fn greeted(role: Role, tools: Arc<Told>) -> Self {
        let lease = Lease::grant().expect("a lease");
        let mut client = Self::of(Offers::to_role(role, tools), lease);
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = client.ask("initialize", hello).await;
        assert_eq!(answer["result"]["serverInfo"]["name"], "conductor", "{answer}");
        client
            .say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string())
            .await;
        client
    }

    async fn say(&mut self, line: &str) {
        self.say_bytes(line.as_bytes()).await;
    }

    async fn say_bytes(&mut self, line: &[u8]) {
        self.write.write_all(line).await.expect("written");
        self.write.write_all(b"\n").await.expect("written");
    }

    async fn hear(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(30), self.read.next_line());
        let line = line.await.expect("in time").expect("read").expect("a line");
        serde_json::from_str(&line).expect("JSON")
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string())
            .await;
        let answer = self.hear().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> (bool, String) {
        let answer = self
            .ask("tools/call", json!({ "name": tool, "arguments": arguments }))
            .await;
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str();
        (
            result["isError"] == true,
            text.unwrap_or_else(|| panic!("{answer}")).to_owned(),
        )
    }

    async fn names(&mut self) -> Vec<String> {
        let listed = self.ask("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().expect("tools").clone();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().expect("a name").to_owned())
            .collect()
    }
}

/// RUN-8, TOOL-1: a role sees what it could ever be allowed, and nothing else; every input has a schema that says so.
#[tokio::test]
async fn each_role_is_offered_its_own_tools() {
    let reading = ["view", "list_files", "search_files", "git_status", "git_diff"];
    let writing = |role| match role {
        Role::Implementer => vec!["create_file", "str_replace", "bash", "git_commit"],
        Role::Planner | Role::Reviewer | Role::Tester => vec![],
    };
    let forge = [
        "github_get_issue",
        "github_list_comments",
        "github_get_pull_request",
        "github_comment_issue",
        "github_comment_pull_request",
        "github_review_comment",
        "github_update_check_run",
        "github_update_project_fields",
    ];
    let own = |role| match role {
        Role::Planner => vec!["submit_plan"],
        Role::Reviewer => vec!["submit_review"],
        Role::Tester => vec!["submit_test_report"],
        Role::Implementer => vec![],
    };
    for role in Role::ALL {
        let mut client = Client::greeted(role, Told::new()).await;
        let mut expected = reading.to_vec();
        expected.extend(writing(role));
        expected.extend(if role == Role::Planner {
            &forge[..4]
        } else {
            &forge[..]
        });
        expected.extend(own(role));
        expected.push("ask_human");
        assert_eq!(client.names().await, expected, "{role}");
        let listed = client.ask("tools/list", json!({})).await;
        for tool in listed["result"]["tools"].as_array().expect("tools") {
            let schema = &tool["inputSchema"];
            assert_eq!(schema["type"], "object", "{tool}");
            assert_eq!(schema["additionalProperties"], false, "{tool}");
            let properties = schema["properties"].as_object().cloned().unwrap_or_default();
            for (name, property) in properties {
                assert!(
                    property["description"].is_string() || property["$ref"].is_string(),
                    "{name}: {tool}"
                );
            }
        }
    }
}

/// TOOL-6: arguments arrive as what they are, and what a tool answers arrives as text.
#[tokio::test]
async fn a_call_reaches_its_tool_and_its_answer_comes_back() {
    let told = Told::new();
    let mut client = Client::greeted(Role::Implementer, told.clone()).await;
    let viewed = client.call("view", json!({ "path": "a.rs" })).await;
    assert_eq!(viewed, (false, "content of a.rs".to_owned()));
    let searched = client
        .call("search_files", json!({ "pattern": "a+", "regex": true }))
        .await;
    assert_eq!(searched, (true, "search_files is refused here".to_owned()));
    let asked = client.call("ask_human", json!({ "question": "why?" })).await;
    assert_eq!(asked, (false, "recorded; stop now".to_owned()));
    assert_eq!(
        told.asked(),
        [
            ToolRequest::View { path: "a.rs".into() },
            ToolRequest::SearchFiles {
                path: String::new(),
                pattern: Pattern::Regex("a+".into()),
            },
            ToolRequest::AskHuman {
                question: "why?".into()
            },
        ]
    );
}

/// TOOL-4: an agent can act on what it is told: which argument is wrong, which tool there is not, that bytes are no text. What
/// it tried in vain is told to the log, arguments and all.
#[tokio::test]
async fn what_is_wrong_is_said_and_logged_and_nothing_is_called() {
    let told = Told::new();
    let mut client = Client::greeted(Role::Planner, told.clone()).await;
    let (is_error, said) = client.call("view", json!({ "file": "a" })).await;
    assert!(is_error && said.contains("unknown field `file`"), "{said}");
    let (is_error, said) = client.call("view", json!({})).await;
    assert!(is_error && said.contains("missing field `path`"), "{said}");
    let (is_error, said) = client.call("submit_plan", json!({ "summary": 1 })).await;
    assert!(is_error && said.contains("expected a string"), "{said}");
    let unknown = client
        .ask(
            "tools/call",
            json!({ "name": "bash", "arguments": { "command": "id" } }),
        )
        .await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let nonsense = client
        .ask("tools/call", json!({ "name": "no_such", "arguments": {} }))
        .await;
    assert_eq!(nonsense["error"]["code"], -32602, "{nonsense}");
    assert_eq!(told.asked(), []);
    let misfits = told.misfits();
    let tried: Vec<(&str, &str)> = misfits
        .iter()
        .map(|call| (call.tool, call.arguments.as_str()))
        .collect();
    assert_eq!(
        tried,
        [
            ("view", r#"{"file":"a"}"#),
            ("view", "{}"),
            ("submit_plan", r#"{"summary":1}"#),
            ("bash", r#"{"command":"id"}"#),
            ("unknown", "no_such {}"),
        ]
    );
    assert_eq!(misfits[3].reason, "bash is not offered here");
    let (is_error, said) = client.call("view", json!({ "path": "broken" })).await;
    assert!(is_error && said.contains("the disk is on fire"), "{said}");
    let (_, said) = client.call("view", json!({ "path": "binary" })).await;
    assert!(said.contains("no text"), "{said}");
    let (_, said) = client.call("view", json!({ "path": "huge" })).await;
    assert!(said.len() < 1 << 20 && said.contains("of 104857600 bytes are shown"));
    let endless = json!({ "path": "a", ("x".repeat(1 << 20)): 1 });
    let (is_error, said) = client.call("view", endless).await;
    assert!(
        is_error && said.len() < 600 << 10 && said.contains("bytes are shown"),
        "{}",
        said.len()
    );
}

/// TOOL-4: a call whose parameters are none is a call all the same: it is logged, and what is wrong with it is said.
#[tokio::test]
async fn a_call_that_cannot_be_read_is_said_to_be_wrong_and_logged() {
    let told = Told::new();
    let mut client = Client::greeted(Role::Planner, told.clone()).await;
    let no_name = "`name` must be there and be a text";
    let no_object = "`arguments` must be an object, not a text, a list or a number";
    let twice = "a member is there twice, or is of the wrong type";
    let mut tried = vec![];
    for (params, tool, reason) in [
        (
            r#"{"arguments":"{\"path\":\"a.txt\"}","name":"view"}"#,
            "view",
            no_object,
        ),
        (r#"{"arguments":["a.txt"],"name":"view"}"#, "view", no_object),
        (r#"{"arguments":5,"name":"bash"}"#, "bash", no_object),
        (r#"{"arguments":"x","name":"no_such"}"#, "unknown", no_object),
        (r#"{"arguments":{}}"#, "unknown", no_name),
        (r#"{"name":7}"#, "unknown", no_name),
        (r#"["view"]"#, "unknown", no_name),
        ("5", "unknown", no_name),
        (r#"{"_meta":5,"name":"view"}"#, "view", twice),
        (r#"{"name":"view","name":"view"}"#, "view", twice),
    ] {
        client
            .say(&format!(
                r#"{{"jsonrpc":"2.0","id":"bad","method":"tools/call","params":{params}}}"#
            ))
            .await;
        let answer = client.hear().await;
        let error = json!({ "code": -32602, "message": reason });
        assert_eq!(
            answer,
            json!({ "jsonrpc": "2.0", "id": "bad", "error": error }),
            "{params}"
        );
        // Of what is there twice the last is kept.
        let arguments = params.replace(r#""name":"view","name""#, r#""name""#);
        tried.push(Misfit {
            tool,
            arguments,
            reason: reason.to_owned(),
        });
    }
    client
        .say(r#"{"jsonrpc":"2.0","id":"bad","method":"tools/call"}"#)
        .await;
    assert_eq!(client.hear_refusal().await, refusal(-32602, json!("bad")));
    tried.push(Misfit {
        tool: "unknown",
        arguments: "null".to_owned(),
        reason: no_name.to_owned(),
    });
    assert_eq!((told.asked(), told.misfits()), (vec![], tried));
}

/// TOOL-4: a call that its client takes back is done to its end, and so logged by whoever does it; the client hears no more
/// of it.
#[tokio::test]
async fn a_call_that_is_taken_back_is_done_to_its_end() {
    let told = Told::new();
    let mut client = Client::greeted(Role::Planner, told.clone()).await;
    let call = json!({ "jsonrpc": "2.0", "id": 77, "method": "tools/call",
        "params": { "name": "view", "arguments": { "path": "held" } } });
    client.say(&call.to_string()).await;
    let back =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 77 } });
    client.say(&back.to_string()).await;
    // The next answer comes after the notification was read.
    client.names().await;
    told.go_on.notify_one();
    let done = tokio::time::timeout(Duration::from_secs(30), told.is_done.notified()).await;
    done.expect("the call came to its end");
    // Were the call answered, its answer would stand before this one.
    client.names().await;
}

fn refusal(code: i32, id: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "code": code })
}

impl Client {
    /// Hears an error, without its words, which are there.
    async fn hear_refusal(&mut self) -> Value {
        let mut answer = self.hear().await;
        let error = answer["error"].take();
        assert!(
            error["message"].as_str().is_some_and(|why| !why.is_empty()),
            "{error}"
        );
        let members = answer.as_object_mut().expect("an object");
        members.remove("error");
        members.insert("code".into(), error["code"].clone());
        answer
    }
}

/// TOOL-1: what is no message is answered once and as such, with its id where it has one, and the next request is served.
#[tokio::test]
async fn what_is_no_message_is_answered_as_such_and_the_server_goes_on() {
    let told = Told::new();
    let mut client = Client::greeted(Role::Implementer, told.clone()).await;
    let deep = "[".repeat(200_000);
    let endless = format!(
        r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#,
        "x".repeat(5 << 20)
    );
    for (garbage, code, id) in [
        ("{", -32700, Value::Null),
        ("not json", -32700, Value::Null),
        ("\u{0}\u{0}", -32700, Value::Null),
        ("\"\\ud800\"", -32700, Value::Null),
        (deep.as_str(), -32700, Value::Null),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"vi"#,
            -32700,
            Value::Null,
        ),
        ("[]", -32600, Value::Null),
        ("null", -32600, Value::Null),
        ("{}", -32600, Value::Null),
        (r#"{"jsonrpc":"1.0"}"#, -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","method":1}"#, -32600, Value::Null),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            -32600,
            Value::Null,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            -32600,
            Value::Null,
        ),
        (r#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#, -32600, json!(5)),
        (r#"{"jsonrpc":"2.0","id":"a","method":7}"#, -32600, json!("a")),
        (endless.as_str(), -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":5,"method":"no/such"}"#, -32601, json!(5)),
    ] {
        client.say(garbage).await;
        let start: String = garbage.chars().take(60).collect();
        assert_eq!(client.hear_refusal().await, refusal(code, id), "{start}");
        client.names().await;
    }
    assert_eq!(told.asked(), []);
}

/// TOOL-1, TOOL-4: a call that is no JSON further down is answered under its id, or its client would wait for ever, and logged.
#[tokio::test]
async fn a_call_that_is_no_json_is_answered_by_its_id_and_logged() {
    let told = Told::new();
    let mut client = Client::greeted(Role::Implementer, told.clone()).await;
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let unreadable = [
        &br#"{"content":"half \ud83d"}"#[..],
        b"{\"content\":\"\xff\"}",
        b"1e999",
        deep.as_bytes(),
    ];
    for (id, arguments) in unreadable.iter().enumerate() {
        let begin = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"view","arguments":"#
        );
        client
            .say_bytes(&[begin.as_bytes(), arguments, b"}}"].concat())
            .await;
        assert_eq!(client.hear_refusal().await, refusal(-32602, json!(id)));
        client.names().await;
    }
    assert_eq!((told.asked(), told.misfits().len()), (vec![], unreadable.len()));
    // Without an id, and with one that nobody can repeat, it is no request.
    for top in ["", r#""id":1.5,"#] {
        let line = format!(r#"{{"jsonrpc":"2.0",{top}"method":"tools/call","params":["\ud83d"]}}"#);
        client.say(&line).await;
        assert_eq!(client.hear_refusal().await, refusal(-32700, Value::Null), "{top}");
    }
}

/// TOOL-1: a call that is too long is refused by its own id, wherever that stands, or its client would wait for ever.
#[tokio::test]
async fn what_is_too_long_is_refused_by_its_id() {
    let told = Told::new();
    let mut client = Client::greeted(Role::Implementer, told.clone()).await;
    let params = json!({ "name": "create_file", "arguments": { "path": "a", "content": "\"id\":7 }\\".repeat(2 << 20) } });
    for (start, end, id) in [
        (r#""id":99,"#, "", json!(99)),
        ("", r#","id":"last""#, json!("last")),
        ("", r#","id":[1]"#, Value::Null),
        (r#""id":"#, "", Value::Null),
    ] {
        client
            .say(&format!(
                r#"{{"jsonrpc":"2.0",{start}"method":"tools/call","params":{params}{end}}}"#
            ))
            .await;
        assert_eq!(client.hear_refusal().await, refusal(-32600, id), "{start}{end}");
        client.names().await;
    }
    client.say(&"x".repeat(21 << 20)).await;
    assert_eq!(client.hear_refusal().await, refusal(-32600, Value::Null));
    assert_eq!(told.asked(), []);
    // TOOL-4: those that were calls are logged, without their megabytes.
    let logged: Vec<(String, String)> = told
        .misfits()
        .into_iter()
        .map(|call| (call.arguments, call.reason))
        .collect();
    let too_long = "a message has at most 20971520 bytes, and this one has more";
    assert_eq!(logged, vec![("null".to_owned(), too_long.to_owned()); 3]);
}

/// TOOL-1: what asks for no answer gets none, whatever is wrong with it; nor does an answer, or two servers would never end.
#[tokio::test]
async fn what_asks_for_no_answer_gets_none() {
    let mut client = Client::greeted(Role::Planner, Told::new()).await;
    let endless = format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"x":"{}"}}}}"#,
        "x".repeat(21 << 20)
    );
    for line in [
        "",
        " \r",
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":5}"#,
        r#"{"jsonrpc":"2.0","method":"no/such"}"#,
        r#"{"method":"notifications/stderr","params":{"content":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":5,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"this is no JSON"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":7}"#,
        endless.as_str(),
    ] {
        client.say(line).await;
        // Were the line answered, its answer would stand before this one.
        client.names().await;
    }
}

/// Two requests of one id cannot be told apart by their answers: the second is refused while the first waits.
#[tokio::test]
async fn an_id_is_taken_until_it_is_answered() {
    let told = Told::new();
    let mut client = Client::greeted(Role::Planner, told.clone()).await;
    let call = json!({ "jsonrpc": "2.0", "id": 77, "method": "tools/call",
        "params": { "name": "view", "arguments": { "path": "held" } } });
    client.say(&call.to_string()).await;
    client.say(&call.to_string()).await;
    assert_eq!(client.hear_refusal().await, refusal(-32600, Value::Null));
    told.go_on.notify_one();
    assert_eq!(client.hear().await["id"], 77);
    client.say(&call.to_string()).await;
    told.go_on.notify_one();
    assert_eq!(client.hear().await["id"], 77);
    assert_eq!(told.asked().len(), 2);
}

/// TOOL-4: a call that is refused for its id is logged like any other, though its answer can name none.
#[tokio::test]
async fn a_call_that_is_refused_for_its_id_is_logged() {
    let told = Told::new();
    let mut client = Client::greeted(Role::Planner, told.clone()).await;
    let call = |id: &str, path: &str| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "view", "arguments": { "path": path } } })
    };
    let long = "x".repeat(257);
    let mut too_long = call("a", "c");
    too_long["params"]["padding"] = json!("x".repeat(21 << 20));
    let mut unreadable = call(&long, "d");
    unreadable["params"]["arguments"] = json!("d");
    client.say(&call("a", "held").to_string()).await;
    // What is no call is refused alike, and no entry of the log.
    let listing = json!({ "jsonrpc": "2.0", "id": long, "method": "tools/list" });
    let mut broken = call("", "e");
    broken["id"] = json!(1.5);
    for refused in [
        call("a", "b"),
        too_long,
        call(&long, "c"),
        unreadable,
        listing,
        broken,
    ] {
        client.say(&refused.to_string()).await;
        assert_eq!(client.hear_refusal().await, refusal(-32600, Value::Null));
    }
    told.go_on.notify_one();
    assert_eq!(client.hear().await["id"], "a");
    let misfit = |tool, parameters: Value, reason: &str| Misfit {
        tool,
        arguments: parameters.to_string(),
        reason: reason.to_owned(),
    };
    let viewing = |arguments: Value| json!({ "name": "view", "arguments": arguments });
    let same = "a request of the same id waits for its answer";
    let endless = "an id has at most 256 bytes";
    let logged = [
        misfit("view", viewing(json!({ "path": "b" })), same),
        misfit("unknown", Value::Null, same),
        misfit("view", viewing(json!({ "path": "c" })), endless),
        misfit("view", viewing(json!("d")), endless),
        misfit(
            "view",
            viewing(json!({ "path": "e" })),
            "this is no request of JSON-RPC 2.0",
        ),
    ];
    assert_eq!((told.asked().len(), told.misfits()), (1, logged.to_vec()));
}

/// Ten thousand calls: each is answered, in bounded memory, by one server.
#[tokio::test]
async fn many_calls_are_all_answered() {
    let told = Told::new();
    let mut client = Client::greeted(Role::Planner, told.clone()).await;
    for number in 0..10_000 {
        let (is_error, said) = client.call("view", json!({ "path": number.to_string() })).await;
        assert!(!is_error && said == format!("content of {number}"));
    }
    assert_eq!(told.asked().len(), 10_000);
}
