//! Where exactly a sighting begins and ends, how sure it is, and what is next to one and is none.
//!
//! A secret stands between `«` and `»`; rows next to each other differ in the one thing that decides.

use conductor_policy::redact::{MARK, Redactor};
use conductor_policy::secret::live::LiveSecrets;
use conductor_policy::secret::scan;

/// What follows from a sighting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Result {
    /// It is taken out, and a change with it is stopped.
    Accused,
    /// It is only taken out.
    Hinted,
}

/// Judges a text; secrets of the given certainty stand where it is marked, and nowhere else.
fn check(marked: &str, result: Result) {
    let (mut plain, mut shown) = (String::new(), String::new());
    let mut places = Vec::new();
    for (index, part) in marked.split(['«', '»']).enumerate() {
        let start = plain.len();
        plain.push_str(part);
        if index % 2 == 0 {
            shown.push_str(part);
        } else {
            shown.push_str(MARK);
            places.push(start..plain.len());
        }
    }
    let redactor = Redactor::new(LiveSecrets::new([]));
    assert_eq!(redactor.redact(&plain), shown, "{marked}");
    let accused: Vec<_> = scan(plain.as_bytes())
        .into_iter()
        .map(|sighting| sighting.range)
        .collect();
    let expected = match result {
        Result::Accused => places,
        Result::Hinted => Vec::new(),
    };
    assert_eq!(accused, expected, "{marked}");
}

fn accused<'a>(texts: impl IntoIterator<Item = &'a str>) {
    for text in texts {
        assert!(text.contains('«'), "{text} marks nothing");
        check(text, Result::Accused);
    }
}

fn hinted<'a>(texts: impl IntoIterator<Item = &'a str>) {
    for text in texts {
        assert!(text.contains('«'), "{text} marks nothing");
        check(text, Result::Hinted);
    }
}

/// Neither taken out nor accused.
fn left<'a>(texts: impl IntoIterator<Item = &'a str>) {
    for text in texts {
        assert!(!text.contains('«'), "{text} marks something");
        check(text, Result::Hinted);
    }
}

