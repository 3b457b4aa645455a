"use strict";
// One annotation pack: shows its texts one by one, takes the answers by keyboard, and saves them as a file.
// Texts reach the page as text nodes only. Nothing is asked of the network.
(async () => {
  const find = (id) => document.getElementById(id);
  const source = find("data").textContent;
  const pack = JSON.parse(source);
  const form = find("form"), text = find("text"), tool = find("tool");
  const answers = new Map(); // id -> {call, well_formed, tool}
  const words = pack.decides ? { y: "yes", n: "no" } : { y: "yes", n: "no", u: "unclear" };
  let at = 0, digest = "", saved = true;

  const trouble = (message) => {
    find("trouble").textContent = message;
    find("trouble").hidden = !message;
  };

  // ---- digests: what binds the answers to these bytes
  const sha256 = async (string) => {
    const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(string));
    return Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");
  };
  const line = (each) => [each.id, each.sha256, each.call, each.well_formed ?? "-", each.tool ?? "-"].join(" ");
  const checksum = (list) => sha256(list.map(line).join("\n"));

  // ---- answers
  const complete = (item) => {
    const given = answers.get(item.id);
    if (!given) return false;
    return given.call !== "yes" || (given.well_formed !== null && (item.tools === null || given.tool !== null));
  };
  const answered = () => pack.items.filter(complete).length;
  const listed = () => pack.items.filter((item) => answers.has(item.id)).map((item) => (
    { id: item.id, sha256: item.sha256, ...answers.get(item.id) }));

  const key = () => "truecall-pack-" + digest;
  let writing = Promise.resolve(); // one at a time, so that the newest state is what stays
  const keep = () => {
    saved = false;
    writing = writing.then(async () => {
      try {
        localStorage.setItem(key(), JSON.stringify(await file()));
        saved = true;
      } catch { /* no storage here: the page warns before it is closed, and a file does as well */ }
    });
  };
  const file = async () => {
    const list = listed();
    return { format: "truecall-answers", version: pack.format, pack: digest, annotator: pack.annotator,
      answers: list, sha256: await checksum(list) };
  };
  const take = async (stored) => {
    if (stored?.format !== "truecall-answers") return "This is no file that such a page saved.";
    if (stored.pack !== digest) return "This file belongs to another pack.";
    if (stored.sha256 !== await checksum(stored.answers)) return "This file was altered after it was saved.";
    for (const { id, call, well_formed, tool } of stored.answers) {
      answers.set(id, { call, well_formed: well_formed ?? null, tool: tool ?? null });
    }
    return "";
  };

  // ---- one text
  // What can't be seen is shown by its code point: controls, format and bidi marks, lone surrogates, fillers. Not tab and line feed.
  const unseen = /(?:(?![\t\n])[\p{C}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0])+/gu;
  const pointOf = (char) => "U+" + char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0");
  const named = (run) => run.replace(/(.)\1*/gsu, (same, char) => {
    const count = same.length / char.length;
    return pointOf(char) + (count > 1 ? ` ×${count} ` : " ");
  }).trimEnd();
  const MOST = 5000; // stretches of them that are set apart by colour; where there are more, all are written out plainly
  const crowded = (string) => {
    let count = 0;
    for (const _ of string.matchAll(unseen)) if (++count > MOST) return true;
    return false;
  };
  const show = (parent, string, plain = false) => {
    if (plain) {
      parent.append(string.replace(unseen, (run) => `[${Array.from(run, pointOf).join(" ")}]`));
      return;
    }
    let from = 0;
    for (const run of string.matchAll(unseen)) {
      parent.append(string.slice(from, run.index), make("i", named(run[0]), "unseen"));
      from = run.index + run[0].length;
    }
    parent.append(string.slice(from));
  };
  // A long text in pieces that the browser lays out when they come into view; after a line's end where there is one.
  const PIECE = 20000;
  const pieces = function* (string) {
    for (let from = 0, to; from < string.length; from = to) {
      to = Math.min(string.length, from + PIECE);
      const line = string.lastIndexOf("\n", to - 1) + 1;
      if (to < string.length && line > from) to = line;
      else if (/[\ud800-\udbff]/.test(string[to - 1])) to += 1; // not between the halves of a character
      yield string.slice(from, to);
    }
  };
  const make = (tag, content, name) => {
    const element = document.createElement(tag);
    if (content !== undefined) element.textContent = content;
    if (name) element.className = name;
    return element;
  };
  const HEADS = { reasoning: "Reasoning (the interface gave it apart, before the rest)", content: "Then the text" };

  const drawText = (item) => {
    text.replaceChildren();
    let size = 0;
    for (const passage of item.passages) {
      if (item.passages.length > 1 || passage.kind === "reasoning") text.append(make("h3", HEADS[passage.kind]));
      const plain = crowded(passage.text), name = passage.text.length > PIECE ? "passage piece" : "passage";
      for (const piece of pieces(passage.text)) {
        const block = make("div", undefined, name);
        show(block, piece, plain);
        text.append(block);
      }
      size += passage.text.length;
    }
    const cut = item.cut ? " The log stored no more of it." : "";
    text.append(make("p", `End of the text, ${size.toLocaleString("en")} characters.${cut}`, "end"));
    text.scrollTop = 0;
  };

  const ended = new Set(); // ids of texts whose end has been on the screen
  const look = () => {
    const { id } = pack.items[at];
    if (text.scrollTop + text.clientHeight >= text.scrollHeight - 4) ended.add(id);
    find("goes-on").hidden = ended.has(id);
  };

  const drawTools = (item) => {
    const offered = item.tools === null ? [] : pack.toolsets[item.tools];
    find("offered-name").textContent = item.tools === null
      ? "Offered tools: the log does not say" : `Offered tools: ${offered.length}`;
    find("tools").replaceChildren(...offered.map((each) => {
      const one = make("details");
      const name = make("summary");
      show(name, each.name);
      const body = make("pre");
      show(body, each.definition);
      one.append(name, body);
      return one;
    }));
    const option = (value, label) => {
      const made = make("option", label);
      made.value = value;
      return made;
    };
    tool.replaceChildren(option("", "Choose"), ...offered.map((each, place) => 
      option(String(place), each.name.replace(unseen, named))),
      option(tool.dataset.other, "another name, not offered"), option(tool.dataset.unreadable, "no name can be read"));
  };

  const drawForm = () => {
    const item = pack.items[at];
    const given = answers.get(item.id) ?? { call: null, well_formed: null, tool: null };
    for (const name of ["call", "well_formed"]) {
      for (const radio of form.elements[name]) radio.checked = radio.value === given[name];
    }
    tool.value = given.tool === null ? "" : String(given.tool);
    find("ask-well_formed").hidden = given.call !== "yes";
    find("ask-tool").hidden = given.call !== "yes" || item.tools === null;
    const count = answered();
    find("place").textContent = `Text ${at + 1} of ${pack.items.length}, ${count} answered`;
    find("done").value = count;
    find("text-name").textContent = `Text ${at + 1}`;
    look();
    find("next").textContent = count === pack.items.length ? "All answered: save the file" : "Next text";
  };

  const draw = () => {
    drawText(pack.items[at]);
    drawTools(pack.items[at]);
    drawForm();
  };
  const go = (place) => {
    at = Math.max(0, Math.min(pack.items.length - 1, place));
    draw();
    find("work").scrollIntoView({ block: "start" });
    text.focus({ preventScroll: true });
  };

  // ---- what the annotator does
  const set = (name, value) => {
    const item = pack.items[at];
    const given = answers.get(item.id) ?? { call: null, well_formed: null, tool: null };
    given[name] = value;
    if (name === "call" && value !== "yes") given.well_formed = given.tool = null;
    answers.set(item.id, given);
    keep();
    drawForm();
  };
  const next = () => {
    if (answered() === pack.items.length) { save(); return; }
    if (!complete(pack.items[at])) { ask(open()).focus(); return; }
    const later = [...pack.items.keys()].map((step) => (at + 1 + step) % pack.items.length);
    go(later.find((place) => !complete(pack.items[place])));
  };
  const open = () => {
    const given = answers.get(pack.items[at].id);
    if (!given) return "call";
    if (given.call === "yes" && given.well_formed === null) return "well_formed";
    return given.call === "yes" && pack.items[at].tools !== null && given.tool === null ? "tool" : "";
  };
  const ask = (name) => {
    if (name === "") return find("next");
    if (name === "tool") return tool;
    const radios = [...form.elements[name]];
    return radios.find((radio) => radio.checked) ?? radios[0];
  };
  const save = async () => {
    const address = URL.createObjectURL(new Blob([JSON.stringify(await file(), null, 1)], { type: "application/json" }));
    const link = make("a");
    link.href = address;
    link.download = `answers-${pack.annotator}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
    saved = true;
    find("place").textContent = `Saved answers-${pack.annotator}.json: ${answered()} of ${pack.items.length} answered`;
  };

  const press = (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target === tool || event.target.type === "file") return;
    if (event.key === "Enter" && !["BUTTON", "SUMMARY"].includes(event.target.tagName)) {
      event.preventDefault();
      next();
    } else if (find("single-keys").checked) {
      const word = words[event.key.toLowerCase()];
      const asked = event.target.closest("fieldset")?.id.replace("ask-", "") ?? open();
      if (word && ["call", "well_formed"].includes(asked || "call")) {
        set(asked || "call", word);
        ask(open()).focus({ preventScroll: true });
      } else if (event.key === "[") go(at - 1);
      else if (event.key === "]") go(at + 1);
      else if (event.key.toLowerCase() === "s") save();
      else return;
      event.preventDefault();
    }
  };

  form.addEventListener("change", (event) => {
    if (event.target === tool) {
      const value = tool.value;
      set("tool", value === "" ? null : /^\d+$/.test(value) ? Number(value) : value);
    } else set(event.target.name, event.target.value);
  });
  form.addEventListener("submit", (event) => { event.preventDefault(); next(); });
  tool.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && tool.value !== "") { event.preventDefault(); next(); }
  });
  find("work").addEventListener("keydown", press);
  text.addEventListener("scroll", look);
  find("begin").addEventListener("click", () => {
    find("rules").open = false;
    go(at);
  });
  find("before").addEventListener("click", () => go(at - 1));
  find("after").addEventListener("click", () => go(at + 1));
  find("save").addEventListener("click", save);
  find("load").addEventListener("change", async (event) => {
    try {
      trouble(await take(JSON.parse(await event.target.files[0].text())));
    } catch {
      trouble("This file can't be read.");
    }
    event.target.value = "";
    draw();
  });
  addEventListener("beforeunload", (event) => { if (!saved && answers.size) event.preventDefault(); });

  // ---- begin
  if (!globalThis.crypto?.subtle) {
    trouble("This browser does not let a page check its own bytes. Please open the file in a current Chromium or Firefox.");
    return;
  }
  digest = await sha256(source);
  try {
    const kept = localStorage.getItem(key());
    if (kept) await take(JSON.parse(kept));
  } catch { /* no storage here, or nothing sound in it */ }
  find("rules").open = answers.size === 0;
  find("work").hidden = false;
  at = Math.max(0, pack.items.findIndex((item) => !complete(item)));
  draw();
})();
