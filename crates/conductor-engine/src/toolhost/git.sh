# Runs what `git_status`, `git_diff` and `git_commit` are to an agent: `$1` says which, `$2` is the commit's message.
#
# Whoever may call these need not be one who may run commands (SEC-1), so git starts no program but its own parts. What it
# can be told not to start is switched off here, for submodules too, which inherit it. Filters and hooks can have any name,
# and an included file can change between two looks, so where git's configuration names those nothing is done.

export GIT_NO_LAZY_FETCH=1 GIT_ALLOW_PROTOCOL='' GIT_TERMINAL_PROMPT=0

git() {
  command git --no-pager -c core.hooksPath=/dev/null -c core.fsmonitor=false -c maintenance.auto=false -c gc.auto=0 \
    -c advice.addEmbeddedRepo=false "$@"
}

refuse() {
  printf '%s\n' "$@" 'If commands may be run here, git can be run as one.'
  exit 1
}

# What the system's own configuration names is not the agent's.
named=$(git config --show-scope --name-only --get-regexp '^filter\..*\.(clean|smudge|process)$|^hook\.|^include(if)?\.' \
  | grep -v '^system' | cut -f 2- | sort -u)
if [ -n "$named" ]; then
  refuse 'The configuration of git names programs or further files, and none are started for this tool:' "$named"
fi

# Adding would have git look into every submodule, by that one's own configuration.
add() {
  local count apart
  count=$(git ls-files --stage | grep -c '^160000 ')
  mapfile -d '' -t apart < <(git ls-files --stage -z | grep -z '^160000 ')
  if [ "${#apart[@]}" != "$count" ]; then
    refuse 'The submodules cannot be told.'
  fi
  apart=("${apart[@]#*$'\t'}")
  git add "$@" -- :/ "${apart[@]/#/:(exclude,top,literal)}"
}

# What goes wrong is said after all the rest: in the midst of it, it could break a line that tells what is meant.
tell() {
  local wrong ended
  exec 3>&1
  wrong=$(git "$@" 2>&1 >&3)
  ended=$?
  printf '%s' "${wrong:+$wrong$'\n'}"
  return "$ended"
}

case $1 in
  status)
    # One name a line; whoever leaves names out can tell by it.
    tell status --porcelain=v1 --branch --no-renames --ignore-submodules=dirty
    ;;
  diff)
    # A file that git does not know yet is part of what was done.
    add --intent-to-add --all \
      && tell diff --no-color --no-ext-diff --no-textconv --submodule=short --ignore-submodules=dirty \
        --no-relative --src-prefix=a/ --dst-prefix=b/ HEAD --
    ;;
  commit)
    add --all \
      && git commit --quiet --no-gpg-sign --message "$2" \
      && git log -1 --oneline --no-show-signature
    ;;
esac