/// SEC-3: every way of assigning a value to a name, and what only looks like one.
#[test]
fn a_value_is_found_by_the_way_that_it_is_assigned() {
    accused([
        "token = «k3Qz9xW7mPv1»",
        "token=«k3Qz9xW7mPv1»&x=1",
        "token=«k3Qz9xW7mPv1», more",
        "token=«k3Qz9xW7mPv1»; more",
        "f(token=«k3Qz9xW7mPv1»)",
        "{token: «k3Qz9xW7mPv1»}",
        "[token: «k3Qz9xW7mPv1»]",
        "token: «k3Qz9xW7mPv1»",
        "token := \"«k3Qz9xW7mPv1»\"",
        "token => '«k3Qz9xW7mPv1»'",
        "token = `«k3Qz9xW7mPv1»`",
        "token = b\"«k3Qz9xW7mPv1»\"",
        "token = @\"«k3Qz9xW7mPv1»\"",
        "token = \"«k3Qz9xW7mPv1»",
        "env[\"token\"] = \"«k3Qz9xW7mPv1»\"",
        "token! = \"«k3Qz9xW7mPv1»\"",
        "\"token\": \"«k3Qz9xW7mPv1»\"",
        "'token': '«k3Qz9xW7mPv1»'",
        "`token`: '«k3Qz9xW7mPv1»'",
        "{\\\"token\\\": \\\"«k3Qz9xW7mPv1»\\\"}",
        "\"token\", \"«k3Qz9xW7mPv1»\"",
        "let token: &str = \"«k3Qz9xW7mPv1»\"",
        "token: \"«k3Qz9xW7mPv1»\" = x",
        "<password>«k3Qz9xW7mPv1»</password>",
        "<password>«k3Qz9,xW7;mPv1»</password>",
        "<add key=\"password\">«k3Qz9xW7mPv1»</add>",
        "set_password(\"«k3Qz9xW7mPv1»\")",
        "setPassword('«k3Qz9xW7mPv1»')",
        "login(\"«k3Qz9xW7mPv1aB2cD4eF5gH6iJ8kL0nO»\")",
        "run --password «k3Qz9xW7mPv1» now",
        "password «k3Qz9xW7mPv1»",
        "\tpassword «k3Qz9xW7mPv1»",
        "machine h login me password «k3Qz9xW7mPv1»",
        "ALTER USER x PASSWORD '«k3Qz9xW7mPv1»'",
        "APP_KEY=base64:«k3Qz9xW7mPv1»",
        "APP_KEY=\"base64:«k3Qz9xW7mPv1»\"",
        "key2Token=«k3Qz9xW7mPv1»",
        "spring.datasource.password=«k3Qz9xW7mPv1»",
        "curl Authorization '«k3Qz9xW7mPv1aB2cD4eF»'",
        "auth = \"«k3Qz9xW7mPv1aB2cD4eF»\"",
        "_auth=«dXNlcjpwYXNzd29yZA==»",
    ]);
    left([
        "token == k3Qz9xW7mPv1",
        "token::k3Qz9xW7mPv1",
        "token, \"k3Qz9xW7mPv1\"",
        "\"token\" , \"k3Qz9xW7mPv1\"",
        "\"token\", k3Qz9xW7mPv1",
        "token \"k3Qz9xW7mPv1\"",
        "password>k3Qz9xW7mPv1<",
        "<password >k3Qz9xW7mPv1</password>",
        "get_password(\"k3Qz9xW7mPv1\")",
        "set_password (\"k3Qz9xW7mPv1\")",
        "login(\"k3Qz9xW7mPv1aB2cD4eF5gH6iJ8kL0n\")",
        "the password k3Qz9xW7mPv1",
        "ALTER USER x PASSWORD k3Qz9xW7mPv1",
        "curl Authorization k3Qz9xW7mPv1aB2cD4eF",
        "token = k3Qz9xW7mPv1(x)",
        "token = k3Qz9xW7mPv1[0]",
        "token = k3Qz9xW7mPv1{x}",
        "token = k3Qz9xW7mPv1<T>",
        "token = $k3Qz9xW7mPv1",
        "token = \"-----k3Qz9xW7mPv1\"",
        "auth = \"k3Qz9xW7mPv1aB2cD4e\"",
        "token\n= k3Qz9xW7mPv1",
        "token =\nk3Qz9xW7mPv1",
        "next_page_token = \"k3Qz9xW7mPv1\"",
        "token_url = \"k3Qz9xW7mPv1\"",
        "tokenk = \"k3Qz9xW7mPv1\"",
    ]);
}

/// SEC-3: a word that stands for a password is taken out where it is plainly assigned, and nobody is accused of it.
#[test]
fn a_word_is_a_secret_only_where_it_is_plainly_assigned() {
    hinted([
        "password=\"«correcthorse»\"",
        "password = \"«correcthorse»\"",
        "password=«correcthorse»",
        "password: \"«correcthorse»\"",
        "password:«correcthorse»",
        "password: «correcthorse7»",
        "client_secret=«correcthorse»",
        "<password>«correcthorse»</password>",
        "\"password\", \"«correcthorse»\"",
        "password=\"«abcdef»\"",
        "password=\"«config.value»\"",
        "password=\"«grün-weiß»\"",
    ]);
    left([
        "password = correcthorse",
        "password: correcthorse",
        "set_password(\"correcthorse\")",
        "run --password correcthorse",
        "api_key=\"correcthorse\"",
        "password=\"abcde\"",
        "password=\"correct horse\"",
        "password=\"change-me-now\"",
        "password=\"letmein\"",
        "password=config.value",
        "password=\"https://host/x\"",
    ]);
}

