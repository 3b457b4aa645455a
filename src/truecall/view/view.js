// Keys for the viewer: j and k walk the turns, / searches, f goes to the filters, u goes up, ? shows them all.
"use strict";

const dialog = document.getElementById("keys");
const on = document.getElementById("keys-on");
const opener = document.getElementById("keys-open");
const SETTING = "truecall-keys";

function setting(value) {
  try {
    if (value !== undefined) localStorage.setItem(SETTING, value);
    return localStorage.getItem(SETTING);
  } catch {
    return null;
  }
}

function go(rel) {
  const link = document.querySelector(`a[rel="${rel}"]`);
  if (link) link.click();
}

function walk(step) {
  const turns = [...document.querySelectorAll("a.turn")];
  if (!turns.length) return go(step > 0 ? "next" : "prev");
  const at = turns.indexOf(document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : turns.length - 1) : at + step;
  if (next < 0) go("prev");
  else if (next >= turns.length) go("next");
  else turns[next].focus();
}

function filters() {
  const panel = document.getElementById("filters");
  if (!panel) return;
  panel.querySelector("details").open = true;
  (panel.querySelector("li a") || panel).focus();
}

const ACTIONS = {
  j: () => walk(1),
  k: () => walk(-1),
  u: () => go("up"),
  f: filters,
  "/": () => document.getElementById("text")?.focus(),
  "?": () => dialog?.showModal(),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=checkbox]), textarea, select");
  if (event.key === "Escape" && typing) typing.blur();
  if (typing || dialog?.open || event.ctrlKey || event.metaKey || event.altKey || setting() === "off") return;
  const action = Object.hasOwn(ACTIONS, event.key) ? ACTIONS[event.key] : undefined;
  if (!action) return;
  event.preventDefault();
  action();
});

if (opener) {
  opener.hidden = false;
  opener.addEventListener("click", () => dialog.showModal());
}
if (on) {
  on.checked = setting() !== "off";
  on.addEventListener("change", () => setting(on.checked ? "on" : "off"));
}
if (matchMedia("(max-width: 60rem)").matches) {
  document.querySelector("#filters > details")?.removeAttribute("open");
}
