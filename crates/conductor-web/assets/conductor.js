// Brings a page up to date as things happen, and listens to keys. Every page is whole and true without it.
"use strict";
(() => {
  const connection = document.getElementById("connection");
  const live = document.body.dataset.live;
  if (!live) return;

  // A part is replaced when it changed and nobody is typing in it; what is typed is never lost.
  const isChanged = (field) => {
    if (field.matches("[type=checkbox], [type=radio]")) return field.checked !== field.defaultChecked;
    // Where no option is marked, a browser chooses the first.
    if (field.matches("select")) return field.selectedIndex !== Math.max(0, [...field.options].findIndex((option) => option.defaultSelected));
    return field.value !== field.defaultValue;
  };
  const isBusy = (part) =>
    [...part.querySelectorAll("input:not([type=hidden]), textarea, select")].some(isChanged) ||
    (part.contains(document.activeElement) && document.activeElement.matches("input, textarea, select"));

  // What a button would send, but for how much of the run its page had seen: by that it is known again.
  const sends = (button) => {
    const fields = new FormData(button.form, button);
    fields.delete("seen");
    return `${button.form.action} ${new URLSearchParams(fields)}`;
  };
  const isTwin = (focused) => {
    if (!focused.matches("button") || !focused.form) return (element) => element.outerHTML === focused.outerHTML;
    const sent = sends(focused);
    return (element) => element.form && sends(element) === sent;
  };

  // A page that answered a form cannot be asked for again at its own address.
  const here = document.body.dataset.here || location.href;

  // What the server said of each part; what is opened or typed there since is none of it. That time passes is no news.
  const shown = new Map([...document.querySelectorAll("[data-part]")].map((part) => [part, part.innerHTML]));
  const timeless = (html) => html.replace(/<time.*?<\/time>/gs, "");

  let source = null;
  let loading = false;
  let again = false;
  const refresh = async () => {
    if (loading) { again = true; return; }
    loading = true;
    try {
      const answer = await fetch(here, { headers: { accept: "text/html" }, redirect: "error" });
      if (answer.status === 401) { location.reload(); return; }
      if (!answer.ok) throw new Error(String(answer.status));
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.title = fresh.title;
      ring(waiting(fresh.title));
      for (const part of document.querySelectorAll("[data-part]")) {
        const before = shown.get(part);
        const html = fresh.getElementById(part.id)?.innerHTML ?? before;
        const isKept = html !== before && isBusy(part);
        part.toggleAttribute("data-stale", isKept && timeless(html) !== timeless(before));
        if (isKept || html === before) continue;
        const focused = part.contains(document.activeElement) ? document.activeElement : null;
        const isFocused = focused && isTwin(focused);
        const open = [...part.querySelectorAll("details")].map((details) => details.open);
        part.innerHTML = html;
        shown.set(part, html);
        part.querySelectorAll("details").forEach((details, index) => { details.open = open[index] ?? details.open; });
        if (focused) {
          const twin = [...part.querySelectorAll(focused.tagName)].find(isFocused);
          if (twin) twin.focus({ preventScroll: true });
        }
      }
      if (source?.readyState === EventSource.OPEN) say("live");
    } catch { say("not up to date, trying again"); setTimeout(soon, 2000); } finally {
      loading = false;
      if (again) { again = false; soon(); }
    }
  };

  // What newly waits for a person is told where the browser was asked to, and nobody looks at the page.
  const waiting = (title) => Number(/^\((\d+)\)/.exec(title)?.[1] ?? 0);
  let known = waiting(document.title);
  const isWanted = () => "Notification" in window && Notification.permission === "granted" && localStorage.getItem("notify") === "on";
  const ring = (count) => {
    if (count > known && document.hidden && isWanted()) {
      const note = new Notification("Conductor", { body: `${count} waiting for you`, tag: "conductor" });
      note.onclick = () => { window.focus(); location.href = "/approvals"; };
    }
    known = count;
  };
  const bell = document.getElementById("notify");
  if (bell && "Notification" in window) {
    const state = document.getElementById("notify-state");
    const show = () => {
      bell.textContent = isWanted() ? "Stop telling me" : "Tell me in this browser";
      state.textContent = Notification.permission === "denied" ? "The browser was told not to." : isWanted() ? "On in this browser." : "Off in this browser.";
    };
    bell.addEventListener("click", async () => {
      const turnOn = !isWanted();
      if (turnOn) await Notification.requestPermission();
      localStorage.setItem("notify", turnOn ? "on" : "off");
      show();
    });
    show();
    document.getElementById("notifications").hidden = false;
  }

  let timer = 0;
  // News that come on and on do not push the look back.
  const soon = () => { timer ||= setTimeout(() => { timer = 0; refresh(); }, 80); };
  document.addEventListener("focusout", () => { if (document.querySelector("[data-stale]")) soon(); });

  const say = (words) => { if (connection.textContent !== words) connection.textContent = words; };
  const talk = document.getElementById("talk");
  const hear = (address) => {
    const here = new EventSource(address);
    source = here;
    let isAnew = true;
    // What happened between the page and its stream, or while that was lost, was told to nobody.
    here.addEventListener("open", () => { isAnew = true; say("live"); news(); });
    here.addEventListener("changed", news);
    here.addEventListener("state", (event) => {
      soon();
      // A run that gave everything back ends its stream; the page stays true by the common one.
      if (JSON.parse(event.data).cleaned_up) { here.close(); hear("/live"); }
    });
    here.addEventListener("talk", (event) => {
      if (!talk) return;
      document.getElementById("talking").hidden = false;
      const atEnd = talk.scrollTop + talk.clientHeight >= talk.scrollHeight - 8;
      // The first words of a stream are all that were said so far.
      if (isAnew) talk.textContent = "";
      isAnew = false;
      talk.append(JSON.parse(event.data).text);
      // The page stays light however long an agent talks; the newest words count.
      while (talk.childNodes.length > 2000) talk.firstChild.remove();
      if (atEnd) talk.scrollTop = talk.scrollHeight;
    });
    here.addEventListener("error", () => {
      say("connection lost, trying again");
      if (here.readyState === EventSource.CLOSED) { setTimeout(() => { if (source === here) hear(address); }, 2000); soon(); }
    });
  };
  const hush = () => { source?.close(); source = null; say(""); };

  // There are six connections for all pages together, so a page that nobody looks at, or that the browser keeps for the way
  // back, holds none. Of those that nobody looks at one listens and tells the others, so that titles and notes stay true.
  const canShare = "locks" in navigator && "BroadcastChannel" in window;
  let unseen = null;
  let seen = () => {};
  const news = () => { soon(); unseen?.postMessage("changed"); };
  const hide = () => {
    if (unseen) return;
    hush();
    if (!canShare) return;
    const stop = new AbortController();
    const isSeen = new Promise((done) => { seen = () => { done(); stop.abort(); unseen?.close(); unseen = null; }; });
    unseen = new BroadcastChannel("conductor");
    unseen.onmessage = soon;
    navigator.locks.request("listens", { signal: stop.signal }, () => {
      if (!stop.signal.aborted) hear("/live");
      return isSeen;
    }).catch(() => {});
  };
  const show = () => { seen(); hush(); hear(live); soon(); };
  const look = () => (document.hidden ? hide() : show());
  look();
  // A page that is left becomes hidden after that, and listens no more.
  let isLeft = false;
  addEventListener("pagehide", () => { isLeft = true; seen(); hush(); });
  addEventListener("pageshow", (event) => { isLeft = false; if (event.persisted) look(); });
  document.addEventListener("visibilitychange", () => { if (!isLeft) look(); });
  setInterval(() => { if (!document.hidden || !canShare) soon(); }, 30000);

  document.addEventListener("click", (event) => {
    const code = event.target.closest(".copy");
    if (code && navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(() => say("copied"), () => {});
  });

  const places = { h: "/", r: "/runs", a: "/approvals", p: "/projects", o: "/policies", b: "/bulk", u: "/audit", m: "/figures", s: "/settings" };
  let leader = 0;
  const step = (by) => {
    const rows = [...document.querySelectorAll("[data-row]")];
    if (!rows.length) return;
    const here = rows.findIndex((row) => row.contains(document.activeElement));
    const row = rows[Math.min(Math.max(here + by, 0), rows.length - 1)];
    (row.matches("a") ? row : row.querySelector("a")).focus();
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input, textarea, select")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (Date.now() - leader < 1500 && places[event.key]) { leader = 0; location.href = places[event.key]; return; }
    leader = 0;
    switch (event.key) {
      case "g": leader = Date.now(); break;
      case "j": step(1); break;
      case "k": step(-1); break;
      case "n": location.href = "/start"; break;
      case "?": location.href = "/keys"; break;
      default: {
        const target = /^[ar/]$/.test(event.key) && document.querySelector(`[data-key="${event.key}"]`);
        if (!target) return;
        target.focus();
        target.scrollIntoView({ block: "center" });
      }
    }
    event.preventDefault();
  });
})();