/// SEC-3: what tells a random value from words, numbers, samples and references.
#[test]
fn a_value_is_random_or_it_is_not() {
    let each = |values: &[&str], frame: fn(&str) -> String| -> Vec<String> {
        values.iter().map(|value| frame(value)).collect()
    };
    let secrets = [
        "k3Qz9x7W",
        "ab1ab1cd",
        "ab1cd2efab1cd2ef",
        "ab1cd2ef9hab1cd2ef9hab1cd2ef9hab",
        "ab1cd2ef9ab1cd2ef9ab1cd2ef9ab1c",
        "kQzXwMpVbNcRtYuI",
        "aBcD-dEf-gHi-jKl-mNo",
        "word-9182736455463",
        "word-ab1934-other",
        "word-Ab193-other",
        "word19347",
        "aBcDeF1934",
        "k3Qxxxxx9x7W",
        "k3Qabcdefg9x7W",
        "k3Q..9x7W",
        "k3Q#9x7W%",
        "$k3Qz9x7W",
        "%k3Qz9x7W",
        "*k3Qz9x7W",
        "#k3Qz9x7W",
        "(k3Qz9x7W",
        "[k3Qz9x7W",
    ];
    for text in each(&secrets, |value| format!("api_key = \"«{value}»\"")) {
        check(&text, Result::Accused);
    }
    let others = [
        "k3Qz9x7",
        "ab1ab1ca",
        "ab1cd2eeab1cd2ee",
        "ab1cd2ef9ab1cd2ef9ab1cd2ef9ab1cd",
        "kQzXwMpVbNcRt",
        "91827364554637281",
        "aBc-dEf-gHi-jKl-mNo",
        "someCamelCasePropertyName",
        "abcdEfghIjklMnopQrst",
        "word-918273645546",
        "word-ab193-other",
        "word1934",
        "k3Qz9é7Wab12",
        "k3Qz9 7Wab12",
        "k3Qxxxxxx9x7W",
        "k3Q000000z9x7W",
        "k3Qabcdefgh9x7W",
        "k3Q34567890z9x7W",
        "k3Q-your-z9x7W",
        "k3Q...z9x7W",
        "k3Q${z9x7W",
        "k3Q{{z9x7W",
        "k3Q%sz9x7W",
        "k3Q::z9x7W",
        "<k3Qz9x7W",
        "${k3Qz9x7W",
        "$(k3Qz9x7W",
        "{{k3Qz9x7W",
        "%sk3Qz9x7W",
        "%vk3Qz9x7W",
        "**k3Qz9x7W",
        "$DB_PASSWORD",
        "%DB_PASSWORD%",
        "sha256:k3Qz9x7W",
        "SHA256:k3Qz9x7W",
        "arn:k3Qz9x7W",
    ];
    for text in each(&others, |value| format!("api_key = \"{value}\"")) {
        check(&text, Result::Hinted);
    }
}

/// SEC-4: a password made of words is one where it has letters of both cases, digits and signs, and nothing of code.
#[test]
fn a_chosen_password_is_one_though_it_is_made_of_words() {
    accused([
        "smtp_password = \"«Fig&Walrus2019»\"",
        "password: «wobbly-Sextant-4»",
        "<password>«Lichen+Bobbin77»</password>",
        "machine a login b password «velvet.Rhino.204»",
        "password = \"«velvet.Rhino.204»\"",
        "curl --user 'deployer:«Plum!Harbor#19»' -T app.war",
        "mysqldump -h db -u backup -p«T1nder-Sparrow» shop",
        "mysql -p'«T1nder-Sparrow»' shop",
        "sshpass -p '«Rook7-copper»' rsync",
        "PWD = «Kazoo_Tug7»",
    ]);
    hinted([
        "smtp_password = \"«fig&walrus2019»\"",
        "smtp_password = \"«FIG&WALRUS2019»\"",
        "smtp_password = \"«Fig&Walruses»\"",
        "smtp_password = \"«FigWalrus2019»\"",
        "smtp_password = \"«Fig&Wal19»\"",
        "smtp_password = \"«Fig&Test2019»\"",
        "smtp_password = \"«Fig/Walrus2019»\"",
        "clientSecret = \"«Fig&Walrus2019»\"",
    ]);
    left([
        "password = velvet.Rhino4",
        "password = \"sha256-Fig&Walrus2019\"",
        "mysqldump -h db -p shop",
        "dump -h db -pT1nder-Sparrow shop",
        "mysql -u root -p$PASSWORD shop",
    ]);
}

