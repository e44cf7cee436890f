//! The forms of tokens that providers publish, one row each.
//!
//! A row has a word that every such token holds, and the pattern that confirms it. This module does not know where a
//! token stands.

use std::sync::OnceLock;

use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};

use super::{Certainty, Kind, REACH, Sighting, value};

/// One published form.
pub(super) struct Form {
    kind: &'static str,
    /// What every token of the form holds; alternatives stand between bars.
    words: &'static str,
    /// Where the token begins, seen from the word.
    begins: Begins,
    pattern: &'static str,
    certainty: Certainty,
}

enum Begins {
    /// With the word, whatever stands before: the word cannot be part of anything else.
    Here,
    /// With the word, and no letter or digit stands before it.
    Alone,
    /// So many bytes before the word.
    Before(usize),
    /// Before the word, with all the digits there.
    Digits,
}

use Begins::{Alone, Before, Digits, Here};
use Certainty::{Certain, Hinted};

const fn row(
    kind: &'static str,
    words: &'static str,
    begins: Begins,
    pattern: &'static str,
    certainty: Certainty,
) -> Form {
    Form {
        kind,
        words,
        begins,
        pattern,
        certainty,
    }
}

const fn sure(kind: &'static str, words: &'static str, begins: Begins, pattern: &'static str) -> Form {
    row(kind, words, begins, pattern, Certain)
}

/// How the armour of a private key begins when all of it is in base64.
const ENCODED_KEYS: &str = "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0t|LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt|\
    LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0t|LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUg|\
    LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFU";

const SNOWFLAKES: &str = "MTA|MTE|MTI|MTM|MTQ|MTU|MTY|MTc|MTg|MTk|MjA|MjE|MjI|MjM|MjQ|MjU|MjY|Mjc|Mjg|Mjk|MzA|MzE|MzI|MzM|MzQ|\
    MzU|MzY|Mzc|Mzg|Mzk|NDA|NDE|NDI|NDM|NDQ|NDU|NDY|NDc|NDg|NDk|NTA|NTE|NTI|NTM|NTQ|NTU|NTY|NTc|NTg|NTk|\
    NjA|NjE|NjI|NjM|NjQ|NjU|NjY|Njc|Njg|Njk|NzA|NzE|NzI|NzM|NzQ|NzU|NzY|Nzc|Nzg|Nzk|ODA|ODE|ODI|ODM|ODQ|\
    ODU|ODY|ODc|ODg|ODk|OTA|OTE|OTI|OTM|OTQ|OTU|OTY|OTc|OTg|OTk";

