"use strict";
// Sorting, searching, filtering and unfolding. Whatever there is to read can be read without it.

// A figure, behind a mark or two, that is not the beginning of a word or of a date.
const FIGURE = /^[▲▼=?!✓✗\s]*([-+−]?[\d,]*\.?\d+(?:e[-+]?\d+)?)(?![\w.-])/i;
const WORDS = new Intl.Collator("en", { numeric: true });
const NEXT = { none: "ascending", ascending: "descending", descending: "none" };

const at = (id) => document.getElementById(id);
const main = at("content");
const below = new Map(); // rows that are unfolded, each with the row that shows what it rests on

const tables = [...main.querySelectorAll(".table > .scroll > table")].map((table) => ({
  block: table.closest(".table"),
  heads: [...table.tHead.rows[0].cells],
  bodies: [...table.tBodies].map((body) => ({
    body,
    heading: body.querySelector(".setting"),
    rows: [...body.querySelectorAll("tr:not(.setting)")],
  })),
}));

/** Where an entry belongs: figures come before words, words before nothing, and reference rows keep to the end. */
function place(row, column) {
  const text = row.cells[column].firstChild?.textContent.trim() ?? "";
  const figure = FIGURE.exec(text)?.[1].replaceAll(",", "").replace("−", "-");
  const reference = row.cells[0].classList.contains("muted");
  const kind = reference ? 3 : figure ? 0 : text && text !== "–" ? 1 : 2;
  return { row, kind, value: kind ? text : Number(figure) };
}

function inOrder(rows, column, sign) {
  const compare = (a, b) => (a.kind ? WORDS.compare(a.value, b.value) : a.value - b.value);
  const places = rows.map((row) => place(row, column));
  return places.sort((a, b) => a.kind - b.kind || (a.kind < 2 && sign * compare(a, b))).map((one) => one.row);
}

/** Ascending, descending, as it was; rows stay under their heading. */
function sort({ heads, bodies }, column) {
  const direction = NEXT[heads[column].getAttribute("aria-sort") ?? "none"];
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  if (direction !== "none") heads[column].setAttribute("aria-sort", direction);
  for (const { body, rows } of bodies) {
    const order = direction === "none" ? rows : inOrder(rows, column, direction === "ascending" ? 1 : -1);
    body.append(...order.flatMap((row) => (below.has(row) ? [row, below.get(row)] : [row])));
  }
}

/** Keep the rows that hold every word, be it in their heading, and the tables that are left with rows. */
function seek() {
  const words = at("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const tone = at("show").value;
  let [shown, all] = [0, 0];
  for (const { block, bodies } of tables) {
    const before = shown;
    for (const { heading, rows } of bodies) {
      const start = shown;
      for (const row of rows) {
        const text = `${heading?.textContent ?? ""} ${row.textContent}`.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word)) || !(tone === "" || row.querySelector(`.${tone}`));
        if (below.has(row)) below.get(row).hidden = row.hidden;
        shown += !row.hidden;
      }
      if (heading) heading.hidden = shown === start;
      all += rows.length;
    }
    block.hidden = shown === before;
  }
  const seeking = words.length > 0 || tone !== "";
  at("count").textContent = seeking ? `${shown} of ${all} rows` : "";
  tidy(seeking);
}

/** While rows are sought, leave tables alone, under the headings that have any. */
function tidy(seeking) {
  document.documentElement.classList.toggle("seeking", seeking);
  for (const { block } of seeking ? [] : tables) block.hidden = false;
  for (const section of main.children) {
    section.hidden = seeking && !section.querySelector(".table:not([hidden])");
    let heading = null;
    for (const piece of section.children) {
      if (piece.matches("h3")) {
        heading = piece;
        heading.hidden = seeking;
      } else if (heading && piece.matches(".table:not([hidden])")) {
        heading.hidden = false;
      }
    }
  }
}

/** Show what a row rests on in a row below it, or take that away. */
function unfold(button, behind) {
  const row = button.closest("tr");
  const open = !below.has(row);
  button.setAttribute("aria-expanded", open);
  if (open) {
    const fold = document.createElement("tr");
    const cell = fold.insertCell();
    fold.className = "unfolded";
    cell.colSpan = row.cells.length;
    const scroll = cell.appendChild(document.createElement("div"));
    scroll.className = "scroll";
    scroll.append(behind.cloneNode(true));
    scroll.firstChild.removeAttribute("id");
    row.after(fold);
    below.set(row, fold);
  } else {
    below.get(row).remove();
    below.delete(row);
  }
}

function makeButton(text, act) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.addEventListener("click", () => act(button));
  return button;
}

for (const table of tables) {
  table.heads.forEach((head, column) => head.replaceChildren(makeButton(head.textContent, () => sort(table, column))));
}
for (const link of main.querySelectorAll("a.unfold")) {
  const behind = at(link.hash.slice(1));
  const button = makeButton(link.textContent, () => unfold(button, behind));
  button.className = "unfold";
  button.setAttribute("aria-expanded", false);
  link.replaceWith(button);
}
at("find").addEventListener("input", seek);
at("show").addEventListener("change", seek);
at("colours").addEventListener("change", (event) => (document.documentElement.style.colorScheme = event.target.value));
at("tools").hidden = false;
document.documentElement.classList.add("scripted");