/// SEC-4: settings with a name and a value on each line.
#[test]
fn a_setting_may_stand_apart_from_its_name() {
    let value = "0b9c3f6e-71d2-4c58-a3e4-5d0f8b6a92c7";
    for text in [
        format!("  hec_token «{value}»"),
        format!("a b\nhec_token «{value}»\nc"),
    ] {
        accused([text.as_str()]);
    }
    for text in [
        format!("token {value}"),
        format!("the hec_token {value}"),
        format!("hec_token {value} is"),
        "hec_token 0b9c3f6e-71d2-4c5".to_owned(),
    ] {
        left([text.as_str()]);
    }
}

/// SEC-3: a key opens something or names something; the value and the word before tell which.
#[test]
fn a_key_is_a_secret_where_it_is_long_and_random_and_opens_something() {
    let random = "k3Qz9xW7mPv1aB2cD4eF";
    for name in [
        "OPENAI_KEY",
        "STRIPE_KEY",
        "HMAC_KEY",
        "jwtKey",
        "kms_key",
        "key",
        "KEY",
        "keyA",
        "JWT_KEY_2",
        "HMAC_KEY_BASE64",
        "HMAC_KEY_v2",
    ] {
        check(&format!("{name}=«{random}»"), Result::Accused);
        check(&format!("\"{name}\": \"«{random}»\""), Result::Accused);
        check(&format!("{name}={}", &random[1..]), Result::Hinted);
        check(&format!("{name}=some-long-words-with-dashes"), Result::Hinted);
    }
    for name in [
        "public_key",
        "PUBKEY",
        "idempotencyKey",
        "cache_key",
        "partition_key",
        "primary_key_2",
        "objectKey",
        "Sec-WebSocket-Key",
        "keyring",
        "monkey",
        "key_id",
    ] {
        check(&format!("{name}={random}"), Result::Hinted);
    }
    let (hex, uuid) = (
        "0f3a9c4e7b21d8650f3a9c4e7b21d865",
        "0f3a9c4e-7b21-4865-af3a-9c4e7b21d865",
    );
    check(&format!("HMAC_KEY=«{hex}»"), Result::Accused);
    check(&format!("key=«{hex}x»"), Result::Accused);
    left([
        format!("key={hex}").as_str(),
        format!("HMAC_KEY={uuid}").as_str(),
        format!("key: {uuid}").as_str(),
        "let vs_key = \"SOFTWARE\\WOW6432Node\\Microsoft\\SxS\\VS7\";",
    ]);
    check(&format!("HMAC_KEY=«{uuid}0»"), Result::Accused);
    check(&format!("HMAC_KEY=«{}»", uuid.replace('-', "_")), Result::Accused);
    check(&format!("API_KEY=«{uuid}»"), Result::Accused);
}

/// SEC-3: what stands behind the name of a secret makes it no other thing.
#[test]
fn a_name_may_be_numbered_and_lettered() {
    accused([
        "passwords=«k3Qz9xW7mPv1»",
        "tokenA=«k3Qz9xW7mPv1»",
        "token_b=«k3Qz9xW7mPv1»",
        "signing_secret_v2=«k3Qz9xW7mPv1»",
        "ENCRYPTION_KEY_BASE64=«k3Qz9xW7mPv1»",
        "API_TOKEN_PROD2=«k3Qz9xW7mPv1»",
        "API_TOKEN_PROD=«k3Qz9xW7mPv1»",
    ]);
    left([
        "token_id=k3Qz9xW7mPv1",
        "a=k3Qz9xW7mPv1aB2cD4eF",
        "key_base32=k3Qz9xW7mPv1aB2cD4eF",
        "token_base65=k3Qz9xW7mPv1",
    ]);
}