/// Lengths are lower bounds where a provider may lengthen its tokens: what is left of one must not stay behind.
#[rustfmt::skip]
const FORMS: &[Form] = &[
    sure("github-token", "ghp_|gho_|ghu_|ghr_", Here, "gh[pour]_[0-9A-Za-z]{36}[0-9A-Za-z_]{0,200}"),
    // A newer installation token carries a JSON web token.
    sure("github-token", "ghs_", Here, "ghs_[0-9A-Za-z_.-]{36,1500}"),
    sure("github-token", "github_pat_", Here, "github_pat_[0-9A-Za-z_]{60,255}"),
    row("github-token", "ghp_|gho_|ghu_|ghs_|ghr_", Alone, "gh[pousr]_[0-9A-Za-z_]{20,255}", Hinted),
    row("github-token", "github_pat_", Here, "github_pat_[0-9A-Za-z_]{20,255}", Hinted),
    sure("gitlab-token", "glpat-", Here, "glpat-[0-9A-Za-z_-]{20,300}(\\.[0-9a-z.]{10,40})?"),
    sure("gitlab-token", "gldt-", Here, "gldt-[0-9A-Za-z_-]{20,64}"),
    sure("gitlab-token", "glptt-", Here, "glptt-[0-9a-f]{40}"),
    sure("gitlab-token", "glrt-", Here, "glrt-[0-9A-Za-z_-]{20,300}"),
    sure("gitlab-token", "glcbt-", Here, "glcbt-[0-9A-Za-z_-]{20,64}"),
    sure("gitlab-token", "glsoat-", Here, "glsoat-[0-9A-Za-z_-]{20,64}"),
    sure("gitlab-token", "GR1348941", Here, "GR1348941[0-9A-Za-z_-]{20}"),
    sure("aws-access-key-id", "AKIA|ASIA|ABIA|ACCA", Alone, "A(KIA|SIA|BIA|CCA)[0-9A-Z]{16}"),
    sure("google-api-key", "AIza", Alone, "AIza[0-9A-Za-z_-]{35}"),
    row("google-api-key", "AIza", Alone, "AIza[0-9A-Za-z_-]{30,60}", Hinted),
    sure("google-oauth-secret", "GOCSPX-", Here, "GOCSPX-[0-9A-Za-z_-]{28}"),
    sure("google-access-token", "ya29.", Alone, "ya29\\.[0-9A-Za-z_.-]{40,2000}"),
    sure("azure-client-secret", "0Q~|1Q~|2Q~|3Q~|4Q~|5Q~|6Q~|7Q~|8Q~|9Q~", Before(3), "[0-9A-Za-z_~.]{3}[0-9]Q~[0-9A-Za-z_~.-]{31,34}"),
    sure("slack-token", "xoxb-", Alone, "xoxb-[0-9]{8,14}-[0-9A-Za-z-]{20,100}"),
    sure("slack-token", "xox", Alone, "xox[aoprs]-[0-9A-Za-z-]{24,250}"),
    row("slack-token", "xox", Alone, "xox[a-z]-[0-9A-Za-z-]{10,250}", Hinted),
    sure("slack-token", "xapp-", Alone, "xapp-[0-9]-[0-9A-Z]{8,14}-[0-9]{8,16}-[0-9a-f]{32,80}"),
    sure("slack-webhook", "hooks.slack.com/", Here, "hooks\\.slack\\.com/(services|workflows|triggers)/[0-9A-Za-z_]{8,}/[0-9A-Za-z_]{8,}/[0-9A-Za-z_]{20,}"),
    sure("discord-webhook", "/api/webhooks/", Here, "/api/webhooks/[0-9]{17,20}/[0-9A-Za-z_-]{60,80}"),
    sure("telegram-bot-token", ":AA", Digits, "[0-9]{8,10}:AA[0-9A-Za-z_-]{33}"),
    sure("stripe-key", "sk_live_|rk_live_|sk_test_|rk_test_", Here, "[sr]k_(live|test)_[0-9A-Za-z]{16,250}"),
    sure("webhook-secret", "whsec_", Here, "whsec_[0-9A-Za-z+/=]{24,100}"),
    sure("square-token", "sq0atp-", Here, "sq0atp-[0-9A-Za-z_-]{22,43}"),
    sure("square-token", "sq0csp-", Here, "sq0csp-[0-9A-Za-z_-]{43}"),
    sure("square-token", "EAAA", Alone, "EAAA[A-Z][0-9A-Za-z_-]{58,60}"),
    sure("braintree-token", "access_token$", Here, "access_token\\$(production|sandbox)\\$[0-9a-z]{16}\\$[0-9a-f]{32}"),
    sure("shopify-token", "shpat_|shpss_|shpca_|shppa_", Here, "shp(at|ss|ca|pa)_[0-9a-fA-F]{32}"),
    sure("twilio-key", "SK0|SK1|SK2|SK3|SK4|SK5|SK6|SK7|SK8|SK9|SKa|SKb|SKc|SKd|SKe|SKf", Alone, "SK[0-9a-f]{32}"),
    sure("sendgrid-key", "SG.", Alone, "SG\\.[0-9A-Za-z_-]{20,24}\\.[0-9A-Za-z_-]{39,50}"),
    sure("mailgun-key", "key-", Alone, "key-[0-9a-f]{32}"),
    sure("mailchimp-key", "-us", Before(32), "[0-9a-f]{32}-us[0-9]{1,2}"),
    sure("openai-key", "T3BlbkFJ", Before(20), "[0-9A-Za-z]{20}T3BlbkFJ[0-9A-Za-z]{20}"),
    sure("openai-key", "sk-proj-", Here, "sk-proj-[0-9A-Za-z_-]{40,250}"),
    sure("openai-key", "sk-svcacct-", Here, "sk-svcacct-[0-9A-Za-z_-]{40,250}"),
    sure("openai-key", "sk-admin-", Here, "sk-admin-[0-9A-Za-z_-]{40,250}"),
    sure("anthropic-key", "sk-ant-", Here, "sk-ant-[a-z]{3,6}[0-9]{2}-[0-9A-Za-z_-]{60,250}"),
    row("model-key", "sk-", Alone, "sk-(ant|proj)-[0-9A-Za-z_-]{16,250}", Hinted),
    row("model-key", "sk-", Alone, "sk-[0-9A-Za-z_]{32,250}", Hinted),
    sure("hugging-face-token", "hf_", Alone, "hf_[A-Za-z]{34}"),
    sure("npm-token", "npm_", Alone, "npm_[0-9A-Za-z]{36}"),
    sure("pypi-token", "pypi-", Alone, "pypi-[0-9A-Za-z_-]{85,300}"),
    sure("rubygems-key", "rubygems_", Here, "rubygems_[0-9a-f]{48}"),
    sure("cargo-token", "cio", Alone, "cio[0-9A-Za-z]{32}"),
    sure("docker-hub-token", "dckr_", Here, "dckr_(pat|oat)_[0-9A-Za-z_-]{27,64}"),
    sure("digitalocean-token", "dop_v1_|doo_v1_|dor_v1_", Here, "do[opr]_v1_[0-9a-f]{64}"),
    sure("heroku-key", "HRKU-", Here, "HRKU-[0-9A-Za-z_-]{36,64}"),
    sure("cloudflare-key", "v1.0-", Alone, "v1\\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    sure("new-relic-key", "NRAK-", Here, "NRAK-[0-9A-Z]{27}"),
    sure("new-relic-key", "NRII-", Here, "NRII-[0-9A-Za-z_-]{32}"),
    sure("new-relic-key", "NRAL", Before(36), "[0-9a-f]{36}NRAL"),
    sure("sentry-token", "sntrys_", Here, "sntrys_eyJ[0-9A-Za-z+/=_-]{80,400}"),
    sure("sentry-token", "sntryu_", Here, "sntryu_[0-9a-f]{64}"),
    sure("grafana-token", "glsa_", Here, "glsa_[0-9A-Za-z]{32}_[0-9a-f]{8}"),
    sure("grafana-token", "glc_", Alone, "glc_eyJ[0-9A-Za-z+/=]{40,400}"),
    sure("vault-token", "hvs.", Alone, "hvs\\.[0-9A-Za-z_-]{80,300}"),
    sure("vault-token", "hvb.", Alone, "hvb\\.[0-9A-Za-z_-]{100,400}"),
    sure("terraform-token", ".atlasv1.", Before(14), "[0-9A-Za-z]{14}\\.atlasv1\\.[0-9A-Za-z_=-]{60,80}"),
    sure("pulumi-token", "pul-", Alone, "pul-[0-9a-f]{40}"),
    sure("databricks-token", "dapi", Alone, "dapi[0-9a-f]{32}(-[0-9])?"),
    sure("linear-key", "lin_", Alone, "lin_(api|oauth)_[0-9A-Za-z]{40,64}"),
    sure("notion-token", "ntn_", Alone, "ntn_[0-9]{11}[0-9A-Za-z]{35}"),
    sure("notion-token", "secret_", Alone, "secret_[0-9A-Za-z]{43}"),
    sure("figma-token", "figd_", Here, "figd_[0-9A-Za-z_-]{40,64}"),
    sure("atlassian-token", "3xFfGF0", Before(5), "AT[AC]TT3xFfGF0[0-9A-Za-z_-]{60,250}(=[0-9A-Fa-f]{8})?"),
    sure("bitbucket-password", "ATBB", Alone, "ATBB[0-9A-Za-z]{32}"),
    sure("airtable-token", "pat", Alone, "pat[0-9A-Za-z]{14}\\.[0-9a-f]{64}"),
    sure("postman-key", "PMAK-", Here, "PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    sure("planetscale-token", "pscale_", Here, "pscale_(tkn|pw|oauth)_[0-9A-Za-z_.-]{32,64}"),
    sure("supabase-token", "sbp_", Alone, "sbp_[0-9a-f]{40}"),
    sure("doppler-token", "dp.", Alone, "dp\\.(pt|st|ct|sa|scim|audit)\\.([a-z0-9_-]{2,35}\\.)?[0-9A-Za-z]{40,44}"),
    sure("age-key", "AGE-SECRET-KEY-1", Here, "AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}"),
    sure("tencent-key-id", "AKID", Alone, "AKID[0-9A-Za-z]{32}"),
    sure("nuget-key", "oy2", Alone, "oy2[0-9a-z]{43}"),
    sure("resend-key", "re_", Alone, "re_[0-9A-Za-z]{8}_[0-9A-Za-z]{24}"),
    sure("launchdarkly-key", "sdk-", Alone, "sdk-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    sure("azure-signature", "sig=", Alone, "sig=[0-9A-Za-z%]{43,130}%3[dD]"),
    sure("teams-webhook", ".webhook.office.com/webhookb2/", Here, "\\.webhook\\.office\\.com/webhookb2/[0-9a-f-]{36}@[0-9a-f-]{36}/IncomingWebhook/[0-9a-f]{32}/[0-9a-f-]{36}"),
    sure("encoded-private-key", ENCODED_KEYS, Here, "[0-9A-Za-z+/]{40,6000}={0,2}"),
    sure("alibaba-key-id", "LTAI", Alone, "LTAI[0-9A-Za-z]{20}"),
    sure("facebook-token", "EAA", Alone, "EAA[A-Z][0-9A-Za-z]{90,250}"),
    sure("twitter-token", "AAAAAAAAAA", Alone, "A{20,22}[0-9A-Za-z%]{60,120}"),
    // The first part is a decimal number in base64: its first three characters are few.
    sure("discord-token", SNOWFLAKES, Alone, "[MNO][0-9A-Za-z_-]{23}\\.[0-9A-Za-z_-]{6}\\.[0-9A-Za-z_-]{27,38}"),
    sure("json-web-token", "eyJ", Alone, "eyJ[0-9A-Za-z_-]{10,1000}\\.eyJ[0-9A-Za-z_-]{10,4000}\\.[0-9A-Za-z_-]{20,2000}"),
    row("json-web-token", "eyJ", Alone, "eyJ[0-9A-Za-z_-]{8,2000}\\.[0-9A-Za-z_-]{8,4000}\\.[0-9A-Za-z_.-]{8,2000}", Hinted),
];

/// Lists every word with its form.
pub(super) fn words() -> impl Iterator<Item = (&'static str, usize)> {
    FORMS
        .iter()
        .enumerate()
        .flat_map(|(index, form)| form.words.split('|').map(move |word| (word, index)))
}

/// Compiled when first met: most texts hold no word of most forms.
static PATTERNS: [OnceLock<Regex>; FORMS.len()] = [const { OnceLock::new() }; FORMS.len()];

fn pattern(index: usize) -> Option<&'static Regex> {
    let form = FORMS.get(index)?;
    let compiled = PATTERNS.get(index)?.get_or_init(|| {
        Regex::new(form.pattern).expect("the table holds valid patterns; a test compiles them all")
    });
    Some(compiled)
}

/// Confirms a form whose word begins at `at`.
pub(super) fn at(index: usize, text: &[u8], at: usize) -> Option<Sighting> {
    let form = FORMS.get(index)?;
    let start = match form.begins {
        Here => at,
        Alone => Some(at).filter(|at| !follows_word(text, *at))?,
        Before(length) => at
            .checked_sub(length)
            .filter(|start| !follows_word(text, *start))?,
        Digits => {
            let digits = text.get(at.saturating_sub(11)..at)?;
            let count = digits
                .iter()
                .rev()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            at - count
        }
    };
    let end = text.len().min(start + REACH);
    let input = Input::new(text).span(start..end).anchored(Anchored::Yes);
    let range = pattern(index)?.find(input)?.range();
    let is_cut = match form.begins {
        Here => false,
        // A longer word that begins alike is another thing.
        Alone | Before(_) | Digits => text.get(range.end).is_some_and(u8::is_ascii_alphanumeric),
    };
    let token = text.get(range.clone())?;
    let judged = token.get(..value::JUDGED).unwrap_or(token);
    (!is_cut && !value::is_blank(judged)).then_some(Sighting {
        kind: Kind(form.kind),
        range,
        certainty: if value::is_counted(judged) {
            Hinted
        } else {
            form.certainty
        },
    })
}

/// Tells whether a letter or digit stands right before `at`; the end of an escape (`\n`, `%3D`) is none.
fn follows_word(text: &[u8], at: usize) -> bool {
    match text.get(at.saturating_sub(3)..at).unwrap_or_default() {
        [b'%', high, low] => {
            !(high.is_ascii_hexdigit() && low.is_ascii_hexdigit()) && low.is_ascii_alphanumeric()
        }
        [.., b'\\', b'n' | b'r' | b't'] | [] => false,
        [.., before] => before.is_ascii_alphanumeric(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles_and_begins_where_its_word_says() {
        assert!((0..FORMS.len()).all(|index| pattern(index).is_some()));
        for (word, _) in words() {
            assert!(word.len() >= 3 && word.is_ascii(), "{word:?}");
        }
    }
}
