"use strict";
{
  // Light and dark: follow the system until the button is clicked.
  const root = document.documentElement;
  const theme = document.getElementById("theme");
  const isDark = () => (root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches);
  const name = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.hidden = false;
  name();
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    name();
  });

  // A click on a heading sorts its table; the next click reverses the order.
  const key = (row, column) => {
    const cell = row.cells[column];
    const number = cell && cell.dataset.v !== undefined ? Number(cell.dataset.v) : NaN;
    return { number, text: cell ? cell.textContent : "" };
  };
  const compare = (one, other) => {
    const numbers = [one, other].map((it) => !Number.isNaN(it.number));
    if (numbers[0] && numbers[1]) return one.number - other.number;
    if (numbers[0] !== numbers[1]) return numbers[0] ? -1 : 1;
    return one.text.localeCompare(other.text, "en", { numeric: true });
  };
  for (const heading of document.querySelectorAll("thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const rises = heading.getAttribute("aria-sort") !== "ascending";
      for (const one of heading.parentNode.cells) one.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", rises ? "ascending" : "descending");
      const body = heading.closest("table").tBodies[0];
      const column = heading.cellIndex;
      const rows = [...body.rows].map((row) => [key(row, column), row]);
      rows.sort((one, other) => (rises ? 1 : -1) * compare(one[0], other[0]));
      body.append(...rows.map(([, row]) => row));
    });
  }

  for (const figure of document.querySelectorAll(".plot")) {
    // A name in the legend highlights its series while it is pointed at or once it is pressed.
    const buttons = [...figure.querySelectorAll(".legend button")];
    const show = (shown) => {
      figure.classList.toggle("picked", shown.size > 0);
      for (const one of figure.querySelectorAll(".series[data-s]")) {
        one.classList.toggle("on", shown.has(one.dataset.s));
      }
    };
    const pressed = () => new Set(buttons
      .filter((button) => button.getAttribute("aria-pressed") === "true")
      .map((button) => button.dataset.s));
    for (const button of buttons) {
      const point = () => show(new Set([...pressed(), button.dataset.s]));
      button.addEventListener("pointerenter", point);
      button.addEventListener("focus", point);
      button.addEventListener("pointerleave", () => show(pressed()));
      button.addEventListener("blur", () => show(pressed()));
      button.addEventListener("click", () => {
        const was = button.getAttribute("aria-pressed") === "true";
        button.setAttribute("aria-pressed", String(!was));
        show(pressed());
      });
    }

    // The value nearest to the pointer is shown next to it, instead of by the browser.
    const tip = document.createElement("div");
    tip.className = "tip";
    tip.hidden = true;
    figure.append(tip);
    for (const svg of figure.querySelectorAll(":scope > svg")) {
      const points = [...svg.querySelectorAll(".point")].filter((point) => point.firstElementChild);
      for (const point of points) {
        point.dataset.tip = point.firstElementChild.textContent;
        point.firstElementChild.remove();
      }
      let at = null;
      const leave = () => {
        if (at) at.classList.remove("at");
        at = null;
        tip.hidden = true;
      };
      svg.addEventListener("pointerleave", leave);
      svg.addEventListener("pointermove", (event) => {
        let nearest = null;
        let least = 24 * 24;
        for (const point of points) {
          const box = point.getBoundingClientRect();
          const dx = Math.max(box.left - event.clientX, 0, event.clientX - box.right);
          const dy = Math.max(box.top - event.clientY, 0, event.clientY - box.bottom);
          const distance = dx * dx + dy * dy;
          if (distance < least) [nearest, least] = [point, distance];
        }
        leave();
        if (!nearest) return;
        at = nearest;
        at.classList.add("at");
        tip.textContent = at.dataset.tip;
        tip.hidden = false;
        const [box, frame] = [at.getBoundingClientRect(), figure.getBoundingClientRect()];
        const left = box.left + box.width / 2 - frame.left + 10;
        tip.style.left = Math.max(0, Math.min(left, frame.width - tip.offsetWidth)) + "px";
        tip.style.top = box.top - frame.top - tip.offsetHeight - 8 + "px";
      });
    }
  }
}