/// SEC-3: a password that begins like a variable is one where it is quoted and random; a variable's name is made of words.
#[test]
fn a_quoted_password_may_begin_with_a_sign() {
    accused([
        "password='«$Zx8kQ2mVb9Lw»'",
        "password=\"«#Zx8kQ2mVb9Lw»\"",
        "password: '«(Zx8kQ2mVb9Lw»'",
    ]);
    left([
        "password=$Zx8kQ2mVb9Lw",
        "password=\"$DB_PASSWORD\"",
        "password=\"$dbPassword\"",
        "password='[hidden here]'",
        "password='<Zx8kQ2mVb9Lw'",
        "password='$(Zx8kQ2mVb9Lw'",
    ]);
}

/// SEC-3: hostile: a long value has no tail that is shown.
#[test]
fn a_long_value_is_taken_out_whole() {
    let long = |length: usize| "k3Qz9xW7mPv1".chars().cycle().take(length).collect::<String>();
    for length in [512, 513, 1024, 1025, 4000] {
        let value = long(length);
        check(&format!("API_KEY=\"«{value}»\" # a"), Result::Accused);
        check(&format!("API_KEY=«{value}» a"), Result::Accused);
    }
    check(&format!("API_KEY=\"«{}»\"", long(8000)), Result::Accused);
    // Of what nobody quotes, a bounded part.
    let value = long(5000);
    let (found, rest) = value.split_at(4608);
    check(&format!("API_KEY=«{found}»{rest}"), Result::Accused);
    check(
        &format!("password=\"«{}»\"", "correct".repeat(300)),
        Result::Hinted,
    );
}

/// SEC-3: passwords of addresses.
#[test]
fn an_address_gives_its_password_away() {
    accused([
        "x://u:«k3Qz9»@h",
        "a x://u:«k3Qz9»@h b",
        "\"x://u:«k3Qz9»@h\"",
        "x://u:«p@ss»@h/y",
        "x://:«k3Qz9»@h",
        "x://u:«pa/ss9Kq2x»@h",
        "x://u:«pa/s@s9/Kq2x»@h b@c",
        "\"x://u:«pa/ss9Kq2x»@h\"",
    ]);
    hinted(["x://u:«admin»@h", "x://me99:«me99»@h", "x://u:«changeme»@h"]);
    left([
        "://u:k3Qz9@h",
        " ://u:k3Qz9@h",
        "x://u:@h",
        "x://u:$PW@h",
        "x://u:k3Qz9/@h",
        "x://u:k3Qz9?@h",
        "x://u:k3 Qz9@h",
        "x://u:k3\\Qz9@h",
        "x://u:k3\nQz9@h",
        "x://u@h:80",
        "x://h:80/ss9Kq2xW7@h",
        "x://h:/ss9Kq2xW7@h",
        "x://h/u:pa/ss9Kq2xW7@h",
        "x://u@h:pa/ss9Kq2xW7@h",
        "x://h:pa/some-words/there@1.2",
        "x://h:pa/ss9Kq2xW7 @h",
        "x://h:pa/ss9Kq2xW7'@h",
        "x://h:pa?ss9Kq2xW7/@h",
    ]);
    let slashed = |length: usize| "k3Qz9xW7mPv1/".chars().cycle().take(length).collect::<String>();
    check(&format!("x://u:«{}»@h", slashed(255)), Result::Accused);
    check(&format!("x://u:{}@h", slashed(256)), Result::Hinted);
    let named = |length: usize, password: &str| format!("x://{}:{password}@h", "u".repeat(length));
    check(&named(127, "«k3Qz9»"), Result::Accused);
    check(&named(128, "k3Qz9"), Result::Hinted);
}

