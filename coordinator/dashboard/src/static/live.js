// Keeps a page live: replaces the pieces that the server sends. Without it the page shows what was true when it was loaded.
(() => {
  "use strict";
  const main = document.querySelector("main[data-live]");
  const status = document.getElementById("live");
  if (!main || !window.EventSource) return;
  const rows = main.querySelector("[data-rows]");
  let source = null;

  const show = (text, isLost) => {
    if (!status) return;
    if (status.textContent !== text) status.textContent = text;
    status.classList.toggle("alarm", isLost);
  };

  const element = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content.firstElementChild;
  };

  const apply = (change) => {
    const focused = document.activeElement;
    const link = focused && focused.closest ? focused.closest("a[href]") : null;
    const owner = link ? link.closest("[id]") : null;
    const [ownerId, href] = [owner && owner.id, link && link.getAttribute("href")];
    for (const [id, html] of change.set) {
      const piece = element(html);
      if (!piece) continue;
      const old = document.getElementById(id);
      if (old) old.replaceWith(piece);
      else if (rows) rows.append(piece);
    }
    if (change.rows && rows) {
      const wanted = new Set(change.rows);
      for (const row of [...rows.children]) if (!wanted.has(row.id)) row.remove();
      change.rows.forEach((id, at) => {
        const row = document.getElementById(id);
        if (row && rows.children[at] !== row) rows.insertBefore(row, rows.children[at] || null);
      });
    }
    // A link that had the keyboard's focus keeps it.
    if (ownerId && !document.contains(link)) {
      const again = document.getElementById(ownerId);
      const same = again && [...again.querySelectorAll("a[href]")].find((one) => one.getAttribute("href") === href);
      if (same) same.focus({ preventScroll: true });
    }
  };

  const open = () => {
    if (source) return;
    source = new EventSource(main.dataset.live);
    source.addEventListener("pieces", (event) => {
      apply(JSON.parse(event.data));
      show("Live: changes appear by themselves.", false);
    });
    source.addEventListener("error", () => {
      show("No connection to the coordinator, or the login has ended: the page shows the last known state. Reload it.", true);
      // A refused stream is not retried by the browser.
      if (source && source.readyState === EventSource.CLOSED) {
        source = null;
        setTimeout(open, 5000);
      }
    });
  };

  const close = () => {
    if (source) source.close();
    source = null;
  };

  // A hidden page needs no changes, and browsers allow few connections to one server.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  if (!document.hidden) open();
})();
