// The wallet's page. An order gets an idempotency key when it is given, and keeps it until
// it was answered, over repetitions and reloads: it happens once, whichever cloud is lost.

const $ = (id) => document.getElementById(id);
const KEPT = "wallet.orders";
const PAUSE = 500; // ms, doubled up to LONGEST
const LONGEST = 4000;
const PATIENCE = 15000; // ms for one attempt
const REFRESH = 3000;

let shown = ""; // the account whose history is open

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const money = (cents) => (cents < 0 ? "−" : "") + Math.floor(Math.abs(cents) / 100) + "." + String(Math.abs(cents) % 100).padStart(2, "0");

// cents reads an amount without arithmetic on fractions; null when it is none.
function cents(text) {
  const m = /^(\d{1,10})(?:[.,](\d{1,2}))?$/.exec(text.trim());
  return m ? Number(m[1]) * 100 + Number((m[2] ?? "").padEnd(2, "0")) : null;
}

function say(kind, text) {
  $("status").className = kind;
  $("status").textContent = text;
}

function answered(by) {
  if (!by) return;
  const where = by.cloud && by.cloud !== by.wallet ? `, data from cloud ${by.cloud}` : "";
  const age = by.stale ? (by.staleness_ms >= 0 ? ` (as of ${Math.round(by.staleness_ms)} ms ago)` : " (may be out of date)") : "";
  $("by").textContent = `answered by cloud ${by.wallet}${where}${age}`;
  $("by").dataset.cloud = by.wallet;
}

// ask sends one request and returns its answer; it fails where none came.
async function ask(path, options = {}) {
  const response = await fetch(path, { ...options, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
  const body = await response.json();
  answered(body.answered_by);
  return { ok: response.ok, status: response.status, body };
}

const kept = () => JSON.parse(localStorage.getItem(KEPT) ?? "[]");
const keep = (orders) => localStorage.setItem(KEPT, JSON.stringify(orders));

// carry repeats an order with its key until somebody says what became of it.
async function carry(order) {
  for (let n = 0; ; n++) {
    try {
      const { ok, status, body } = await ask(order.path, {
        method: "POST",
        headers: { "Content-Type": "application/json", "Idempotency-Key": order.key },
        body: JSON.stringify(order.body),
      });
      if (ok || status < 500) {
        keep(kept().filter((o) => o.key !== order.key));
        say(ok ? "good" : "bad", ok ? `${order.what} is done${n ? `, after ${n + 1} attempts and once only` : ""}.` : `${order.what} was refused: ${body.message}.`);
        return ok;
      }
      say("wait", `${order.what} is not confirmed yet: ${body.message}. Trying again with the same key; it happens once only.`);
    } catch {
      say("wait", `No cloud answered. ${order.what} is tried again with the same key; it happens once only.`);
    }
    await sleep(Math.min(PAUSE * 2 ** Math.min(n, 6), LONGEST));
  }
}

function row(cells) {
  const tr = document.createElement("tr");
  for (const [kind, content, cls] of cells) {
    const cell = document.createElement(kind);
    if (kind === "th") cell.scope = "row";
    if (cls) cell.className = cls;
    cell.append(content);
    tr.append(cell);
  }
  return tr;
}

function showAccounts(accounts) {
  $("empty").hidden = accounts.length > 0;
  $("accounts").replaceChildren(...accounts.map((a) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "History";
    button.setAttribute("aria-label", `History of ${a.name}`);
    button.addEventListener("click", () => open(a.name));
    const tr = row([["th", a.name], ["td", money(a.balance_cents), "money"], ["td", button]]);
    tr.dataset.account = a.name;
    return tr;
  }));
  for (const select of document.querySelectorAll("select")) {
    const names = [...select.options].map((o) => o.value).join();
    if (names === accounts.map((a) => a.name).join()) continue;
    const chosen = select.value;
    select.replaceChildren(...accounts.map((a) => new Option(a.name)));
    if (chosen) select.value = chosen;
  }
}

async function open(name) {
  shown = name;
  $("history").hidden = false;
  $("history-title").textContent = `History of ${name}`;
  $("history-title").focus();
  await refresh();
}

async function refresh() {
  try {
    const list = await ask("/api/accounts");
    if (!list.ok) throw new Error(list.body.message);
    const focused = document.activeElement?.closest?.("#accounts tr")?.dataset.account;
    showAccounts(list.body.accounts);
    if (focused) document.querySelector(`#accounts tr[data-account="${CSS.escape(focused)}"] button`)?.focus();
    const sum = await ask("/api/sum");
    if (sum.ok) {
      const s = sum.body.sum;
      $("sum").textContent = `${money(s.total_cents)} in ${s.accounts} accounts, ${money(s.deposited_cents)} deposited: ${s.holds ? "nothing lost, nothing made" : "THE SUM IS WRONG"}.`;
      $("sum").dataset.holds = s.holds;
    }
    if (shown) {
      const history = await ask(`/api/accounts/${encodeURIComponent(shown)}/history`);
      if (history.ok) {
        $("entries").replaceChildren(...history.body.entries.map((e) => {
          const out = e.from === shown;
          const what = e.kind === "deposit" ? "deposit" : out ? `to ${e.to}` : `from ${e.from}`;
          return row([["td", new Date(e.at).toLocaleString()], ["td", what], ["td", money(out ? -e.amount_cents : e.amount_cents), "money"]]);
        }));
      }
    }
  } catch {
    $("by").textContent = "no cloud answers; trying again";
  }
}

for (const form of document.forms) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = Object.fromEntries(new FormData(form));
    if ("amount_cents" in body) {
      body.amount_cents = cents(body.amount_cents);
      if (!body.amount_cents) {
        say("bad", "An amount is a number above 0 with at most two decimals, such as 12.50.");
        form.elements.amount_cents.focus();
        return;
      }
    }
    const order = { key: crypto.getRandomValues(new Uint32Array(4)).join("-"), path: form.dataset.path, what: form.dataset.what, body };
    keep([...kept(), order]);
    const button = form.querySelector("button");
    button.disabled = true;
    say("wait", `${order.what} is under way.`);
    if (await carry(order)) form.reset();
    button.disabled = false;
    await refresh();
  });
}

await refresh();
for (const order of kept()) await carry(order); // what a reload or a crash interrupted
if (kept().length === 0) await refresh();
for (;;) {
  await sleep(REFRESH);
  if (document.visibilityState === "visible") await refresh();
}