/// SEC-4: so do data sources of Go.
#[test]
fn a_data_source_gives_its_password_away() {
    accused([
        "sql.Open(\"mysql\", \"ledger:«k9XwQ2»@tcp(10.2.3.4:3306)/ledger\")",
        "DSN=ledger:«k9XwQ2»@unix(/run/mysql.sock)/ledger",
        "ledger:«k9:XwQ2»@tcp(db)/ledger",
    ]);
    left([
        "\"ledger:@tcp(db)/ledger\"",
        "\"ledger@tcp(db)/ledger\"",
        "\"ledger:${PASSWORD}@tcp(db)/ledger\"",
        "\"root:password@tcp(db)/ledger\"",
        "x: y\nledger@tcp(db)/ledger",
    ]);
}

/// SEC-3: credentials after their scheme.
#[test]
fn credentials_follow_their_scheme() {
    accused([
        "Bearer «k3Qz9xW7mPv1aB2cD4eF»",
        "(bearer «k3Qz9xW7mPv1aB2cD4eF»)",
        "Authorization: Bearer «k3Qz9xW7mPv1aB2cD4eF»",
        "Basic «dXNlcjpwYXNzd29yZA==»",
        "Basic «dTpwYXNzdw==»",
        "Basic «dTpwYSBzc3c=»",
    ]);
    hinted([
        "Authorization: Bearer «oneword8»",
        "x authorization; Bearer «oneword8»",
    ]);
    left([
        "Bearer k3Qz9xW7mPv1aB2cD4e",
        "xBearer k3Qz9xW7mPv1aB2cD4eF",
        "Authorization: Bearer oneword",
        "Authorization: Bearer xxxxxxxx",
        "authorization\nx Bearer oneword8",
        "Basic dXNlcg==",
        "Basic dTpwYXM=",
        "Basic dTpwYXMBc3c=",
        "Basic education",
    ]);
    let far = |blanks: usize, word: &str| format!("authorization{} bearer {word}", " ".repeat(blanks));
    check(&far(200, "«oneword8»"), Result::Hinted);
    check(&far(300, "oneword8"), Result::Hinted);
}

/// SEC-3: passwords on command lines and in password files.
#[test]
fn command_lines_and_password_files_are_read() {
    accused([
        "curl -u me:«k3Qz9xW7mPv1» x",
        "curl -u \"me:«k3Qz9xW7mPv1»\" x",
        "curl --user 'me:«k3Qz9xW7mPv1»'",
        "h:5432:db:me:«k3Qz9xW7mPv1»",
        "sshpass -p «k3Qz9xW7mPv1» ssh h",
        "docker login -p «k3Qz9xW7mPv1»",
        "openssl -in x pass:«k3Qz9xW7mPv1»",
        "IDENTIFIED BY '«k3Qz9xW7mPv1»'",
    ]);
    left([
        "curl -u mek3Qz9xW7mPv1",
        "curl -u me:$k3Qz9xW7mPv1",
        "curl -u me:secretive",
        "h:5432:db:k3Qz9xW7mPv1",
        "serve -p k3Qz9xW7mPv1",
        "sshpass\n -p k3Qz9xW7mPv1",
    ]);
    let user = |length: usize, password: &str| format!("curl -u {}:{password} x", "u".repeat(length));
    check(&user(127, "«k3Qz9xW7mPv1»"), Result::Accused);
    check(&user(128, "k3Qz9xW7mPv1"), Result::Hinted);
}

/// SEC-3: a published form stands by itself, whatever escape comes before it, and a longer word is another thing.
#[test]
fn a_published_form_has_its_own_borders() {
    let aws = ["AK", "IA", "3QZ9XW7MPV1AB2CD"].concat();
    let github = ["gh", "p_", "0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"].concat();
    let azure = ["abc8", "Q~", "k3Qz9xW7mPv1aB2cD4eF5gH6iJ8kL0nOp"].concat();
    let telegram = ["918273645", ":AA", "k3Qz9xW7mPv1aB2cD4eF5gH6iJ8kL0nOp"].concat();
    for text in [
        format!("«{aws}»"),
        format!("x «{aws}» y"),
        format!("x\\n«{aws}»"),
        format!("x%3D«{aws}»"),
        format!("x-«{aws}»-"),
        format!("x«{github}»"),
        format!("«{github}x»"),
        format!("«{azure}»"),
        format!("-«{azure}»"),
        format!("x=«{telegram}»"),
    ] {
        check(&text, Result::Accused);
    }
    for text in [
        format!("x{aws}"),
        format!("{aws}x"),
        format!("%zz{aws}"),
        format!("%3z{aws}"),
        format!("xn{aws}"),
        format!("x{azure}"),
        format!("{azure}xxxxx"),
        format!("99{telegram}"),
        format!("{telegram}x"),
        ["AK", "IA", "3QZ9XW7000000B2C"].concat(),
    ] {
        check(&text, Result::Hinted);
    }
    let counted = ["AK", "IA", "3QZ9XABCDEFGHB2C"].concat();
    check(&format!("«{counted}»"), Result::Hinted);
}

/// SEC-3: a private key is taken out whole, cut off or beside another, and what only has such lines stays.
#[test]
fn a_key_ends_where_its_foot_does() {
    let head = ["-----BEGIN ", "RSA PRIVATE KEY-----"].concat();
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj";
    let foot = "-----END RSA PRIVATE KEY-----";
    let key = format!("{head}\n{body}\n{foot}");
    for text in [
        format!("a\n«{key}»\nb"),
        format!("\"«{head}\\n{body}\\n{foot}»\\n\""),
        format!("«{key}»«{key}»"),
        format!("«{head}\n{body}\n»"),
        format!("«{head}\n{body}\n-----END {}\nb»", "x".repeat(100)),
        format!("«{head}\n{body}\n-----END {}\n{foot}»b", "x".repeat(100)),
    ] {
        check(&text, Result::Accused);
    }
    check(&format!("«{head}\n{}\n{foot}»\n", &body[..39]), Result::Hinted);
    let certificate = key.replace("RSA PRIVATE KEY", "CERTIFICATE");
    check(&certificate, Result::Hinted);
    check(
        &format!("-----BEGIN {}PRIVATE KEY-----\n{body}\n", "x".repeat(60)),
        Result::Hinted,
    );
    check(
        &format!("-----BEGIN \nPRIVATE KEY-----\n{body}\n"),
        Result::Hinted,
    );
    // What stands before a key and runs into it does not hide it.
    let redactor = Redactor::new(LiveSecrets::new([]));
    assert_eq!(
        redactor.redact(&format!("password=abc{key}\n")),
        format!("password={MARK}{MARK}\n")
    );
    let long = format!("{head}\n{}", format!("{body}\n").repeat(1000));
    // Without a foot it ends with the line that is too far.
    let end = 32 * 1024 + long[32 * 1024..].find('\n').expect("another line");
    assert_eq!(redactor.redact(&long), format!("{MARK}{}", &long[end..]));
}

/// SEC-4: where two sightings overlap, one is told of, by the surer name.
#[test]
fn overlapping_sightings_are_told_once_by_the_surer_name() {
    let token = ["gh", "p_", "0a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R"].concat();
    for (text, kind) in [
        (format!("password=/{token}/x"), "github-token"),
        (format!("password={token}"), "github-token"),
        ("password=postgres://u:k3Qz9xW7mPv1@h/db".to_owned(), "password"),
        ("x://u:k3Qz9xW7mPv1@h".to_owned(), "password-in-address"),
        ("api_key = k3Qz9xW7mPv1".to_owned(), "assigned-secret"),
    ] {
        let found: Vec<String> = scan(text.as_bytes())
            .iter()
            .map(|sighting| sighting.kind.to_string())
            .collect();
        assert_eq!(found, [kind], "{text}");
    }
}
